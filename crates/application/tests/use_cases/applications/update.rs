//! Updating an application.

use launchway_application::{Error, applications::ApplicationChange};
use launchway_domain::{
    applications::{ApplicationSecrets, Blueprint, BuildPack, Labels, Port, ProxyServer, Repository, Write},
    audit::{Action, Resource},
    clock::Timestamp,
    deployments::DeploymentKind,
    ids::ApplicationId,
    jobs::{JobKind, Write as JobWrite},
    store::{self, StoreError},
};
use launchway_testkit::builders::{a_blueprint, an_actor, an_application, an_entry, parsed};

use super::{
    blueprint, detail, expect_application, expect_detail, job, request_writes, scope, sealed_for, secrets,
    shown, variables, web,
};
use crate::{actors::a_member, audit_log::audited, ports::MockedPorts, world::copies};

pub(super) fn id() -> ApplicationId {
    web().build().id
}

/// Returns the encrypted secrets of [`web`].
fn old_secrets() -> ApplicationSecrets {
    web().build().secrets
}

fn update(blueprint: Blueprint, secrets: ApplicationSecrets, at: Timestamp) -> store::Write {
    let seen = Some(web().build().updated_at);
    Write::Update { scope: scope(), id: id(), seen, blueprint: Box::new(blueprint), secrets, at }.into()
}

/// Returns audit entry number `n`: the names of the given fields, and their values unless they may be
/// secret.
fn entry(n: u64, name: &str, given: &[(&str, &str)], at: Timestamp) -> store::Write {
    let entry = an_entry()
        .of(Action::Update, Resource::Application, id())
        .with_message(&format!("changed the application `{name}` (production)"))
        .at(at);
    audited(n, given.iter().fold(entry, |entry, (name, value)| entry.with(name, value)))
}

/// Expects that [`web`] is updated by exactly `writes`, and read.
fn changing(writes: impl FnOnce(Timestamp) -> Vec<store::Write>) -> MockedPorts {
    let mut ports = MockedPorts::with_a_box();
    expect_application(&mut ports, id(), Some(web().build()));
    ports.expect_commit(writes(ports.now()));
    expect_detail(&mut ports, id(), Some(detail(web())));
    ports
}

async fn change(ports: MockedPorts, change: ApplicationChange, redeploy: bool) {
    let services = ports.services();
    let outcome = services.applications.update(&a_member(), id(), change, Some(redeploy), None).await;
    match outcome {
        Ok(seen) => assert_eq!(seen, (detail(web()), shown())),
        Err(refusal) => panic!("{refusal}"),
    }
}

#[tokio::test]
async fn what_is_given_changes_and_the_rest_stays_as_it_is() {
    let renamed = blueprint(|blueprint| {
        blueprint.name = parsed("shop");
        blueprint.auto_deploy = false;
    });
    let ports = changing(|at| {
        let mut writes = vec![update(renamed, old_secrets(), at)];
        writes.extend(request_writes(1, id(), DeploymentKind::Fresh, "ada", at));
        writes.push(entry(4, "shop", &[("name", "shop"), ("auto_deploy", "false")], at));
        writes
    });

    let given =
        ApplicationChange { name: Some(parsed("shop")), auto_deploy: Some(false), ..Default::default() };
    change(ports, given, true).await;
}

