//! Deliveries of code hosts.

use launchway_application::{
    Error,
    webhooks::{Ignored, WebhookOutcome},
};
use launchway_domain::{
    applications::Application,
    audit::{Action, Resource},
    clock::Timestamp,
    deployments::{CommitHash, DeploymentKind, DeploymentState},
    ids::{ApplicationId, DeploymentId},
    store::{self, StoreError, Unique},
    webhooks::{CodeHost, Delivery, KeptSecret, Write},
};
use launchway_testkit::{
    CountingIds,
    builders::{a_deployment, an_entry, an_origin},
};
use mockall::predicate::eq;

use super::{kept, repository, secret};
use crate::{
    applications::{request_writes, scope, web},
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

const AFTER: &str = "59b20b8d5c6ff8d09518454d4dd8b7b30f095ab5";

/// Returns a push of GitLab with the secret number 9.
pub(super) fn push(branch: &str, message: &str) -> Delivery {
    delivery("Push Hook", &format!("refs/heads/{branch}"), AFTER, message)
}

fn delivery(event: &str, reference: &str, after: &str, message: &str) -> Delivery {
    let body = format!(
        r#"{{"ref": "{reference}", "after": "{after}", "commits": [{{"id": "{after}", "message": "{message}"}}],
            "project": {{"git_http_url": "https://git.example.com/analytics/web.git"}}}}"#
    );
    let header = |name| match name {
        "x-gitlab-event" => Some(event.to_owned()),
        "x-gitlab-token" => Some(secret(9).expose().to_owned()),
        "idempotency-key" => Some("delivery-1".to_owned()),
        _ => None,
    };
    Delivery::read(header, body.into_bytes()).unwrap_or_else(|| panic!("no delivery"))
}

