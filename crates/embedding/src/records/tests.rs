mod queue;
mod storage;

use launchway_domain::{
    applications::{
        ApplicationSecrets, ApplicationState, Blueprint, Health, Port, Write as ApplicationWrite,
    },
    audit::Event,
    deployments::{
        ContainerRecord, ContainerState, DeploymentKind, DeploymentState, KeptVersions, Progress,
        Write as DeploymentWrite,
    },
    idempotency::{BodyHash, Write as IdempotencyWrite},
    jobs::{
        ClaimLimits, ClaimedJob, Heartbeat, JobKind, JobState, NewJob, Outcome, Pool, WorkerId,
        Write as JobWrite,
    },
    logs::{Level, NewLine},
    organizations::{Description, Role, Write as OrganizationWrite},
    secret::Sealed,
};
use uuid::Uuid;

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const LIMITS: ClaimLimits = ClaimLimits { builds: 2, operations: 1, per_organization: 2 };

impl Records {
    /// Carries out writes as one transaction, and checks that what is stored is what is in memory.
    fn unit(&mut self, writes: &[Write]) -> Result<(), StoreError> {
        self.keep();
        let before = self.snapshot();
        let done = self.transaction(|records| records.commit(writes), |_rows| Ok(()));
        if done.is_err() {
            assert_eq!(self.snapshot(), before, "a failed transaction changed something");
        }
        let loaded = Self::load(self.snapshot()).unwrap();
        assert_eq!(loaded.snapshot(), self.snapshot());
        done
    }
}

fn of(actors: &[&Actor]) -> Records {
    let mut records = Records::default();
    actors.iter().for_each(|actor| records.know(actor));
    records.keep();
    records
}

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

/// Returns a member of the organization `number`.
fn somebody(number: u128) -> Actor {
    let name = format!("Engines {number}");
    let engines = Organization::new(id(number).into(), name.parse().unwrap(), Description::default(), NOW);
    let email = format!("ada{number}@example.com");
    let ada = User::invited(id(number).into(), "ada".parse().unwrap(), email.parse().unwrap(), NOW);
    Actor::vouched_for(ada, engines, Role::Admin)
}

fn scope(number: u128) -> Scope {
    somebody(number).organization().unwrap()
}

fn worker(boot: u128) -> WorkerId {
    WorkerId { instance: id(1).into(), boot: id(boot).into(), worker: 1 }
}

fn entry() -> Write {
    let event = Event::new(audit::Action::Create, audit::Resource::Application, id(1), "did something");
    audit::Write::Append(audit::Entry::new(id(1).into(), somebody(1).author(), event, NOW)).into()
}

fn application(number: u128, owner: u128, name: &str) -> Application {
    let port = Port::try_from(80).unwrap();
    let [production, image] = ["production", "nginx:1"];
    let blueprint =
        Blueprint::of_image(name.parse().unwrap(), production.parse().unwrap(), image.parse().unwrap(), port);
    let sealed = || Sealed(String::new());
    let secrets =
        ApplicationSecrets { build_variables: sealed(), environment_variables: sealed(), credentials: None };
    let ada = somebody(owner);
    let organization = &ada.membership().unwrap().organization;
    Application::new(
        (id(number).into(), id(number).into()),
        organization,
        ada.user_id(),
        blueprint,
        secrets,
        NOW,
    )
}

fn insert(application: Application) -> Write {
    ApplicationWrite::Insert(Box::new(application)).into()
}

/// Returns the writes that request deployment `number` of application `of`, which belongs to `owner`.
fn request(number: u128, of: u128, owner: u128) -> Vec<Write> {
    let job = NewJob {
        id: id(100 + number).into(),
        kind: JobKind::Deploy,
        scope: scope(owner),
        subject: id(of).into(),
        replaceable: true,
        payload: id(number).to_string(),
        pool: Pool::Builds,
        run_at: NOW,
        enqueued_at: NOW,
    };
    let ids = (id(number).into(), id(number).into());
    let whose = (scope(owner).id(), id(of).into());
    let deployment = Deployment::new(ids, whose, DeploymentKind::Fresh, job.id, NOW);
    vec![
        JobWrite::Enqueue(job).into(),
        DeploymentWrite::Insert(deployment).into(),
        DeploymentWrite::FollowJobs { application: Some(id(of).into()), at: NOW }.into(),
        entry(),
    ]
}

/// Returns two applications: 1 of the first organization, 2 of the second one.
fn records() -> Records {
    let mut records = of(&[&somebody(1), &somebody(2)]);
    records.unit(&[insert(application(1, 1, "web")), insert(application(2, 2, "web")), entry()]).unwrap();
    records
}