#[tokio::test]
async fn everything_can_be_given() {
    let labels = vec!["blue".to_owned(), "of the sea".to_owned()];
    let labels: Labels = labels.try_into().unwrap_or_else(|refused| panic!("{refused}"));
    let port = || Port::try_from(9000).unwrap_or_else(|refused| panic!("{refused}"));
    let next = Blueprint {
        name: parsed("shop"),
        repository: an_application()
            .from_git("https://git.example.com/shop.git")
            .build()
            .blueprint
            .repository,
        branch: Some(parsed("next")),
        base_path: parsed("/shop"),
        dockerfile_path: parsed("docker/Dockerfile"),
        build_pack: BuildPack::Dockerfile,
        environment: parsed("production"),
        domain: Some(parsed("shop.example.com")),
        port: port(),
        pre_run_command: Some(parsed("migrate")),
        post_run_command: Some(parsed("warm up")),
        proxy_server: ProxyServer::default(),
        labels: labels.clone(),
        health_check_path: Some(parsed("/up")),
        auto_deploy: false,
        copies: copies(5),
        watch_paths: an_application().watching(&["/*", "!docs/"]).build().blueprint.watch_paths,
    };
    // A running version keeps printing the replaced values.
    let kept = secrets(id(), r#"{"B":"1"}"#, r#"[{"E":"2"},["build-token","open-sesame"]]"#);
    let given = [
        ("name", "shop"),
        ("repository", "https://git.example.com/shop.git"),
        ("branch", "next"),
        ("base_path", "/shop"),
        ("dockerfile_path", "docker/Dockerfile"),
        ("build_pack", "dockerfile"),
        ("environment", "production"),
        ("domain", "shop.example.com"),
        ("port", "9000"),
        ("pre_run_command", "[changed]"),
        ("post_run_command", "[changed]"),
        ("proxy_server", "launchway"),
        ("labels", "blue, of the sea"),
        ("health_check_path", "/up"),
        ("auto_deploy", "false"),
        ("replicas", "5"),
        ("watch_paths", "/*, !docs/"),
        ("build_variables", "[changed]"),
        ("environment_variables", "[changed]"),
    ];
    let written = next.clone();
    let mut ports = changing(|at| vec![update(written, kept, at), entry(1, "shop", &given, at)]);
    // The new name is routed at once.
    expect_application(&mut ports, id(), Some(web().build()));
    ports.router.expect_is_there().return_const(true);
    ports.router.expect_set().once().returning(|_| Ok(()));

    let given = ApplicationChange {
        name: Some(next.name),
        repository: Some("https://git.example.com/shop.git".to_owned()),
        branch: next.branch,
        base_path: Some(next.base_path),
        dockerfile_path: Some(next.dockerfile_path),
        build_pack: Some(next.build_pack),
        environment: Some(next.environment),
        domain: next.domain,
        port: Some(port()),
        pre_run_command: next.pre_run_command,
        post_run_command: next.post_run_command,
        proxy_server: Some(next.proxy_server),
        labels: Some(labels),
        health_check_path: next.health_check_path,
        auto_deploy: Some(false),
        copies: Some(next.copies),
        watch_paths: Some(next.watch_paths),
        build_variables: Some(variables(&[("B", "1")])),
        environment_variables: Some(variables(&[("E", "2")])),
    };
    change(ports, given, false).await;
}

#[tokio::test]
async fn values_that_were_replaced_are_remembered_until_they_are_back() {
    const TOKEN: &str = r#"{"TOKEN":"build-token"}"#;
    for (before, password, after) in [
        (r#"{"PASSWORD":"first"}"#, "second", r#"[{"PASSWORD":"second"},["first"]]"#),
        (r#"[{"PASSWORD":"second"},["first"]]"#, "third", r#"[{"PASSWORD":"third"},["second","first"]]"#),
        (r#"[{"PASSWORD":"second"},["first"]]"#, "first", r#"[{"PASSWORD":"first"},["second"]]"#),
    ] {
        let mut ports = MockedPorts::with_a_box();
        expect_application(&mut ports, id(), Some(web().with_secrets(secrets(id(), TOKEN, before)).build()));
        let at = ports.now();
        ports.expect_commit(vec![
            update(web().build().blueprint, secrets(id(), TOKEN, after), at),
            entry(1, "web", &[("environment_variables", "[changed]")], at),
        ]);
        expect_detail(&mut ports, id(), Some(detail(web())));
        let given = variables(&[("PASSWORD", password)]);
        let given = ApplicationChange { environment_variables: Some(given), ..Default::default() };
        change(ports, given, false).await;
    }
}

#[tokio::test]
async fn without_a_deployment_no_job_is_made() {
    let ports = changing(|at| {
        vec![
            update(blueprint(|blueprint| blueprint.branch = Some(parsed("next"))), old_secrets(), at),
            entry(1, "web", &[("branch", "next")], at),
        ]
    });

    change(ports, ApplicationChange { branch: Some(parsed("next")), ..Default::default() }, false).await;
}

#[tokio::test]
async fn a_new_repository_brings_its_own_credentials() {
    for (address, credentials) in [
        ("https://bob:ghp_other@git.example.com/shop.git", Some(r#"["bob","ghp_other"]"#)),
        ("https://git.example.com/shop.git", None),
    ] {
        let mut ports = MockedPorts::with_a_box();
        let with_credentials = ApplicationSecrets {
            credentials: Some(sealed_for(id(), "credentials", r#"["ada","ghp_token"]"#)),
            ..old_secrets()
        };
        let application = web().with_secrets(with_credentials).build();
        expect_application(&mut ports, id(), Some(application));
        let shop = an_application().from_git("https://git.example.com/shop.git").build().blueprint;
        let environment = r#"[{"PASSWORD":"open-sesame"},["ghp_token"]]"#;
        let kept = ApplicationSecrets {
            credentials: credentials.map(|pair| sealed_for(id(), "credentials", pair)),
            environment_variables: sealed_for(id(), "environment_variables", environment),
            ..old_secrets()
        };
        let at = ports.now();
        ports.expect_commit(vec![
            update(shop, kept, at),
            entry(1, "web", &[("repository", "https://git.example.com/shop.git")], at),
        ]);
        expect_detail(&mut ports, id(), Some(detail(web())));

        let given = ApplicationChange { repository: Some(address.to_owned()), ..Default::default() };
        change(ports, given, false).await;
    }
}

#[tokio::test]
async fn update_without_repository_keeps_its_credentials() {
    let mut ports = MockedPorts::with_a_box();
    let kept = ApplicationSecrets {
        credentials: Some(sealed_for(id(), "credentials", r#"["ada","ghp_token"]"#)),
        ..old_secrets()
    };
    expect_application(&mut ports, id(), Some(web().with_secrets(kept.clone()).build()));
    let at = ports.now();
    let next = blueprint(|blueprint| blueprint.branch = Some(parsed("next")));
    ports.expect_commit(vec![update(next, kept, at), entry(1, "web", &[("branch", "next")], at)]);
    expect_detail(&mut ports, id(), Some(detail(web())));

    change(ports, ApplicationChange { branch: Some(parsed("next")), ..Default::default() }, false).await;
}

#[tokio::test]
async fn a_repository_becomes_an_image_together_with_its_build_pack() {
    let image = blueprint(|blueprint| {
        blueprint.repository = Repository::Image(parsed("nginx:1.27"));
        blueprint.build_pack = BuildPack::Image;
    });
    let ports = changing(|at| {
        vec![
            update(image, old_secrets(), at),
            entry(1, "web", &[("repository", "nginx:1.27"), ("build_pack", "image")], at),
        ]
    });

    let given = ApplicationChange {
        repository: Some("nginx:1.27".to_owned()),
        build_pack: Some(BuildPack::Image),
        ..Default::default()
    };
    change(ports, given, false).await;
}

#[tokio::test]
async fn an_update_that_changes_nothing_is_refused() {
    let same = ApplicationChange { name: Some(a_blueprint().name), ..Default::default() };
    for given in [ApplicationChange::default(), same] {
        for redeploy in [None, Some(false)] {
            let mut ports = MockedPorts::with_a_box();
            expect_application(&mut ports, id(), Some(web().build()));
            let services = ports.services();
            let outcome =
                services.applications.update(&a_member(), id(), given.clone(), redeploy, None).await;
            assert!(
                matches!(&outcome, Err(Error::Invalid(why)) if why == "there is nothing to change"),
                "{outcome:?}"
            );
        }
    }
}

#[tokio::test]
async fn nothing_given_is_a_deployment_all_the_same() {
    let ports = changing(|at| {
        let mut writes = vec![update(a_blueprint(), old_secrets(), at)];
        writes.extend(request_writes(1, id(), DeploymentKind::Fresh, "ada", at));
        writes.push(entry(4, "web", &[], at));
        writes
    });

    change(ports, ApplicationChange::default(), true).await;
}

#[tokio::test]
async fn an_admin_may_change_applications_too() {
    let ports = changing(|at| {
        vec![
            update(blueprint(|blueprint| blueprint.auto_deploy = false), old_secrets(), at),
            entry(1, "web", &[("auto_deploy", "false")], at),
        ]
    });
    let given = ApplicationChange { auto_deploy: Some(false), ..Default::default() };

    let services = ports.services();
    let outcome = services.applications.update(&an_actor().build(), id(), given, Some(false), None).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn what_others_change_meanwhile_is_kept() {
    let mut ports = MockedPorts::with_a_box();
    let moved = blueprint(|blueprint| blueprint.branch = Some(parsed("next")));
    expect_application(&mut ports, id(), Some(web().build()));
    ports.expect_failing_commit(StoreError::Stale);
    expect_application(&mut ports, id(), Some(web().with_blueprint(moved.clone()).build()));
    let both = Blueprint { auto_deploy: false, ..moved };
    let at = ports.now();
    ports.expect_commit(vec![
        update(both, old_secrets(), at),
        entry(2, "web", &[("auto_deploy", "false")], at),
    ]);
    expect_detail(&mut ports, id(), Some(detail(web())));
    let given = ApplicationChange { auto_deploy: Some(false), ..Default::default() };

    change(ports, given, false).await;
}

/// Changes only the number of copies of [`web`], with a live version unless `live` is none.
async fn scale(live: Option<launchway_domain::ids::DeploymentId>, expects_job: bool) {
    let mut application = web().build();
    application.live = live;
    let mut ports = MockedPorts::with_a_box();
    expect_application(&mut ports, id(), Some(application.clone()));
    let at = ports.now();
    let three = copies(3);
    let mut writes = vec![update(blueprint(|blueprint| blueprint.copies = three), old_secrets(), at)];
    if expects_job {
        let job = job(1, JobKind::Reconcile, id(), String::new(), at);
        writes.push(JobWrite::Enqueue(job).into());
    }
    writes.push(entry(1 + u64::from(expects_job), "web", &[("replicas", "3")], at));
    ports.expect_commit(writes);
    expect_detail(&mut ports, id(), Some(detail(web())));
    let given = ApplicationChange { copies: Some(three), ..Default::default() };
    let services = ports.services();
    let outcome = services.applications.update(&a_member(), id(), given, None, None).await;
    assert_eq!(outcome.map_err(|refusal| refusal.to_string()), Ok((detail(web()), shown())));
}

#[tokio::test]
async fn another_number_of_copies_is_a_job_and_no_deployment() {
    scale(Some(uuid::Uuid::from_u128(7).into()), true).await;
    scale(None, false).await;
}