pub(super) fn after() -> CommitHash {
    AFTER.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the secret of a repository with an earlier verified push.
pub(crate) fn known(at: Timestamp) -> KeptSecret {
    KeptSecret { confirmed_at: Some(at), ..kept(9, 9, at) }
}

pub(crate) fn expect_secrets(ports: &mut MockedPorts, found: Vec<KeptSecret>) {
    let (keys, now) = (vec![repository()], ports.now());
    let with = move |given: &[_], at: &Timestamp| given == keys && *at == now;
    ports.webhooks.expect_secrets().withf(with).once().return_once(|_, _| Ok(found));
}

pub(crate) fn expect_applications(ports: &mut MockedPorts, found: Vec<Application>) {
    let expectation = ports.webhooks.expect_applications_of().with(eq(scope()), eq(repository()));
    expectation.once().return_once(|_, _| Ok(found));
}

pub(crate) fn expect_taken(
    ports: &mut MockedPorts,
    of: Vec<ApplicationId>,
    delivery: &Delivery,
    taken: Vec<ApplicationId>,
) {
    let (mark, since) = (delivery.mark(), ports.now() - chrono::TimeDelta::days(7));
    let with = move |given: &[_], other: &_, at: &Timestamp| given == of && *other == mark && *at == since;
    ports.webhooks.expect_taken().withf(with).once().return_once(|_, _, _| Ok(taken));
}

/// Returns the writes of a push for an application, with ids from number `n` on, without the audit entry.
fn deploying(n: u64, application: &Application, delivery: &Delivery, at: Timestamp) -> Vec<store::Write> {
    let since = at - chrono::TimeDelta::days(7);
    let mut writes =
        vec![Write::Take { application: application.id, mark: delivery.mark(), since, at }.into()];
    let by = "a push to main on GitLab";
    writes.extend(request_writes(n, application.id, DeploymentKind::Fresh, by, at));
    writes
}

/// Returns audit entry number `n` of deployment number `deployment`.
fn entry(n: u64, deployment: u64, application: &Application, at: Timestamp) -> store::Write {
    let id: DeploymentId = CountingIds::nth(deployment).into();
    let name = &application.blueprint.name;
    let what = format!("requested a deployment of the application `{name}` (production) by a push to `main`");
    let entry = an_entry()
        .by_code_host(CodeHost::GitLab)
        .of(Action::Create, Resource::Deployment, id)
        .with_message(&what)
        .with("application_id", application.id)
        .with("branch", "main")
        .with("commit", AFTER)
        .with("delivery", "delivery-1");
    audited(n, entry.at(at))
}

pub(crate) async fn receive(ports: MockedPorts, delivery: Delivery) -> Result<WebhookOutcome, Error> {
    ports.services().webhooks.receive(delivery, an_origin()).await
}

#[tokio::test]
async fn a_push_is_taken_and_deploys_in_one_unit() {
    let mut ports = MockedPorts::with_a_box();
    let (at, application, delivery) = (ports.now(), web().build(), push("main", "A change"));
    expect_secrets(&mut ports, vec![known(at)]);
    expect_applications(&mut ports, vec![application.clone()]);
    expect_taken(&mut ports, vec![application.id], &delivery, vec![]);
    let mut writes = deploying(1, &application, &delivery, at);
    writes.push(entry(4, 2, &application, at));
    ports.expect_commit(writes);
    let mut listener = ports.wake.listen();

    assert_eq!(receive(ports, delivery).await.unwrap(), WebhookOutcome::Deployed);
    let rung = tokio::time::timeout(
        std::time::Duration::from_secs(1),
        listener.wait_timeout(super::super::world::FOR_EVER),
    );
    assert!(rung.await.is_ok(), "nobody is woken");
}

#[tokio::test]
async fn the_first_push_that_is_verified_is_remembered() {
    let mut ports = MockedPorts::with_a_box();
    let (at, application, delivery) = (ports.now(), web().build(), push("main", "A change"));
    expect_secrets(&mut ports, vec![kept(9, 9, at)]);
    expect_applications(&mut ports, vec![application.clone()]);
    expect_taken(&mut ports, vec![application.id], &delivery, vec![]);
    let mut writes = deploying(1, &application, &delivery, at);
    writes.push(Write::Confirm { scope: scope(), repository: repository(), at }.into());
    writes.push(entry(4, 2, &application, at));
    ports.expect_commit(writes);
    assert_eq!(receive(ports, delivery).await.unwrap(), WebhookOutcome::Deployed);

    // Also when no application follows its branch.
    let mut ports = MockedPorts::with_a_box();
    expect_secrets(&mut ports, vec![kept(9, 9, at)]);
    expect_applications(&mut ports, vec![application]);
    ports.expect_commit(vec![Write::Confirm { scope: scope(), repository: repository(), at }.into()]);
    let ignored = WebhookOutcome::Ignored(Ignored::Branch("next".to_owned()));
    assert_eq!(receive(ports, push("next", "A change")).await.unwrap(), ignored);
}

#[tokio::test]
async fn deploys_all_applications_in_one_commit_with_entries_last() {
    let mut ports = MockedPorts::with_a_box();
    let (at, delivery) = (ports.now(), push("main", "A change"));
    let (one, two) = (web().build(), web().named("two").build());
    let mut by_hand = web().named("by-hand").build();
    by_hand.blueprint.auto_deploy = false;
    expect_secrets(&mut ports, vec![known(at)]);
    expect_applications(&mut ports, vec![one.clone(), by_hand, two.clone()]);
    expect_taken(&mut ports, vec![one.id, two.id], &delivery, vec![]);
    let mut writes = deploying(1, &one, &delivery, at);
    writes.extend(deploying(5, &two, &delivery, at));
    writes.extend([entry(4, 2, &one, at), entry(8, 6, &two, at)]);
    ports.expect_commit(writes);

    assert_eq!(receive(ports, delivery).await.unwrap(), WebhookOutcome::Deployed);
}

#[tokio::test]
async fn what_was_taken_before_is_a_duplicate() {
    let mut ports = MockedPorts::with_a_box();
    let (at, application, delivery) = (ports.now(), web().build(), push("main", "A change"));
    expect_secrets(&mut ports, vec![known(at)]);
    expect_applications(&mut ports, vec![application.clone()]);
    expect_taken(&mut ports, vec![application.id], &delivery, vec![application.id]);

    assert_eq!(receive(ports, delivery).await.unwrap(), WebhookOutcome::Duplicate);
}

#[tokio::test]
async fn who_loses_against_a_twin_learns_that_it_is_one() {
    let mut ports = MockedPorts::with_a_box();
    let (at, application, delivery) = (ports.now(), web().build(), push("main", "A change"));
    expect_secrets(&mut ports, vec![known(at)]);
    for taken in [vec![], vec![application.id]] {
        expect_applications(&mut ports, vec![application.clone()]);
        expect_taken(&mut ports, vec![application.id], &delivery, taken);
    }
    ports.expect_failing_commit(StoreError::Taken(Unique::WebhookDelivery));

    assert_eq!(receive(ports, delivery).await.unwrap(), WebhookOutcome::Duplicate);
}

#[tokio::test]
async fn an_application_that_goes_meanwhile_holds_nobody_up() {
    let mut ports = MockedPorts::with_a_box();
    let (at, delivery) = (ports.now(), push("main", "A change"));
    let (gone, there) = (web().named("gone").build(), web().build());
    expect_secrets(&mut ports, vec![known(at)]);
    expect_applications(&mut ports, vec![gone.clone(), there.clone()]);
    expect_taken(&mut ports, vec![gone.id, there.id], &delivery, vec![]);
    ports.expect_failing_commit(StoreError::Stale);
    expect_applications(&mut ports, vec![there.clone()]);
    expect_taken(&mut ports, vec![there.id], &delivery, vec![]);
    ports.expect_any_commit();

    assert_eq!(receive(ports, delivery).await.unwrap(), WebhookOutcome::Deployed);
}

#[tokio::test]
async fn a_commit_that_is_live_is_not_deployed_again() {
    let live = a_deployment().made_of('5').in_state(DeploymentState::Deployed).build();
    let commit = live.commit.clone();
    let application = web().living_by(live.id).build();
    let delivery =
        || delivery("Push Hook", "refs/heads/main", commit.as_ref().map_or("", CommitHash::as_str), "");
    let mut ports = MockedPorts::with_a_box();
    let at = ports.now();
    expect_secrets(&mut ports, vec![known(at)]);
    expect_applications(&mut ports, vec![application.clone()]);
    expect_taken(&mut ports, vec![application.id], &delivery(), vec![]);
    let id = live.id;
    let found = live.clone();
    let expectation = ports.deployments.expect_many().withf(move |of, ids| *of == scope() && ids == [id]);
    expectation.once().return_once(|_, _| Ok(vec![found]));

    let ignored = WebhookOutcome::Ignored(Ignored::Live(commit.clone()));
    assert_eq!(receive(ports, delivery()).await.unwrap(), ignored);
}

#[tokio::test]
async fn commit_that_opts_out_is_skipped_for_good() {
    let mut ports = MockedPorts::with_a_box();
    let (at, application, delivery) = (ports.now(), web().build(), push("main", "A change [skip ci]"));
    expect_secrets(&mut ports, vec![known(at)]);
    expect_applications(&mut ports, vec![application.clone()]);
    expect_taken(&mut ports, vec![application.id], &delivery, vec![]);
    ports.expect_commit(vec![Write::PassOver { application: application.id, commit: after(), at }.into()]);

    let ignored = WebhookOutcome::Ignored(Ignored::Skipped(Some(after()), "[skip ci]"));
    assert_eq!(receive(ports, delivery).await.unwrap(), ignored);
}

#[tokio::test]
async fn what_is_no_push_of_a_followed_branch_writes_nothing() {
    let zeros = "0".repeat(40);
    for (delivery, ignored) in [
        (delivery("Job Hook", "refs/heads/main", AFTER, ""), Ignored::Event("Job Hook".to_owned())),
        (delivery("Tag Push Hook", "refs/tags/v1", AFTER, ""), Ignored::Tag("v1".to_owned())),
        (delivery("Push Hook", "refs/heads/main", &zeros, ""), Ignored::DeletedBranch("main".to_owned())),
        (delivery("Push Hook", "refs/other", AFTER, ""), Ignored::Reference("refs/other".to_owned())),
        (push("next", "A change"), Ignored::Branch("next".to_owned())),
    ] {
        let mut ports = MockedPorts::with_a_box();
        let at = ports.now();
        expect_secrets(&mut ports, vec![known(at)]);
        expect_applications(&mut ports, vec![web().build()]);
        assert_eq!(receive(ports, delivery).await.unwrap(), WebhookOutcome::Ignored(ignored));
    }
}

#[tokio::test]
async fn who_does_not_know_a_secret_is_refused_and_leaves_no_trace() {
    let at = MockedPorts::default().now();
    // No secret, the secrets of others, one that cannot be decrypted, and an empty one.
    let broken = KeptSecret { secret: launchway_domain::secret::Sealed("broken".to_owned()), ..known(at) };
    let place = format!("webhook_secrets.secret:{}", known(at).id);
    let empty = KeptSecret { secret: crate::sealed_values::sealed(&place, ""), ..known(at) };
    for found in [vec![], vec![kept(1, 1, at), kept(2, 2, at)], vec![broken], vec![empty]] {
        let mut ports = MockedPorts::with_a_box();
        expect_secrets(&mut ports, found);
        assert_refused(receive(ports, push("main", "A change")).await, Error::InvalidSignature);
    }
}

#[tokio::test]
async fn one_secret_of_several_is_enough() {
    let mut ports = MockedPorts::with_a_box();
    let at = ports.now();
    expect_secrets(&mut ports, vec![kept(1, 1, at), known(at), kept(2, 2, at)]);
    expect_applications(&mut ports, vec![web().build()]);
    let ignored = WebhookOutcome::Ignored(Ignored::Branch("next".to_owned()));
    assert_eq!(receive(ports, push("next", "")).await.unwrap(), ignored);
}

#[tokio::test]
async fn a_repository_that_nobody_deploys_any_more_is_unknown() {
    let mut ports = MockedPorts::with_a_box();
    let at = ports.now();
    expect_secrets(&mut ports, vec![known(at)]);
    expect_applications(&mut ports, vec![]);
    assert_refused(receive(ports, push("main", "A change")).await, Error::InvalidSignature);
}

#[tokio::test]
async fn nothing_is_done_without_a_database() {
    let mut ports = MockedPorts::with_a_box();
    ports.webhooks.expect_secrets().once().returning(|_, _| Err(unavailable()));
    assert_refused(receive(ports, push("main", "A change")).await, unavailable());

    let mut ports = MockedPorts::with_a_box();
    let (at, application, delivery) = (ports.now(), web().build(), push("main", "A change"));
    expect_secrets(&mut ports, vec![known(at)]);
    expect_applications(&mut ports, vec![application.clone()]);
    expect_taken(&mut ports, vec![application.id], &delivery, vec![]);
    ports.expect_failing_commit(unavailable());
    assert_refused(receive(ports, delivery).await, unavailable());
}