/// Returns the same with deployment 11 of application 1 running.
fn under_way() -> (Records, ClaimedJob) {
    let mut records = records();
    records.unit(&request(11, 1, 1)).unwrap();
    let claimed = records.claim(worker(1), LIMITS, NOW, NOW + chrono::TimeDelta::seconds(30)).unwrap();
    (records, claimed)
}

fn advance(number: u128, to: DeploymentState) -> Write {
    let progress = Progress { state: Some(to), ..Progress::default() };
    DeploymentWrite::Advance { id: id(number).into(), progress, at: NOW }.into()
}

fn go_live(number: u128) -> Write {
    DeploymentWrite::GoLive { id: id(number).into(), at: NOW }.into()
}

fn follow() -> Write {
    DeploymentWrite::FollowJobs { application: None, at: NOW }.into()
}

fn settle(claimed: &ClaimedJob, outcome: Outcome) -> Write {
    JobWrite::Settle { lease: claimed.lease, outcome, at: NOW }.into()
}

fn state_of(records: &Records, number: u128) -> DeploymentState {
    records.deployment(scope(1), id(number).into()).unwrap().status.state
}

fn is_stale(committed: Result<(), StoreError>) -> bool {
    matches!(committed, Err(StoreError::Stale))
}

#[test]
fn a_unit_takes_effect_whole_or_not_at_all() {
    let mut records = records();
    let mut writes = request(11, 1, 1);
    writes.push(go_live(11));
    assert!(is_stale(records.unit(&writes)));
    assert_eq!((records.deployments().count(), records.counts()["audit entries"]), (0, 1));
    assert!(matches!(records.unit(&[insert(application(3, 1, "api"))]), Err(StoreError::Unaudited)));
}

#[test]
fn what_no_deployment_writes_is_refused() {
    let mut records = records();
    let write = OrganizationWrite::Delete { scope: scope(1), at: NOW }.into();
    assert!(matches!(records.unit(&[write, entry()]), Err(StoreError::Internal(_))));
}

#[test]
fn names_and_hosts_are_unique() {
    let mut records = records();
    let again = records.unit(&[insert(application(3, 1, "web")), entry()]);
    assert!(matches!(again, Err(StoreError::Taken(Unique::ApplicationName))));
    let other = Application { organization_id: scope(2).id(), ..application(3, 1, "web") };
    let other = Application { blueprint: application(3, 2, "api").blueprint, ..other };
    records.unit(&[insert(other), entry()]).unwrap();
    let hosts: Vec<&str> = records.applications().map(|found| found.automatic_host.as_str()).collect();
    assert_eq!(hosts, ["web.engines-1.localhost", "web.engines-2.localhost", "web-2.engines-1.localhost"]);
    let add = |number: u128| ApplicationWrite::AddDomain {
        scope: scope(number),
        id: id(number).into(),
        domain: "www.example.com".parse().unwrap(),
        at: NOW,
    };
    records.unit(&[add(1).into(), entry()]).unwrap();
    let taken = records.unit(&[add(2).into(), entry()]);
    assert!(matches!(taken, Err(StoreError::Taken(Unique::Domain))));
    assert!(records.is_named("www.example.com") && !records.is_named("example.com"));
}

#[test]
fn a_change_is_refused_when_somebody_else_made_one_meanwhile() {
    let mut records = records();
    let update = |seen: Option<Timestamp>, at: Timestamp| {
        let Application { blueprint, secrets, .. } = application(1, 1, "shop");
        let blueprint = Box::new(blueprint);
        ApplicationWrite::Update { scope: scope(1), id: id(1).into(), seen, blueprint, secrets, at }.into()
    };
    let later = NOW + chrono::TimeDelta::seconds(1);
    records.unit(&[update(Some(NOW), later), entry()]).unwrap();
    assert!(is_stale(records.unit(&[update(Some(NOW), later), entry()])), "it was changed since");
    records.unit(&[update(Some(later), later), entry()]).unwrap();
    records.unit(&[update(None, later), entry()]).unwrap();
}

