//! Reports of code hosts about requests.

use launchway_application::{
    Error,
    webhooks::{Ignored, WebhookOutcome},
};
use launchway_domain::{
    applications::{Application, Blueprint, CopyCount, Write as ApplicationWrite},
    audit::{Action, Resource},
    clock::Timestamp,
    deployments::{DeploymentKind, Write as DeploymentWrite},
    ids::ApplicationId,
    jobs::{JobKind, Write as JobWrite},
    previews::{Preview, PreviewSettings, PreviewState, Write},
    quotas::QuotaExceeded,
    store::{self, Rule, StoreError, Unique},
    webhooks::{CodeHost, Delivery, Write as WebhookWrite},
};
use launchway_testkit::{
    CountingIds,
    builders::{a_blueprint, an_entry, parsed},
};

use super::{HEAD, active, expect_preview, expect_settings, settings, waiting};
use crate::{
    applications::{expect_application, job, request_writes, scope, secrets, web},
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
    webhooks::{
        delivery::{expect_applications, expect_secrets, expect_taken, known, receive},
        secret,
    },
};

/// Returns a delivery of GitLab about merge request 7, from the project `source` into that with the id 15.
fn report(action: &str, source: i64, head: &str) -> Delivery {
    let body = format!(
        r#"{{"object_kind": "merge_request",
            "project": {{"git_http_url": "https://git.example.com/analytics/web.git"}},
            "object_attributes": {{"iid": 7, "action": "{action}", "source_branch": "feature/login",
                "target_branch": "main", "source_project_id": {source}, "target_project_id": 15,
                "last_commit": {{"id": "{head}"}}, "oldrev": "95790bf891e76fee5e1747ab589903a6a1f80f22"}}}}"#
    );
    let header = |name| match name {
        "x-gitlab-event" => Some("Merge Request Hook".to_owned()),
        "x-gitlab-token" => Some(secret(9).expose().to_owned()),
        "idempotency-key" => Some("delivery-1".to_owned()),
        _ => None,
    };
    Delivery::read(header, body.into_bytes()).unwrap_or_else(|| panic!("no delivery"))
}

/// Expects a verified delivery to [`web`].
fn expect_delivery(ports: &mut MockedPorts) {
    let at = ports.now();
    expect_secrets(ports, vec![known(at)]);
    expect_applications(ports, vec![web().build()]);
}

/// Expects a report for [`web`], which has that preview.
fn reported(ports: &mut MockedPorts, delivery: &Delivery, found: Option<Preview>) {
    let at = ports.now();
    expect_delivery(ports);
    expect_settings(ports, vec![settings(at)]);
    attempted(ports, delivery, found);
}

/// Expects the reads of one attempt.
fn attempted(ports: &mut MockedPorts, delivery: &Delivery, found: Option<Preview>) {
    expect_taken(ports, vec![web().build().id], delivery, vec![]);
    expect_preview(ports, found);
}

fn take(delivery: &Delivery, at: Timestamp) -> store::Write {
    let (application, since) = (web().build().id, at - chrono::TimeDelta::days(7));
    WebhookWrite::Take { application, mark: delivery.mark(), since, at }.into()
}

fn put(preview: Preview, seen: Option<Timestamp>, most: u16) -> store::Write {
    Write::Put { scope: scope(), preview, seen, most }.into()
}

fn preview_blueprint() -> Blueprint {
    Blueprint {
        name: parsed("pr-7-web"),
        environment: parsed("preview"),
        branch: Some(parsed("feature/login")),
        auto_deploy: false,
        copies: CopyCount::ONE,
        ..a_blueprint()
    }
}

