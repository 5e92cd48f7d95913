//! Pushes and uploads: what is deployed, and what a failure takes back.

use std::fs::File;

use launchway_application::{
    Error,
    applications::NewApplication,
    sources::{NewSource, SourceTarget, UploadRequest},
};
use launchway_domain::{
    applications::{Application, GitUrl, Repository},
    deployments::{BuildCache, CommitHash, Deployment, SourceDigest, StepError, Write as DeploymentWrite},
    idempotency::{self, BodyHash, IdempotencyKey},
    ids::DeploymentId,
    sources::{
        BlockId, Comparison, PendingSource, PushRequest, Received, RefUpdate, Upload, packet, sideband,
    },
    store::{StoreError, Write},
};
use launchway_testkit::{
    CountingIds,
    builders::{a_deployment, an_actor, parsed},
};
use mockall::predicate::eq;

use crate::{
    actors::{a_viewer, lacks},
    applications::{expect_application, scope, web},
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

const MAIN: &str = "refs/heads/main";

fn hash(digit: char) -> CommitHash {
    parsed(&digit.to_string().repeat(40))
}

/// Returns an application whose source is its repository on this server.
fn hosted() -> Application {
    let mut application = web().build();
    application.blueprint.repository = Repository::Git(GitUrl::hosted(application.id));
    application
}

fn push(name: &str, new: Option<CommitHash>) -> (PushRequest, Received) {
    let updates = vec![RefUpdate { name: name.to_owned(), old: Some(hash('a')), new }];
    let request = PushRequest { updates, has_sideband: true, has_report: true };
    (request, body())
}

fn body() -> Received {
    let file = File::open("/dev/null").unwrap_or_else(|error| panic!("{error}"));
    Received { file, bytes: 0, sha256: "e3b0".to_owned() }
}

/// Returns the output of git that accepts or refuses a branch.
fn report(line: &str) -> Vec<u8> {
    let results = [packet(b"unpack ok\n"), packet(line.as_bytes()), b"0000".to_vec()].concat();
    [sideband(1, &results), b"0000".to_vec()].concat()
}

fn pending(application: &Application) -> PendingSource {
    PendingSource {
        organization: application.organization_id,
        application: application.id,
        deployment: id(),
        reference: MAIN.to_owned(),
        old: Some(hash('a')),
        new: hash('b'),
        by: "ada".to_owned(),
        digest: None,
        key: None,
    }
}

/// Returns the id of the deployment of a push.
fn id() -> DeploymentId {
    CountingIds::nth(1).into()
}

fn no_description(_: &NewSource) -> Result<NewApplication, String> {
    Err("not asked".to_owned())
}

fn expect_receive(ports: &mut MockedPorts, line: &'static str) {
    ports.repositories.expect_receive().once().return_once(move |_, _| Ok(report(line)));
}

fn expect_announcement(ports: &mut MockedPorts, is_ended: bool) {
    let pending = pending(&hosted());
    ports.repositories.expect_begin().with(eq(pending.clone())).once().return_once(|_| Ok(()));
    if is_ended {
        ports.repositories.expect_end().with(eq(pending)).once().return_once(|_| Ok(()));
    }
}

fn deployed(writes: &[Write]) -> Vec<(DeploymentId, Option<CommitHash>)> {
    let inserted = writes.iter().filter_map(|write| match write {
        Write::Deployment(DeploymentWrite::Insert(deployment)) => {
            Some((deployment.id, deployment.commit.clone()))
        }
        _ => None,
    });
    inserted.collect()
}

#[tokio::test]
async fn a_push_is_announced_received_deployed_and_ended() {
    let mut ports = MockedPorts::with_a_box();
    expect_application(&mut ports, hosted().id, Some(hosted()));
    expect_announcement(&mut ports, true);
    expect_receive(&mut ports, "ok refs/heads/main\n");
    ports.expect_commit_seen_by(|writes| assert_eq!(deployed(writes), [(id(), Some(hash('b')))]));
    // The newest upload counts no more.
    let upload = "refs/launchway/upload/main";
    ports
        .repositories
        .expect_resolve()
        .with(eq(hosted().id), eq(upload))
        .once()
        .return_once(|_, _| Ok(Some(hash('c'))));
    let moved = ports.repositories.expect_move_reference();
    moved
        .with(eq(hosted().id), eq(upload), eq(Some(hash('c'))), eq(None))
        .once()
        .return_once(|_, _, _, _| Ok(true));
    let target = SourceTarget::Existing(Box::new(hosted()));
    let services = ports.services();
    let ada = an_actor().build();
    let pushed = services.sources.push(&ada, &target, push(MAIN, Some(hash('b'))), &no_description);
    let pushed = pushed.await.unwrap();
    assert_eq!(pushed.deployment, Some(id()));
    assert!(pushed.report.accepts(MAIN));
}

/// Returns an application that watches a folder, with a version of the commit `a`.
fn watching() -> (Application, Deployment) {
    let mut application = web().watching(&["apps/web/"]).build();
    application.blueprint.repository = hosted().blueprint.repository;
    application.secrets = crate::applications::secrets(application.id, "{}", "{}");
    let deployed = a_deployment().of(&application).made_of('a').build();
    (application, deployed)
}

fn expect_comparison(ports: &mut MockedPorts, deployed: Deployment, touched: Option<bool>) {
    ports.deployments.expect_newest().once().return_once(|_, _| Ok(vec![deployed]));
    let compares = |asked: &Comparison| (&asked.old, &asked.new) == (&hash('a'), &hash('b'));
    ports.changes.expect_touches().withf(compares).once().return_once(move |_| Ok(touched));
}

#[tokio::test]
async fn a_push_that_changes_nothing_watched_is_stored() {
    for (touched, deploys) in [(Some(false), false), (Some(true), true), (None, true)] {
        let mut ports = MockedPorts::with_a_box();
        let (application, deployed) = watching();
        expect_application(&mut ports, application.id, Some(application.clone()));
        expect_announcement(&mut ports, true);
        expect_receive(&mut ports, "ok refs/heads/main\n");
        expect_comparison(&mut ports, deployed, touched);
        ports.repositories.expect_resolve().once().return_once(|_, _| Ok(None));
        if deploys {
            ports.expect_any_commit();
        }
        let target = SourceTarget::Existing(Box::new(application));
        let services = ports.services();
        let ada = an_actor().build();
        let pushed = services.sources.push(&ada, &target, push(MAIN, Some(hash('b'))), &no_description);
        let pushed = pushed.await.unwrap();
        assert!(pushed.report.accepts(MAIN));
        assert_eq!(pushed.deployment.is_some(), deploys, "{touched:?}");
        let line = "Ignored bbbbbbb of main: no path of watch_paths changed since aaaaaaa";
        assert_eq!(pushed.lines[0] == line, !deploys, "{pushed:?}");
    }
}

#[tokio::test]
async fn recovery_ignores_a_push_that_changes_nothing_watched() {
    let mut ports = MockedPorts::with_a_box();
    let (application, deployed) = watching();
    let pending = pending(&application);
    let left = pending.clone();
    ports.repositories.expect_pending().once().return_once(|| Ok(vec![left]));
    ports.deployments.expect_get().once().return_once(|_, _| Ok(None));
    let head = ports.repositories.expect_resolve().with(eq(application.id), eq(MAIN));
    head.once().return_once(|_, _| Ok(Some(hash('b'))));
    expect_application(&mut ports, application.id, Some(application));
    expect_comparison(&mut ports, deployed, Some(false));
    ports.repositories.expect_resolve().once().return_once(|_, _| Ok(None));
    ports.repositories.expect_end().with(eq(pending)).once().return_once(|_| Ok(()));
    ports.services().sources.recover().await.unwrap();
}

#[tokio::test]
async fn a_deployment_that_cannot_be_recorded_moves_the_branch_back() {
    let mut ports = MockedPorts::with_a_box();
    expect_application(&mut ports, hosted().id, Some(hosted()));
    expect_announcement(&mut ports, true);
    expect_receive(&mut ports, "ok refs/heads/main\n");
    ports.expect_failing_commit(unavailable());
    let moved = ports.repositories.expect_move_reference();
    moved
        .with(eq(hosted().id), eq(MAIN), eq(Some(hash('b'))), eq(Some(hash('a'))))
        .once()
        .return_once(|_, _, _, _| Ok(true));
    let target = SourceTarget::Existing(Box::new(hosted()));
    let services = ports.services();
    let ada = an_actor().build();
    let pushed = services.sources.push(&ada, &target, push(MAIN, Some(hash('b'))), &no_description);
    let pushed = pushed.await.unwrap();
    assert_eq!(pushed.deployment, None);
    assert!(!pushed.report.accepts(MAIN), "{pushed:?}");
}

#[tokio::test]
async fn what_git_refuses_is_not_deployed() {
    let mut ports = MockedPorts::with_a_box();
    expect_application(&mut ports, hosted().id, Some(hosted()));
    expect_announcement(&mut ports, true);
    expect_receive(&mut ports, "ng refs/heads/main failed to update ref\n");
    let target = SourceTarget::Existing(Box::new(hosted()));
    let services = ports.services();
    let ada = an_actor().build();
    let pushed = services.sources.push(&ada, &target, push(MAIN, Some(hash('b'))), &no_description);
    assert_eq!(pushed.await.unwrap().deployment, None);
}

#[tokio::test]
async fn other_pushes_are_stored_or_refused_without_a_deployment() {
    let elsewhere = web().build();
    let mut manual = hosted();
    manual.blueprint.auto_deploy = false;
    for (application, name, part) in [
        (hosted(), "refs/heads/next", "follows the branch main"),
        (elsewhere, MAIN, "is deployed from"),
        (manual, MAIN, "`launchway deploy web` deploys it"),
    ] {
        let mut ports = MockedPorts::with_a_box();
        expect_application(&mut ports, application.id, Some(application.clone()));
        expect_receive(&mut ports, "ok x\n");
        let target = SourceTarget::Existing(Box::new(application));
        let services = ports.services();
        let ada = an_actor().build();
        let pushed = services.sources.push(&ada, &target, push(name, Some(hash('b'))), &no_description);
        let pushed = pushed.await.unwrap();
        assert!(pushed.deployment.is_none() && pushed.lines[0].contains(part), "{pushed:?}");
    }
    let mut ports = MockedPorts::with_a_box();
    expect_application(&mut ports, hosted().id, Some(hosted()));
    let target = SourceTarget::Existing(Box::new(hosted()));
    let services = ports.services();
    let deleted =
        services.sources.push(&an_actor().build(), &target, push(MAIN, None), &no_description).await.unwrap();
    assert!(!deleted.report.accepts(MAIN) && deleted.lines[0].contains("cannot be deleted"), "{deleted:?}");
    let hidden = push("refs/launchway/upload/main", Some(hash('b')));
    let hidden = services.sources.push(&an_actor().build(), &target, hidden, &no_description).await.unwrap();
    assert!(hidden.lines[0].contains("neither a branch nor a tag"), "{hidden:?}");
}

#[tokio::test]
async fn a_viewer_can_neither_push_nor_upload() {
    let services = MockedPorts::with_a_box().services();
    let target = SourceTarget::Existing(Box::new(hosted()));
    let pushed =
        services.sources.push(&a_viewer(), &target, push(MAIN, Some(hash('b'))), &no_description).await;
    assert_refused(pushed, lacks("deploy:create"));
    let request = UploadRequest { upload: Upload::Archive(body()), cache: BuildCache::Use, key: None };
    let uploaded = services.sources.upload(&a_viewer(), &target, request, &no_description).await;
    assert_refused(uploaded, lacks("deploy:create"));
    let block = BlockId([0; 32]);
    assert_refused(services.sources.missing_blocks(&a_viewer(), vec![block]).await, lacks("deploy:create"));
    assert_refused(services.sources.store_blocks(&a_viewer(), body()).await, lacks("deploy:create"));
    let listed = services.sources.listed_files(&a_viewer(), block).await;
    assert_refused(listed.map(drop), lacks("deploy:create"));
    assert_refused(services.sources.spool(&a_viewer()).await.map(drop), lacks("deploy:create"));
}

#[tokio::test]
async fn a_start_deploys_what_moved_and_forgets_the_rest() {
    for (head, is_recorded, is_deployed) in [
        (Some(hash('b')), false, true),
        (Some(hash('a')), false, false),
        (None, false, false),
        (Some(hash('b')), true, false),
    ] {
        let mut ports = MockedPorts::with_a_box();
        let announced = pending(&hosted());
        let again = announced.clone();
        ports.repositories.expect_pending().once().return_once(move || Ok(vec![again]));
        let known = is_recorded.then(|| launchway_testkit::builders::a_deployment().build());
        ports.deployments.expect_get().with(eq(scope()), eq(id())).once().return_once(|_, _| Ok(known));
        ports
            .repositories
            .expect_resolve()
            .returning(move |_, reference| Ok(head.clone().filter(|_| reference == MAIN)));
        if is_recorded {
            ports.deployments.expect_newest().once().return_once(|_, _| Ok(Vec::new()));
        }
        if is_deployed {
            expect_application(&mut ports, hosted().id, Some(hosted()));
            ports.expect_commit_seen_by(|writes| assert_eq!(deployed(writes), [(id(), Some(hash('b')))]));
        }
        ports.repositories.expect_end().with(eq(announced)).once().return_once(|_| Ok(()));
        ports.services().sources.recover().await.unwrap();
    }
}

#[tokio::test]
async fn a_start_takes_back_what_the_database_refuses() {
    let mut ports = MockedPorts::with_a_box();
    ports.repositories.expect_pending().once().return_once(|| Ok(vec![pending(&hosted())]));
    ports.deployments.expect_get().once().return_once(|_, _| Ok(None));
    ports.repositories.expect_resolve().once().return_once(|_, _| Ok(Some(hash('b'))));
    expect_application(&mut ports, hosted().id, Some(hosted()));
    ports.expect_failing_commit(StoreError::Stale);
    let moved = ports.repositories.expect_move_reference();
    moved
        .with(eq(hosted().id), eq(MAIN), eq(Some(hash('b'))), eq(Some(hash('a'))))
        .once()
        .return_once(|_, _, _, _| Ok(true));
    ports.repositories.expect_end().once().return_once(|_| Ok(()));
    ports.services().sources.recover().await.unwrap();

    let mut ports = MockedPorts::with_a_box();
    ports.repositories.expect_pending().once().return_once(|| Ok(vec![pending(&hosted())]));
    ports.deployments.expect_get().once().return_once(|_, _| Err(unavailable()));
    let failed = ports.services().sources.recover().await;
    assert!(matches!(failed, Err(Error::Unavailable(_))), "{failed:?}");
}

fn digest() -> SourceDigest {
    parsed(&format!("sha256:{}", "c".repeat(64)))
}

fn key() -> IdempotencyKey {
    IdempotencyKey {
        scope: scope(),
        user_id: an_actor().build().user_id(),
        operation: "POST /files".to_owned(),
        name: parsed("again"),
        body: BodyHash([7; 32]),
    }
}

/// Returns whether the first write claims the key for the deployment with the digest.
fn claims(writes: &[Write]) -> bool {
    let claimed = matches!(&writes[0], Write::Idempotency(idempotency::Write::Claim { key: claimed, resource, .. })
        if *claimed == key() && *resource == uuid::Uuid::from(id()));
    let inserted = writes.iter().any(|write| {
        matches!(write, Write::Deployment(DeploymentWrite::Insert(one)) if one.source_digest == Some(digest()))
    });
    claimed && inserted
}

#[tokio::test]
async fn an_upload_claims_its_key_and_has_its_digest() {
    let mut ports = MockedPorts::with_a_box();
    expect_application(&mut ports, hosted().id, Some(hosted()));
    let reference = "refs/launchway/upload/main".to_owned();
    let announced = PendingSource {
        reference,
        old: None,
        digest: Some(digest()),
        key: Some(key()),
        ..pending(&hosted())
    };
    ports.repositories.expect_import().once().return_once(|_, _, _| Ok(hash('b')));
    ports.repositories.expect_resolve().once().return_once(|_, _| Ok(None));
    ports.repositories.expect_begin().with(eq(announced.clone())).once().return_once(|_| Ok(()));
    ports.repositories.expect_move_reference().once().return_once(|_, _, _, _| Ok(true));
    ports.expect_commit_seen_by(|writes| assert!(claims(writes), "{writes:?}"));
    ports.repositories.expect_end().with(eq(announced)).once().return_once(|_| Ok(()));
    let list = Received { sha256: "c".repeat(64), ..body() };
    let upload = Upload::Files { organization: hosted().organization_id, list };
    let request = UploadRequest { upload, cache: BuildCache::Use, key: Some(key()) };
    let target = SourceTarget::Existing(Box::new(hosted()));
    let (services, ada) = (ports.services(), an_actor().build());
    let uploaded = services.sources.upload(&ada, &target, request, &no_description).await;
    assert_eq!(uploaded.unwrap().digest, digest());
}

#[tokio::test]
async fn a_start_claims_the_key_of_the_upload_that_it_deploys() {
    let mut ports = MockedPorts::with_a_box();
    let reference = "refs/launchway/upload/main".to_owned();
    let announced =
        PendingSource { reference, digest: Some(digest()), key: Some(key()), ..pending(&hosted()) };
    ports.repositories.expect_pending().once().return_once(move || Ok(vec![announced]));
    ports.deployments.expect_get().once().return_once(|_, _| Ok(None));
    ports.repositories.expect_resolve().once().return_once(|_, _| Ok(Some(hash('b'))));
    expect_application(&mut ports, hosted().id, Some(hosted()));
    ports.expect_commit_seen_by(|writes| assert!(claims(writes), "{writes:?}"));
    ports.repositories.expect_end().once().return_once(|_| Ok(()));
    ports.services().sources.recover().await.unwrap();
}

#[tokio::test]
async fn blocks_that_are_missing_are_a_conflict() {
    let mut ports = MockedPorts::with_a_box();
    let block = BlockId([1; 32]);
    let organization = hosted().organization_id;
    ports
        .repositories
        .expect_missing_blocks()
        .with(eq(organization), eq(vec![block]))
        .once()
        .return_once(|_, ids| Ok(ids));
    ports
        .repositories
        .expect_file_list()
        .with(eq(organization), eq(block))
        .once()
        .return_once(|_, _| Ok(None));
    ports
        .repositories
        .expect_store_blocks()
        .once()
        .return_once(|_, _| Err(StepError::Rejected("damaged".to_owned())));
    let services = ports.services();
    let ada = an_actor().build();
    assert_eq!(services.sources.missing_blocks(&ada, vec![block]).await.unwrap(), [block]);
    let listed = services.sources.listed_files(&ada, block).await;
    assert!(matches!(&listed, Err(Error::Conflict(why)) if why.contains("missing")), "{listed:?}");
    let stored = services.sources.store_blocks(&ada, body()).await;
    assert!(matches!(&stored, Err(Error::Invalid(why)) if why == "damaged"), "{stored:?}");
}

#[tokio::test]
async fn a_start_forgets_the_upload_before_a_recorded_push() {
    let mut ports = MockedPorts::with_a_box();
    ports.repositories.expect_pending().once().return_once(|| Ok(vec![pending(&hosted())]));
    let recorded = Deployment { id: id(), ..a_deployment().of(&hosted()).build() };
    let newest = recorded.clone();
    ports.deployments.expect_get().once().return_once(|_, _| Ok(Some(recorded)));
    ports.deployments.expect_newest().once().return_once(|_, _| Ok(vec![newest]));
    let upload = "refs/launchway/upload/main";
    let head = ports.repositories.expect_resolve().with(eq(hosted().id), eq(upload));
    head.once().return_once(|_, _| Ok(Some(hash('c'))));
    let moved = ports.repositories.expect_move_reference();
    moved
        .with(eq(hosted().id), eq(upload), eq(Some(hash('c'))), eq(None))
        .once()
        .return_once(|_, _, _, _| Ok(true));
    ports.repositories.expect_end().once().return_once(|_| Ok(()));
    ports.services().sources.recover().await.unwrap();
}