#[test]
fn keeps_the_newest_versions_and_their_rollback_targets() {
    let mut records = records();
    for number in 11..=14 {
        records.unit(&request(number, 1, 1)).unwrap();
        let claimed = records.claim(worker(1), LIMITS, NOW, NOW).unwrap();
        records.unit(&[advance(number, DeploymentState::Deploying), go_live(number)]).unwrap();
        records.unit(&[settle(&claimed, Outcome::Succeeded), follow()]).unwrap();
    }
    let stay = |records: &Records, kept: u16| -> Vec<u128> {
        let retention_status = |number| records.retention_status(id(number).into(), KeptVersions(kept));
        (11..=20).filter(|number| retention_status(*number).is_some_and(|one| one.is_worth_keeping)).collect()
    };
    assert_eq!(stay(&records, 10), [11, 12, 13, 14]);
    assert_eq!(stay(&records, 2), [13, 14]);
    assert_eq!(stay(&records, 0), [14], "the live one stays");
    let retention_status = records.retention_status(id(14).into(), KeptVersions(0)).unwrap();
    assert!(retention_status.is_live && !retention_status.is_open);
    assert!(records.retention_status(id(19).into(), KeptVersions(10)).is_none(), "nobody knows it");

    let mut back = request(15, 1, 1);
    for write in &mut back {
        if let Write::Deployment(DeploymentWrite::Insert(deployment)) = write {
            deployment.kind = DeploymentKind::Rollback { to: id(11).into() };
        }
    }
    records.unit(&back).unwrap();
    assert_eq!(stay(&records, 2), [11, 13, 14], "one that waits goes back to it");
    records
        .unit(&[ApplicationWrite::Delete { scope: scope(1), id: id(1).into(), at: NOW }.into(), entry()])
        .unwrap();
    assert!(stay(&records, 10).is_empty(), "their application is gone");
}

#[test]
fn deletes_old_finished_jobs_except_stops() {
    let (mut records, claimed) = under_way();
    let later = NOW + chrono::TimeDelta::seconds(1);
    assert_eq!(records.forget_jobs(later), 0, "it runs");
    records.unit(&[settle(&claimed, Outcome::Succeeded), follow()]).unwrap();
    assert_eq!(records.forget_jobs(NOW), 0, "it was not over before");
    assert_eq!(records.forget_jobs(later), 1);

    let mut stop = request(12, 1, 1);
    for write in &mut stop {
        if let Write::Job(JobWrite::Enqueue(job)) = write {
            job.kind = JobKind::Stop;
        }
    }
    records.unit(&stop).unwrap();
    let claimed = records.claim(worker(1), LIMITS, NOW, NOW).unwrap();
    records.unit(&[settle(&claimed, Outcome::Succeeded), follow()]).unwrap();
    assert_eq!(records.forget_jobs(later), 0);
    assert!(records.job(scope(1), claimed.job.id).is_some());
}

#[test]
fn nobody_sees_what_is_another_organizations() {
    let (records, claimed) = under_way();
    assert!(records.application(scope(2), id(1).into()).is_none());
    assert!(records.deployment(scope(2), id(11).into()).is_none());
    assert!(records.job(scope(2), claimed.job.id).is_none());
    assert!(records.application(scope(1), id(1).into()).is_some());
    assert!(records.job(scope(1), claimed.job.id).is_some());
}

#[test]
fn a_deployment_goes_forward_and_its_application_follows() {
    let (mut records, claimed) = under_way();
    let writes = [JobWrite::Prove(claimed.lease).into(), advance(11, DeploymentState::Deploying)];
    records.unit(&writes).unwrap();
    assert!(is_stale(records.unit(&[advance(11, DeploymentState::Cloning)])));
    records.unit(&[go_live(11), advance(11, DeploymentState::Deployed)]).unwrap();
    records.unit(&[settle(&claimed, Outcome::Succeeded), follow()]).unwrap();
    let application = records.application(scope(1), id(1).into()).unwrap().application;
    assert_eq!(
        (application.live, application.status.state),
        (Some(id(11).into()), ApplicationState::Running)
    );
    assert_eq!(state_of(&records, 11), DeploymentState::Deployed);
    assert!(is_stale(records.unit(&[JobWrite::Prove(claimed.lease).into()])));
}

#[test]
fn a_deployment_follows_its_job_to_the_end_and_says_why() {
    let (mut records, claimed) = under_way();
    let reason = "no such image".to_owned();
    records.unit(&[settle(&claimed, Outcome::Failed { reason }), follow()]).unwrap();
    assert_eq!(state_of(&records, 11), DeploymentState::Failed);
    let last = records.lines.values().next_back().map(|line| (line.number, line.text.as_str()));
    assert_eq!(last, Some((1, "Failed: no such image")));
    let application = records.application(scope(1), id(1).into()).unwrap().application;
    assert_eq!(application.status.state, ApplicationState::Failed);
}

#[test]
fn a_version_that_is_live_only_goes_forward() {
    let (mut records, claimed) = under_way();
    records.unit(&[advance(11, DeploymentState::Deploying), go_live(11)]).unwrap();
    records.give_back(&claimed.lease, "lost", true, (NOW, NOW)).unwrap();
    records.unit(&[follow()]).unwrap();
    assert_eq!(state_of(&records, 11), DeploymentState::Deploying);
    let again = records.claim(worker(1), LIMITS, NOW, NOW).unwrap();
    let reason = "gave up".to_owned();
    records.unit(&[settle(&again, Outcome::Failed { reason }), follow()]).unwrap();
    assert_eq!(state_of(&records, 11), DeploymentState::Deployed);
}

