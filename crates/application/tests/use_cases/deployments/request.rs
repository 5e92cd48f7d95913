//! Requests for a deployment: of the current source, or of an earlier version.

use launchway_application::Error;
use launchway_domain::{
    applications::BuildPack,
    audit::{Action, Resource},
    clock::Timestamp,
    deployments::{BuildCache, Deployment, DeploymentKind, DeploymentState, Write},
    ids::{ApplicationId, DeploymentId},
    logs,
    organizations::Scope,
    quotas::{self, Quota, Quotas, Resource as Limited},
    store::{self, StoreError, Unique},
};
use launchway_testkit::{
    CountingIds,
    builders::{a_deployment, an_actor, an_entry},
};

use super::{NO_DEPLOYMENT, detail, expect_deployment, expect_detail, expect_kept};
use crate::{
    actors::{a_member, a_program_without, a_viewer, lacks},
    applications::{NO_APPLICATION, expect_application, request_writes, web},
    audit_log::audited,
    keys::{a_key, claimed},
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn application() -> ApplicationId {
    web().build().id
}

/// Returns the id of the created deployment.
fn id() -> DeploymentId {
    CountingIds::nth(2).into()
}

/// Returns a deployment that was live once.
fn earlier() -> Deployment {
    a_deployment().numbered(7).in_state(DeploymentState::Deployed).with_image().build()
}

fn writes(kind: DeploymentKind, what: &str, at: Timestamp) -> Vec<store::Write> {
    let entry = an_entry()
        .of(Action::Create, Resource::Deployment, id())
        .with_message(what)
        .with("application_id", application())
        .at(at);
    let mut writes = request_writes(1, application(), kind, "ada", at);
    writes.push(audited(4, entry));
    writes
}

fn redeploy_writes(at: Timestamp) -> Vec<store::Write> {
    let what = "requested a deployment of the application `web` (production)";
    writes(DeploymentKind::Fresh, what, at)
}

fn roll_back_writes(at: Timestamp) -> Vec<store::Write> {
    let to = earlier().id;
    let what = format!("requested a rollback of the application `web` (production) to deployment {to}");
    writes(DeploymentKind::Rollback { to }, &what, at)
}

/// Expects the reads of a request.
fn expect_reads(ports: &mut MockedPorts) {
    expect_application(ports, application(), Some(web().build()));
}

#[tokio::test]
async fn request_writes_job_record_log_line_and_audit_entry() {
    for actor in [an_actor().build(), a_member()] {
        let mut ports = MockedPorts::default();
        expect_reads(&mut ports);
        ports.expect_commit(redeploy_writes(ports.now()));
        expect_detail(&mut ports, id(), Some(detail()));

        let outcome = ports.services().deployments.redeploy(&actor, application(), None).await;

        assert_eq!(outcome.unwrap(), detail());
    }
}

#[tokio::test]
async fn a_rebuild_is_a_deployment_that_ignores_the_cache() {
    let mut ports = MockedPorts::default();
    expect_reads(&mut ports);
    let what = "requested a deployment of the application `web` (production) without the build cache";
    let mut writes = writes(DeploymentKind::Fresh, what, ports.now());
    for write in &mut writes {
        match write {
            store::Write::Deployment(Write::Insert(deployment)) => {
                deployment.build_cache = BuildCache::Ignore
            }
            store::Write::Log(logs::Write::Append(lines)) => {
                lines[0].text = lines[0].text.replace("Deployment", "Deployment without the build cache");
            }
            _ => {}
        }
    }
    ports.expect_commit(writes);
    expect_detail(&mut ports, id(), Some(detail()));

    let outcome = ports.services().deployments.rebuild(&a_member(), application(), None).await;

    assert_eq!(outcome.unwrap(), detail());
}

#[tokio::test]
async fn going_back_is_a_deployment_of_its_own() {
    let mut ports = MockedPorts::default();
    expect_deployment(&mut ports, earlier().id, Some(earlier()));
    expect_reads(&mut ports);
    expect_kept(&mut ports, earlier().id, true);
    ports.expect_commit(roll_back_writes(ports.now()));
    expect_detail(&mut ports, id(), Some(detail()));

    let outcome = ports.services().deployments.roll_back(&a_member(), earlier().id, None).await;

    assert_eq!(outcome.unwrap(), detail());
}

#[tokio::test]
async fn a_request_with_a_key_is_claimed_before_anything_is_asked_for() {
    for goes_back in [false, true] {
        let mut ports = MockedPorts::default();
        let (at, key) = (ports.now(), a_key("POST /deploy"));
        let mut writes = vec![claimed(&key, id().into(), at)];
        writes.extend(if goes_back { roll_back_writes(at) } else { redeploy_writes(at) });
        ports.expect_commit(writes);
        expect_reads(&mut ports);
        expect_detail(&mut ports, id(), Some(detail()));
        if goes_back {
            expect_kept(&mut ports, earlier().id, true);
            expect_deployment(&mut ports, earlier().id, Some(earlier()));
        }

        let deployments = ports.services().deployments;
        let outcome = if goes_back {
            deployments.roll_back(&a_member(), earlier().id, Some(key)).await
        } else {
            deployments.redeploy(&a_member(), application(), Some(key)).await
        };

        assert_eq!(outcome.unwrap(), detail());
    }
}

#[tokio::test]
async fn only_what_was_deployed_can_be_gone_back_to() {
    for state in DeploymentState::ALL.into_iter().filter(|state| *state != DeploymentState::Deployed) {
        let mut ports = MockedPorts::default();
        let other = a_deployment().numbered(7).in_state(state).build();
        expect_deployment(&mut ports, other.id, Some(other.clone()));

        let outcome = ports.services().deployments.roll_back(&a_member(), other.id, None).await;

        let state = state.as_str();
        let reason = format!("that deployment is {state}: only a deployed one can be rolled back to");
        assert_refused(outcome, Error::Conflict(reason));
    }
}

#[tokio::test]
async fn what_is_not_kept_any_more_cannot_be_gone_back_to() {
    let mut ports = MockedPorts::default();
    expect_deployment(&mut ports, earlier().id, Some(earlier()));
    expect_reads(&mut ports);
    expect_kept(&mut ports, earlier().id, false);

    let outcome = ports.services().deployments.roll_back(&a_member(), earlier().id, None).await;

    let reason = "the version of that deployment was removed: only the newest 10 versions are kept";
    assert_refused(outcome, Error::Conflict(reason.to_owned()));
}

#[tokio::test]
async fn nobody_asks_for_a_deployment_without_the_permission() {
    for actor in [a_viewer(), a_program_without("deploy:create")] {
        let deployments = MockedPorts::default().services().deployments;

        let fresh = deployments.redeploy(&actor, application(), None).await;
        let back = deployments.roll_back(&actor, earlier().id, None).await;

        assert_refused(fresh, lacks("deploy:create"));
        assert_refused(back, lacks("deploy:create"));
    }
}

#[tokio::test]
async fn what_the_organization_does_not_have_is_not_deployed() {
    let mut ports = MockedPorts::default();
    expect_application(&mut ports, application(), None);
    let outcome = ports.services().deployments.redeploy(&a_member(), application(), None).await;
    assert_refused(outcome, NO_APPLICATION);

    let mut ports = MockedPorts::default();
    expect_deployment(&mut ports, earlier().id, None);
    let outcome = ports.services().deployments.roll_back(&a_member(), earlier().id, None).await;
    assert_refused(outcome, NO_DEPLOYMENT);

    let mut ports = MockedPorts::default();
    expect_deployment(&mut ports, earlier().id, Some(earlier()));
    expect_application(&mut ports, application(), None);
    let outcome = ports.services().deployments.roll_back(&a_member(), earlier().id, None).await;
    assert_refused(outcome, NO_DEPLOYMENT);
}

#[tokio::test]
async fn what_forbids_the_commit_is_named() {
    for (error, refusal) in [
        (StoreError::Stale, NO_APPLICATION),
        (StoreError::Taken(Unique::IdempotencyKey), Error::Repeated),
        (unavailable(), unavailable().into()),
    ] {
        let mut ports = MockedPorts::default();
        expect_reads(&mut ports);
        ports.expect_failing_commit(error);

        let outcome = ports.services().deployments.redeploy(&a_member(), application(), None).await;

        assert_refused(outcome, refusal);
    }
}

#[tokio::test]
async fn a_deployment_that_makes_an_image_needs_room_for_it() {
    for (is_rollback, build_pack, is_guarded) in [
        (false, BuildPack::Dockerfile, true),
        (false, BuildPack::Static, false),
        (true, BuildPack::Dockerfile, false),
    ] {
        let mut ports = MockedPorts::default();
        ports.policy.quotas = Quotas { image_bytes: 1 << 30, ..Quotas::default() };
        let mut application = web().build();
        application.blueprint.build_pack = build_pack;
        let scope = Scope::of_record(application.organization_id);
        expect_application(&mut ports, application.id, Some(application.clone()));
        if is_rollback {
            expect_deployment(&mut ports, earlier().id, Some(earlier()));
            expect_kept(&mut ports, earlier().id, true);
        }
        let quota = Quota { resource: Limited::ImageBytes, limit: 1 << 30 };
        let exceeded = quota.check(1 << 30, 1).unwrap_err();
        ports.expect_commit_and(move |writes| {
            let is_guard = |write: &store::Write| {
                matches!(write, store::Write::Quota(quotas::Write::Require { scope: of, quota: by, wanted: 1, .. })
                    if *of == scope && *by == quota)
            };
            assert_eq!(writes.iter().filter(|write| is_guard(write)).count(), usize::from(is_guarded));
            Err(StoreError::QuotaExceeded(exceeded))
        });
        let services = ports.services();
        let outcome = match is_rollback {
            true => services.deployments.roll_back(&an_actor().build(), earlier().id, None).await,
            false => services.deployments.redeploy(&an_actor().build(), application.id, None).await,
        };
        assert!(matches!(outcome, Err(Error::QuotaExceeded(message)) if message == exceeded));
    }
}