/// Returns the application of the preview, with the variables of the settings and the shared one.
fn preview_application(id: ApplicationId, at: Timestamp) -> Application {
    let kept = secrets(id, r#"{"LEVEL":"1","TOKEN":"build-token"}"#, r#"{"MODE":"preview"}"#);
    web().build().beside((id, CountingIds::nth(2).into()), preview_blueprint(), kept, at)
}

fn ignored(reason: &str) -> WebhookOutcome {
    let (title, reason) = ("merge request 7".to_owned(), reason.to_owned());
    WebhookOutcome::Ignored(Ignored::Request { title, reason })
}

#[tokio::test]
async fn an_opened_request_makes_a_preview_without_other_secrets() {
    let mut ports = MockedPorts::with_a_box();
    let (at, delivery) = (ports.now(), report("open", 15, HEAD));
    reported(&mut ports, &delivery, None);
    let id: ApplicationId = CountingIds::nth(1).into();
    let application = preview_application(id, at);
    assert_eq!(application.automatic_host.as_str(), "pr-7-web-preview.analytics.localhost");
    let entry = an_entry()
        .by_code_host(CodeHost::GitLab)
        .of(Action::Create, Resource::Application, id)
        .with_message("created the preview `pr-7-web` of the application `web` (production) by merge request 7 on GitLab")
        .with("preview_of", web().build().id)
        .with("request", 7)
        .with("branch", "feature/login")
        .with("commit", HEAD);
    let mut writes =
        vec![take(&delivery, at), ApplicationWrite::Insert(Box::new(application.clone())).into()];
    writes.extend(request_writes(3, id, DeploymentKind::Fresh, "merge request 7 on GitLab", at));
    writes.push(put(active(&application, at), None, 2));
    writes.push(audited(6, entry.at(at)));
    ports.expect_commit(writes);
    ports.router.expect_is_there().return_const(false);

    assert_eq!(receive(ports, delivery).await.unwrap(), WebhookOutcome::Deployed);
}

#[tokio::test]
async fn an_updated_request_deploys_with_the_current_settings() {
    let mut ports = MockedPorts::with_a_box();
    let (at, delivery) = (ports.now(), report("update", 15, HEAD));
    let id: ApplicationId = CountingIds::nth(77).into();
    let earlier = at - chrono::TimeDelta::hours(1);
    let running = Application {
        secrets: secrets(id, "{}", r#"{"OLD":"replaced value"}"#),
        ..preview_application(id, earlier)
    };
    let known = Preview { head: "a".repeat(40).parse().ok(), ..active(&running, earlier) };
    reported(&mut ports, &delivery, Some(known));
    expect_application(&mut ports, id, Some(running.clone()));
    // The replaced value stays masked in logs.
    let environment = r#"[{"MODE":"preview"},["replaced value"]]"#;
    let update = ApplicationWrite::Update {
        scope: scope(),
        id,
        seen: Some(earlier),
        blueprint: Box::new(preview_blueprint()),
        secrets: secrets(id, r#"{"LEVEL":"1","TOKEN":"build-token"}"#, environment),
        at,
    };
    let mut expected = vec![take(&delivery, at), update.into()];
    expected.extend(request_writes(1, id, DeploymentKind::Fresh, "merge request 7 on GitLab", at));
    let next = Preview { created_at: earlier, ..active(&running, at) };
    expected.push(put(next, Some(earlier), 2));
    ports.expect_commit_seen_by(move |writes| assert_eq!(writes[..writes.len() - 1], expected));
    ports.router.expect_is_there().return_const(false);

    assert_eq!(receive(ports, delivery).await.unwrap(), WebhookOutcome::Deployed);
}

#[tokio::test]
async fn a_closed_request_deletes_its_preview_and_stays_known() {
    let mut ports = MockedPorts::with_a_box();
    let (at, delivery) = (ports.now(), report("merge", 15, HEAD));
    let id: ApplicationId = CountingIds::nth(77).into();
    let running = preview_application(id, at);
    let known = active(&running, at);
    expect_delivery(&mut ports);
    expect_preview(&mut ports, Some(known.clone()));
    attempted(&mut ports, &delivery, Some(known.clone()));
    expect_application(&mut ports, id, Some(running));
    let closed = Preview {
        application: None,
        state: PreviewState::Closed,
        expires_at: at + chrono::TimeDelta::days(30),
        ..known
    };
    let entry = an_entry()
        .by_code_host(CodeHost::GitLab)
        .of(Action::Delete, Resource::Application, id)
        .with_message("deleted the application `pr-7-web` (preview)")
        .with("preview_of", web().build().id)
        .with("request", 7)
        .with("delivery", "delivery-1");
    ports.expect_commit(vec![
        take(&delivery, at),
        JobWrite::RequestCancelAll { scope: scope(), subject: id.into(), at }.into(),
        DeploymentWrite::FollowJobs { application: Some(id), at }.into(),
        ApplicationWrite::Delete { scope: scope(), id, at }.into(),
        JobWrite::Enqueue(job(1, JobKind::Remove, id, String::new(), at)).into(),
        put(closed, None, u16::MAX),
        audited(2, entry.at(at)),
    ]);

    assert_eq!(receive(ports, delivery).await.unwrap(), WebhookOutcome::Deployed);
}

#[tokio::test]
async fn a_request_without_a_preview_is_closed_by_nothing() {
    let mut ports = MockedPorts::with_a_box();
    expect_delivery(&mut ports);
    expect_preview(&mut ports, None);
    let outcome = receive(ports, report("close", 15, HEAD)).await.unwrap();
    assert_eq!(outcome, ignored("it has no preview"));
}

#[tokio::test]
async fn a_request_from_a_fork_waits_and_runs_nothing() {
    let mut ports = MockedPorts::with_a_box();
    let (at, delivery) = (ports.now(), report("open", 16, HEAD));
    reported(&mut ports, &delivery, None);
    let what = "reported merge request 7 from a fork for the application `web` (production): its preview waits for an approval";
    let entry = an_entry()
        .by_code_host(CodeHost::GitLab)
        .of(Action::Update, Resource::Application, web().build().id)
        .with_message(what)
        .with("commit", HEAD)
        .with("preview_of", web().build().id)
        .with("request", 7)
        .with("delivery", "delivery-1");
    let expected = vec![take(&delivery, at), put(waiting(at), None, 100), audited(1, entry.at(at))];
    ports.expect_commit(expected);

    let outcome = receive(ports, delivery).await.unwrap();
    assert_eq!(outcome, WebhookOutcome::Waiting("merge request 7".to_owned()));
}

#[tokio::test]
async fn another_commit_of_an_approved_fork_waits_beside_what_runs() {
    let mut ports = MockedPorts::with_a_box();
    let (at, delivery) = (ports.now(), report("update", 16, HEAD));
    let old = "a".repeat(40);
    let running = preview_application(CountingIds::nth(77).into(), at);
    let approved = Preview {
        is_from_fork: true,
        head: old.parse().ok(),
        approved: old.parse().ok(),
        ..active(&running, at)
    };
    assert!(!approved.awaits_approval());
    reported(&mut ports, &delivery, Some(approved.clone()));
    let next = Preview { head: HEAD.parse().ok(), ..approved };
    assert!(next.awaits_approval());
    let expected = put(next, Some(at), 2);
    ports.expect_commit_seen_by(move |writes| assert_eq!((writes.len(), &writes[1]), (3, &expected)));

    let outcome = receive(ports, delivery).await.unwrap();
    assert_eq!(outcome, WebhookOutcome::Waiting("merge request 7".to_owned()));
}

#[tokio::test]
async fn what_needs_no_preview_writes_nothing() {
    let at = MockedPorts::default().now();
    let closed = Preview { state: PreviewState::Closed, ..waiting(at) };
    let running = active(&preview_application(CountingIds::nth(77).into(), at), at);
    for (action, found, reason) in [
        ("open", closed.clone(), "it was closed"),
        ("update", closed, "it was closed"),
        ("update", running, "commit ec26c3e is known already"),
    ] {
        let (mut ports, delivery) = (MockedPorts::with_a_box(), report(action, 15, HEAD));
        reported(&mut ports, &delivery, Some(found));
        assert_eq!(receive(ports, delivery).await.unwrap(), ignored(reason), "{action}");
    }
    // Without settings, or with others.
    let off = PreviewSettings { is_enabled: false, ..settings(at) };
    for found in [vec![], vec![off]] {
        let mut ports = MockedPorts::with_a_box();
        expect_delivery(&mut ports);
        expect_settings(&mut ports, found);
        let outcome = receive(ports, report("open", 15, HEAD)).await.unwrap();
        assert_eq!(outcome, ignored("no application of the repository has previews"));
    }
}

#[tokio::test]
async fn a_duplicate_makes_no_second_preview() {
    let mut ports = MockedPorts::with_a_box();
    let (at, delivery) = (ports.now(), report("open", 15, HEAD));
    expect_delivery(&mut ports);
    expect_settings(&mut ports, vec![settings(at)]);
    let id = web().build().id;
    expect_taken(&mut ports, vec![id], &delivery, vec![id]);
    assert_eq!(receive(ports, delivery).await.unwrap(), WebhookOutcome::Duplicate);

    // Also if it was taken while the preview was planned.
    let mut ports = MockedPorts::with_a_box();
    let delivery = report("open", 15, HEAD);
    reported(&mut ports, &delivery, None);
    ports.expect_failing_commit(StoreError::Taken(Unique::WebhookDelivery));
    expect_taken(&mut ports, vec![id], &delivery, vec![id]);
    assert_eq!(receive(ports, delivery).await.unwrap(), WebhookOutcome::Duplicate);
}

#[tokio::test]
async fn what_the_store_refuses_is_answered_with_the_reason() {
    let quota = QuotaExceeded {
        resource: launchway_domain::quotas::Resource::Applications,
        used: 1,
        wanted: 1,
        limit: 1,
    };
    let sentence = quota.to_string();
    for (error, reason) in [
        (StoreError::Refused(Rule::MostPreviews), "the application `web` has 2 previews already"),
        (StoreError::QuotaExceeded(quota), sentence.as_str()),
        (
            StoreError::Taken(Unique::ApplicationName),
            "another application has the name of the preview of `web`",
        ),
    ] {
        let (mut ports, delivery) = (MockedPorts::with_a_box(), report("open", 15, HEAD));
        reported(&mut ports, &delivery, None);
        ports.expect_failing_commit(error);
        assert_eq!(receive(ports, delivery).await.unwrap(), ignored(reason));
    }
    let (mut ports, delivery) = (MockedPorts::with_a_box(), report("open", 15, HEAD));
    reported(&mut ports, &delivery, None);
    ports.expect_failing_commit(unavailable());
    assert_refused(receive(ports, delivery).await, unavailable());
}

#[tokio::test]
async fn records_that_keep_changing_are_a_conflict() {
    let (mut ports, delivery) = (MockedPorts::with_a_box(), report("open", 15, HEAD));
    reported(&mut ports, &delivery, None);
    ports.expect_failing_commit(StoreError::Stale);
    for _ in 1..5 {
        attempted(&mut ports, &delivery, None);
        ports.expect_failing_commit(StoreError::Stale);
    }
    let sentence = "merge request 7 was changed in the meantime: send it again".to_owned();
    assert_refused(receive(ports, delivery).await, Error::Conflict(sentence));
}
