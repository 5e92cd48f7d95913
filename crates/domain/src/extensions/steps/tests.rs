//! Tests of the resolution of steps.

use super::*;

fn a_step(kind: StepKind, properties: &[(&str, &str)]) -> StepSpec {
    let text = |text: &str| Property::Text(Template::parse(text).unwrap());
    StepSpec {
        name: "A step".to_owned(),
        kind,
        properties: properties.iter().map(|(key, value)| ((*key).to_owned(), text(value))).collect(),
        ignores_errors: false,
        timeout: StepSpec::TIMEOUT,
    }
}

fn with_list(mut step: StepSpec, key: &str, items: &[&str]) -> StepSpec {
    let items = items.iter().map(|item| Template::parse(item).unwrap()).collect();
    step.properties.insert(key.to_owned(), Property::List(items));
    step
}

fn values() -> Values {
    let pairs = [("workspace", "/data/runs/1"), ("who", "ada"), ("evil", "../x; rm -rf /")];
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

fn told(step: &StepSpec) -> Vec<String> {
    let told = |misuse: Misuse| format!("{} {}", misuse.key, misuse.message);
    step.resolve(&values()).unwrap_err().into_iter().map(told).collect()
}

#[test]
fn a_command_holds_references_and_no_values() {
    let step = a_step(StepKind::Command, &[("cmd", "echo {{ evil }}"), ("revert_cmd", "rm {{ who }}")]);
    let expected = Action::Command {
        run: r#"echo "${LAUNCHWAY_VARIABLE_evil}""#.to_owned(),
        revert: Some(r#"rm "${LAUNCHWAY_VARIABLE_who}""#.to_owned()),
    };
    assert_eq!(step.resolve(&values()), Ok(expected));
}

#[test]
fn paths_are_in_the_workspace_however_they_are_said() {
    for dest in ["notes", "{{ workspace }}/notes", "{{ workspace }}//notes/."] {
        let step = a_step(StepKind::File, &[("action", "mkdir"), ("dest", dest)]);
        let expected = FileAction::MakeFolder("notes".parse().unwrap());
        assert_eq!(step.resolve(&values()), Ok(Action::File(expected)), "{dest}");
    }
    for dest in ["/etc", "{{ workspace }}", "{{ workspace }}x/y", "{{ evil }}", "{{ workspace }}/../2/x", ""]
    {
        assert!(
            a_step(StepKind::File, &[("action", "mkdir"), ("dest", dest)]).resolve(&values()).is_err(),
            "{dest}"
        );
    }
}

#[test]
fn every_problem_of_a_step_is_reported() {
    let step = a_step(
        StepKind::Docker,
        &[("action", "run"), ("image", "Not An Image"), ("privileged", "true"), ("detach", "maybe")],
    );
    let told = told(&step);
    assert_eq!(told.len(), 4, "{told:#?}");
    assert_eq!(told[0], "name is missing");
    assert!(told[1].starts_with("image must be an image reference"));
    assert_eq!(told[2], "detach must be `true` or `false`");
    assert!(
        told[3].starts_with("privileged is not known here: allowed are `action`, `command`, "),
        "{}",
        told[3]
    );
}

#[test]
fn an_unknown_action_is_reported_with_the_known_ones() {
    let step = a_step(StepKind::Proxy, &[("action", "update"), ("domain", "x.example")]);
    assert_eq!(told(&step), ["action must be one of `add`, `remove`"]);
    let none = a_step(StepKind::File, &[("dest", "x")]);
    assert!(told(&none)[0].starts_with("action is missing: it must be one of `mkdir`"));
}

#[test]
fn a_container_is_made_of_what_is_allowed() {
    let step =
        a_step(StepKind::Docker, &[("action", "run"), ("name", "db-{{ who }}"), ("image", "postgres:16")]);
    let step = with_list(with_list(step, "volumes", &["data:/var/lib"]), "ports", &["5432:5432"]);
    let Ok(Action::Docker(DockerAction::Run(container))) = step.resolve(&values()) else { panic!() };
    assert_eq!((container.name.as_str(), container.ports.len(), container.is_detached), ("db-ada", 1, true));
    let folder = with_list(step.clone(), "volumes", &["/etc:/etc"]);
    assert!(told(&folder)[0].starts_with("volumes must be `name:/path`"));
    let text = StepSpec {
        properties: [step.properties, a_step(StepKind::Docker, &[("command", "a b")]).properties]
            .into_iter()
            .flatten()
            .collect(),
        ..a_step(StepKind::Docker, &[])
    };
    assert_eq!(told(&text), ["command has to be a list of texts"]);
}

#[test]
fn a_compose_file_refers_to_variables_in_its_own_way() {
    let up = |more: &[(&str, &str)]| {
        a_step(StepKind::DockerCompose, &[&[("action", "up"), ("project", "blog")], more].concat())
    };
    let inline = up(&[("content", "services: {web: {image: \"${image}\"}}")]);
    assert!(matches!(
        inline.resolve(&values()),
        Ok(Action::Compose(ComposeAction::Up { file: ComposeText::Inline(_), .. }))
    ));
    assert!(told(&up(&[("content", "image: {{ who }}")]))[0].contains("`${name}`"));
    assert!(told(&up(&[]))[0].contains("has to be there"));
    assert!(told(&up(&[("content", "x"), ("file", "y")]))[0].contains("not both"));
}

#[test]
fn services_users_and_names_are_read() {
    let service = a_step(StepKind::Service, &[("action", "restart"), ("name", "nginx")]);
    assert!(matches!(service.resolve(&values()), Ok(Action::Service { verb: ServiceVerb::Restart, .. })));
    let user = with_list(
        a_step(StepKind::User, &[("action", "add_groups"), ("name", "{{ who }}")]),
        "groups",
        &["docker"],
    );
    assert!(matches!(user.resolve(&values()), Ok(Action::User(UserAction::AddGroups { .. }))));
    let proxy = a_step(
        StepKind::Proxy,
        &[("action", "add"), ("domain", "A.example"), ("container", "web"), ("port", "80")],
    );
    let Ok(Action::Proxy(ProxyAction::Add { domain, port, .. })) = proxy.resolve(&values()) else { panic!() };
    assert_eq!((domain.as_str(), port.get()), ("a.example", 80));
    for port in ["0", "65536", "http", ""] {
        let proxy = a_step(
            StepKind::Proxy,
            &[("action", "add"), ("domain", "a.example"), ("container", "web"), ("port", port)],
        );
        assert!(told(&proxy)[0].starts_with("port must be"), "{port}");
    }
}

#[test]
fn what_acts_on_the_host_says_so() {
    let on_host: Vec<&str> =
        StepKind::ALL.into_iter().filter(|kind| kind.acts_on_host()).map(StepKind::as_str).collect();
    assert_eq!(on_host, ["command", "service", "user"]);
}
