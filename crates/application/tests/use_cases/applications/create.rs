//! Creation of an application.

use launchway_application::{
    Error,
    applications::{ApplicationPolicy, NewApplication},
};
use launchway_domain::{
    applications::{Application, ApplicationSecrets, Blueprint, BuildPack, Variables, Write},
    audit::{self, Action, Resource},
    auth::Actor,
    clock::Timestamp,
    deployments::{DeploymentKind, StepError},
    idempotency::IdempotencyKey,
    ids::ApplicationId,
    routes::Target,
    store::{self, StoreError, Unique},
};
use launchway_testkit::{
    CountingIds,
    builders::{a_blueprint, a_user, an_actor, an_application, an_entry, an_organization, parsed},
};

use super::{
    NO_APPLICATION, Seen, blueprint, credentials, detail, expect_application, expect_detail, request_writes,
    sealed_for, secrets, variables, web,
};
use crate::{
    actors::{a_member, a_program_without, a_viewer, lacks},
    audit_log::audited,
    keys::{a_key, claimed},
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn id() -> ApplicationId {
    CountingIds::nth(1).into()
}

fn new(blueprint: Blueprint) -> NewApplication {
    NewApplication {
        blueprint,
        credentials: None,
        build_variables: Variables::default(),
        environment_variables: Variables::default(),
    }
}

/// Returns the record of an application that was created with those secrets.
fn made(secrets: ApplicationSecrets, at: Timestamp) -> Application {
    let ids = (id(), CountingIds::nth(2).into());
    Application::new(ids, &an_organization().build(), a_user().build().id, a_blueprint(), secrets, at)
}

fn create_writes(secrets: ApplicationSecrets, at: Timestamp) -> Vec<store::Write> {
    let entry = an_entry()
        .of(Action::Create, Resource::Application, id())
        .with_message("created the application `web` (production)")
        .with("name", "web")
        .with("environment", "production")
        .with("repository", "https://git.example.com/analytics/web.git")
        .with("build_pack", "dockerfile")
        .with("branch", "main")
        .at(at);
    let mut writes = vec![Write::Insert(Box::new(made(secrets, at))).into()];
    writes.extend(request_writes(3, id(), DeploymentKind::Fresh, "ada", at));
    writes.push(audited(6, entry));
    writes
}

/// Expects that the created application is read, and that no traffic is routed to it.
fn expect_made(ports: &mut MockedPorts) {
    ports.router.expect_is_there().return_const(false);
    expect_detail(ports, id(), Some(detail(web())));
}

async fn create(
    ports: MockedPorts,
    actor: &Actor,
    new: NewApplication,
    key: Option<IdempotencyKey>,
) -> Result<Seen, Error> {
    ports.services().applications.create(actor, new, key).await
}

#[tokio::test]
async fn create_writes_first_deployment_and_audit_entry() {
    for actor in [an_actor().build(), a_member()] {
        let mut ports = MockedPorts::with_a_box();
        ports.expect_commit(create_writes(secrets(id(), "{}", "{}"), ports.now()));
        expect_made(&mut ports);

        let (found, variables) = create(ports, &actor, new(a_blueprint()), None).await.unwrap();

        assert_eq!((found, variables), (detail(web()), super::shown()));
    }
}

#[tokio::test]
async fn create_routes_at_once_and_tolerates_a_router_failure() {
    for reported in [Ok(()), Err(StepError::Retryable("it is away".to_owned()))] {
        let mut ports = MockedPorts::with_a_box();
        ports.expect_any_commit();
        ports.router.expect_is_there().return_const(true);
        expect_application(&mut ports, id(), Some(web().build()));
        ports.router.expect_set().once().returning(move |route| {
            assert_eq!(route.hosts, ["web.analytics.localhost"]);
            assert_eq!(route.target, Target::Absent);
            reported.clone()
        });
        expect_detail(&mut ports, id(), Some(detail(web())));

        assert!(create(ports, &an_actor().build(), new(a_blueprint()), None).await.is_ok());
    }
}

#[tokio::test]
async fn who_waits_for_work_is_woken_when_an_application_was_made() {
    let mut ports = MockedPorts::with_a_box();
    let mut listener = ports.wake.listen();
    ports.expect_any_commit();
    expect_made(&mut ports);

    create(ports, &an_actor().build(), new(a_blueprint()), None).await.unwrap();

    let rung =
        tokio::time::timeout(std::time::Duration::ZERO, listener.wait_timeout(std::time::Duration::MAX))
            .await;
    assert!(rung.is_ok());
}

#[tokio::test]
async fn a_request_with_a_key_is_claimed_before_anything_is_made() {
    let mut ports = MockedPorts::with_a_box();
    let key = a_key("POST /deploy/applications");
    let mut writes = vec![claimed(&key, id().into(), ports.now())];
    writes.extend(create_writes(secrets(id(), "{}", "{}"), ports.now()));
    ports.expect_commit(writes);
    expect_made(&mut ports);

    create(ports, &an_actor().build(), new(a_blueprint()), Some(key)).await.unwrap();
}

#[tokio::test]
async fn secrets_are_sealed_each_for_its_own_place() {
    let mut ports = MockedPorts::with_a_box();
    let kept = ApplicationSecrets {
        build_variables: sealed_for(id(), "build_variables", r#"{"A":"1","TOKEN":"build-token"}"#),
        environment_variables: sealed_for(id(), "environment_variables", r#"{"PASSWORD":"open-sesame"}"#),
        credentials: Some(sealed_for(id(), "credentials", r#"["ada","ghp_token"]"#)),
    };
    ports.expect_commit(create_writes(kept, ports.now()));
    expect_made(&mut ports);

    let new = NewApplication {
        blueprint: a_blueprint(),
        credentials: Some(credentials()),
        build_variables: variables(&[("TOKEN", "build-token"), ("A", "1")]),
        environment_variables: variables(&[("PASSWORD", "open-sesame")]),
    };

    create(ports, &an_actor().build(), new, None).await.unwrap();
}

#[tokio::test]
async fn a_prebuilt_image_has_no_branch_to_show() {
    let mut ports = MockedPorts::with_a_box();
    let image = an_application().from_image("nginx:1.27").build().blueprint;
    let (sender, channel) = std::sync::mpsc::channel();
    ports.expect_commit_seen_by(move |writes| {
        if let Some(store::Write::Audit(audit::Write::Append(entry))) = writes.last() {
            sender.send(entry.metadata.clone()).unwrap();
        }
    });
    expect_made(&mut ports);

    create(ports, &an_actor().build(), new(image), None).await.unwrap();

    let metadata = channel.recv().unwrap();
    let expected = [
        ("build_pack", "image"),
        ("environment", "production"),
        ("name", "web"),
        ("repository", "nginx:1.27"),
    ];
    assert!(
        metadata.iter().map(|(name, value)| (name.as_str(), value.as_str())).eq(expected),
        "{metadata:?}"
    );
}

#[tokio::test]
async fn nobody_makes_an_application_without_the_permission() {
    for actor in [a_viewer(), a_program_without("deploy:create")] {
        let outcome = create(MockedPorts::default(), &actor, new(a_blueprint()), None).await;
        assert_refused(outcome, lacks("deploy:create"));
    }
}

#[tokio::test]
async fn everything_that_does_not_fit_is_reported_at_once() {
    let policy =
        ApplicationPolicy { public_host: Some("launchway.example.com".to_owned()), ..Default::default() };
    let mut ports = MockedPorts::default();
    ports.policy = policy;
    let odd = blueprint(|blueprint| {
        blueprint.build_pack = BuildPack::Static;
        blueprint.branch = None;
        blueprint.pre_run_command = Some(parsed("make"));
        blueprint.domain = Some(parsed("launchway.example.com"));
    });

    let outcome = create(ports, &an_actor().build(), new(odd), None).await;

    assert_refused(
        outcome,
        Error::Invalid(
            "branch is required; pre_run_command must be absent for build pack `static`: nothing runs there; \
             domain must not be the host name of this installation"
                .to_owned(),
        ),
    );
}

#[tokio::test]
async fn a_repository_that_the_operator_does_not_allow_is_refused() {
    for address in ["/srv/git/web.git", "http://git.example.com/web.git", "https://127.0.0.1/web.git"] {
        let local = an_application().from_git(address).build().blueprint;

        let outcome = create(MockedPorts::default(), &an_actor().build(), new(local), None).await;

        let Err(Error::Invalid(reason)) = outcome else { panic!("{address}: {outcome:?}") };
        assert!(reason.starts_with("repository "), "{reason}");
    }
}

#[tokio::test]
async fn what_is_taken_is_named() {
    let in_use = an_application().at_domain("web.example.com").build().blueprint;
    for (taken, refusal) in [
        (
            Unique::ApplicationName,
            Error::Conflict("an application `web` exists already in the environment `production`".to_owned()),
        ),
        (
            Unique::Domain,
            Error::Conflict("the domain `web.example.com` is in use by another application".to_owned()),
        ),
        (Unique::IdempotencyKey, Error::Repeated),
        (Unique::Membership, StoreError::Taken(Unique::Membership).into()),
    ] {
        let mut ports = MockedPorts::with_a_box();
        ports.expect_failing_commit(StoreError::Taken(taken));

        let key = Some(a_key("POST /deploy/applications"));
        assert_refused(create(ports, &an_actor().build(), new(in_use.clone()), key).await, refusal);
    }
}

#[tokio::test]
async fn create_fails_without_database_or_organization() {
    for (error, refusal) in [(unavailable(), unavailable().into()), (StoreError::Stale, NO_APPLICATION)] {
        let mut ports = MockedPorts::with_a_box();
        ports.expect_failing_commit(error);

        assert_refused(create(ports, &an_actor().build(), new(a_blueprint()), None).await, refusal);
    }
}