#[test]
fn a_newer_job_supersedes_a_queued_but_no_running_one() {
    let (mut records, _claimed) = under_way();
    records.unit(&request(12, 1, 1)).unwrap();
    records.unit(&request(13, 1, 1)).unwrap();
    let states = [11, 12, 13].map(|number| state_of(&records, number));
    assert_eq!(states, [DeploymentState::Queued, DeploymentState::Cancelled, DeploymentState::Queued]);
    let last = records.lines.values().next_back().map(|line| line.text.clone());
    assert_eq!(last, Some(format!("Cancelled: replaced by deployment {}", id(13))));
}

#[test]
fn carries_out_a_repeated_request_once_within_retention() {
    let mut records = records();
    let key = IdempotencyKey {
        scope: scope(1),
        user_id: id(1).into(),
        operation: "deploy".to_owned(),
        name: "first".parse().unwrap(),
        body: BodyHash::of(b""),
    };
    let claim = |at: Timestamp| {
        let since = at - IdempotencyKey::KEPT;
        IdempotencyWrite::Claim { key: key.clone(), resource: id(1), since, at }.into()
    };
    records.unit(&[claim(NOW)]).unwrap();
    let twin = records.unit(&[claim(NOW + IdempotencyKey::KEPT - chrono::TimeDelta::seconds(1))]);
    assert!(matches!(twin, Err(StoreError::Taken(Unique::IdempotencyKey))));
    records.unit(&[claim(NOW + IdempotencyKey::KEPT)]).unwrap();
}

#[test]
fn logs_are_numbered_by_application_and_keep_their_numbers() {
    let mut records = records();
    let line = |of: u128| NewLine {
        application_id: id(of).into(),
        deployment_id: id(11).into(),
        level: Level::Info,
        text: "hello".to_owned(),
        at: NOW,
    };
    records.append(&[line(1), line(2), line(1), line(9)]);
    assert_eq!(records.trim_lines(1), 1);
    records.append(&[line(1)]);
    let numbers: Vec<_> = records.lines.values().map(|line| (line.application_id, line.number)).collect();
    assert_eq!(numbers, [(id(1).into(), 2), (id(1).into(), 3), (id(2).into(), 1)]);
}

fn a_container(digit: &str) -> ContainerRecord {
    ContainerRecord {
        id: digit.repeat(64).parse().unwrap(),
        name: format!("web-{digit}"),
        state: ContainerState::Running,
        address: Some([10, 0, 0, 7].into()),
        port: Port::try_from(80).unwrap(),
    }
}

#[test]
fn only_a_live_version_gets_another_container() {
    let (mut records, _claimed) = under_way();
    let replace = || DeploymentWrite::ReplaceContainer {
        id: id(11).into(),
        container: a_container("2"),
        further_copies: vec![],
        at: NOW,
    };
    let progress = Progress {
        state: Some(DeploymentState::Deploying),
        container: Some(a_container("1")),
        ..Progress::default()
    };
    let advance = DeploymentWrite::Advance { id: id(11).into(), progress, at: NOW };
    records.unit(&[advance.into()]).unwrap();
    assert!(is_stale(records.unit(&[replace().into()])), "it is not live yet");
    records.unit(&[go_live(11), replace().into()]).unwrap();
    let recorded = records.deployment(scope(1), id(11).into()).unwrap().container.clone();
    assert_eq!(recorded, Some(a_container("2")));
}

#[test]
fn health_is_set_only_while_a_version_is_to_run() {
    let (mut records, _claimed) = under_way();
    let set = |health: Health| {
        let deployment = id(11).into();
        vec![ApplicationWrite::SetHealth { deployment, health, at: NOW }.into()]
    };
    let broken = || set(Health::Broken("it exited".to_owned()));
    let shown = |records: &Records| {
        let summary = records.application(scope(1), id(1).into()).unwrap();
        (summary.application.status.state, summary.breakdown)
    };
    records.unit(&[advance(11, DeploymentState::Deploying)]).unwrap();
    assert!(is_stale(records.unit(&broken())), "it is not live");
    records.unit(&[go_live(11)]).unwrap();
    records.unit(&broken()).unwrap();
    assert_eq!(shown(&records), (ApplicationState::Failed, Some("it exited".to_owned())));
    records.unit(&set(Health::Healthy)).unwrap();
    assert_eq!(shown(&records), (ApplicationState::Running, None));
    records.unit(&broken()).unwrap();
    let stop = ApplicationWrite::SetStopped { scope: scope(1), id: id(1).into(), is_stopped: true, at: NOW };
    records.unit(&[stop.into(), entry()]).unwrap();
    assert!(is_stale(records.unit(&broken())), "it is stopped");
    assert_eq!(shown(&records), (ApplicationState::Stopped, None));
}
