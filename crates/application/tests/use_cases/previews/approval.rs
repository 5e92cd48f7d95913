//! Approval of requests from forks.

use launchway_application::Error;
use launchway_domain::{
    applications::Write as ApplicationWrite,
    deployments::{CommitHash, Write as DeploymentWrite},
    ids::ApplicationId,
    previews::{Preview, PreviewSettings, PreviewState, PreviewSummary, Write},
    store::{self, Rule, StoreError},
    webhooks::CodeHost,
};
use launchway_testkit::{CountingIds, builders::an_actor};

use super::{HEAD, expect_preview, expect_settings, settings, valid, waiting};
use crate::{
    actors::{a_member, a_program_without, a_viewer, lacks},
    applications::{NO_APPLICATION, expect_application, scope, web},
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn commit() -> CommitHash {
    valid(HEAD.to_owned())
}

async fn approve(
    ports: MockedPorts,
    actor: &launchway_domain::auth::Actor,
    commit: &CommitHash,
) -> Result<launchway_application::previews::ShownPreview, Error> {
    ports.services().previews.approve(actor, web().build().id, valid(7_i64), commit).await
}

#[tokio::test]
async fn an_approval_deploys_the_commit_of_the_reference() {
    for actor in [an_actor().build(), a_member()] {
        let mut ports = MockedPorts::with_a_box();
        let at = ports.now();
        expect_application(&mut ports, web().build().id, Some(web().build()));
        expect_preview(&mut ports, Some(waiting(at)));
        expect_settings(&mut ports, vec![settings(at)]);
        let id: ApplicationId = CountingIds::nth(1).into();
        let approved = Preview {
            application: Some(id),
            state: PreviewState::Active,
            approved: Some(commit()),
            ..waiting(at)
        };
        let expected = approved.clone();
        ports.expect_commit_seen_by(move |writes| {
            let inserted = writes.iter().find_map(|write| match write {
                store::Write::Application(ApplicationWrite::Insert(application)) => Some(application),
                _ => None,
            });
            let branch = inserted.unwrap().blueprint.branch.as_ref().unwrap();
            assert_eq!(branch.as_str(), "refs/merge-requests/7/head");
            let deployment = writes.iter().find_map(|write| match write {
                store::Write::Deployment(DeploymentWrite::Insert(deployment)) => Some(deployment),
                _ => None,
            });
            assert_eq!(deployment.unwrap().commit, Some(commit()));
            let put = Write::Put { scope: scope(), preview: expected, seen: Some(at), most: 2 };
            assert!(writes.contains(&put.into()), "{writes:?}");
        });
        ports.router.expect_is_there().return_const(false);
        // The answer shows the preview.
        let summary = PreviewSummary { preview: approved.clone(), application: None };
        ports.previews.expect_of_application().once().return_once(|_, _| Ok(vec![summary]));

        let shown = approve(ports, &actor, &commit()).await.unwrap();
        assert_eq!(shown.summary.preview, approved);
    }
}

#[tokio::test]
async fn what_cannot_be_approved_is_a_conflict() {
    let at = MockedPorts::default().now();
    let other: CommitHash = "a".repeat(40).parse().unwrap();
    for (found, commit, sentence) in [
        (
            Preview { is_from_fork: false, ..waiting(at) },
            commit(),
            "the request is not from a fork: it needs no approval",
        ),
        (waiting(at), other, "the request is at commit ec26c3e by now: look at it first"),
        (Preview { head: None, ..waiting(at) }, commit(), "the commit of the request is not known"),
        (
            Preview { approved: Some(commit()), ..waiting(at) },
            commit(),
            "commit ec26c3e was approved before, or the request was closed",
        ),
        (
            Preview { state: PreviewState::Closed, ..waiting(at) },
            commit(),
            "commit ec26c3e was approved before, or the request was closed",
        ),
    ] {
        let mut ports = MockedPorts::with_a_box();
        expect_application(&mut ports, web().build().id, Some(web().build()));
        expect_preview(&mut ports, Some(found));
        let outcome = approve(ports, &an_actor().build(), &commit).await;
        assert_refused(outcome, Error::Conflict(sentence.to_owned()));
    }
}

#[tokio::test]
async fn a_host_without_references_and_settings_that_are_off_refuse() {
    let at = MockedPorts::default().now();
    let off = PreviewSettings { is_enabled: false, ..settings(at) };
    for (host, stored, sentence) in [
        (CodeHost::Bitbucket, settings(at), "Bitbucket gives no access to the commits of forks"),
        (CodeHost::GitHub, off, "the application has no previews: turn them on first"),
    ] {
        let mut ports = MockedPorts::with_a_box();
        expect_application(&mut ports, web().build().id, Some(web().build()));
        expect_preview(&mut ports, Some(Preview { code_host: host, ..waiting(at) }));
        expect_settings(&mut ports, vec![stored]);
        let outcome = approve(ports, &an_actor().build(), &commit()).await;
        assert_refused(outcome, Error::Conflict(sentence.to_owned()));
    }
}

#[tokio::test]
async fn what_the_store_refuses_is_refused() {
    for (error, refusal) in [
        (
            StoreError::Refused(Rule::MostPreviews),
            Error::Conflict("the application has 2 previews already".to_owned()),
        ),
        (unavailable(), unavailable().into()),
    ] {
        let mut ports = MockedPorts::with_a_box();
        let at = ports.now();
        expect_application(&mut ports, web().build().id, Some(web().build()));
        expect_preview(&mut ports, Some(waiting(at)));
        expect_settings(&mut ports, vec![settings(at)]);
        ports.expect_failing_commit(error);
        assert_refused(approve(ports, &an_actor().build(), &commit()).await, refusal);
    }
}

#[tokio::test]
async fn nobody_approves_without_the_permission_or_what_is_not_there() {
    for actor in [a_viewer(), a_program_without("deploy:create")] {
        assert_refused(approve(MockedPorts::default(), &actor, &commit()).await, lacks("deploy:create"));
    }
    let mut ports = MockedPorts::default();
    expect_application(&mut ports, web().build().id, None);
    assert_refused(approve(ports, &an_actor().build(), &commit()).await, NO_APPLICATION);
    let mut ports = MockedPorts::default();
    expect_application(&mut ports, web().build().id, Some(web().build()));
    expect_preview(&mut ports, None);
    let outcome = approve(ports, &an_actor().build(), &commit()).await;
    assert_refused(outcome, Error::NotFound("the preview"));
}
