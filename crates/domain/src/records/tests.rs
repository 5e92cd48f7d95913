use uuid::Uuid;

use super::*;
use crate::{
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
    logs::Level,
    organizations::{Description, Role, Write as OrganizationWrite},
    secret::Sealed,
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const LIMITS: ClaimLimits = ClaimLimits { builds: 2, operations: 1, per_organization: 2 };

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
    let mut records = Records::of(&[&somebody(1), &somebody(2)]);
    records.commit(&[insert(application(1, 1, "web")), insert(application(2, 2, "web")), entry()]).unwrap();
    records
}

/// Returns the same with deployment 11 of application 1 running.
fn under_way() -> (Records, ClaimedJob) {
    let mut records = records();
    records.commit(&request(11, 1, 1)).unwrap();
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
    assert!(is_stale(records.commit(&writes)));
    assert_eq!((records.deployments().count(), records.audit_log().len()), (0, 1));
    assert!(matches!(records.commit(&[insert(application(3, 1, "api"))]), Err(StoreError::Unaudited)));
}

#[test]
fn what_no_deployment_writes_is_refused() {
    let mut records = records();
    let write = OrganizationWrite::Delete { scope: scope(1), at: NOW }.into();
    assert!(matches!(records.commit(&[write, entry()]), Err(StoreError::Internal(_))));
}

#[test]
fn names_and_hosts_are_unique() {
    let mut records = records();
    let again = records.commit(&[insert(application(3, 1, "web")), entry()]);
    assert!(matches!(again, Err(StoreError::Taken(Unique::ApplicationName))));
    let other = Application { organization_id: scope(2).id(), ..application(3, 1, "web") };
    let other = Application { blueprint: application(3, 2, "api").blueprint, ..other };
    records.commit(&[insert(other), entry()]).unwrap();
    let hosts: Vec<&str> = records.applications().map(|found| found.automatic_host.as_str()).collect();
    assert_eq!(hosts, ["web.engines-1.localhost", "web.engines-2.localhost", "web-2.engines-1.localhost"]);
    let add = |number: u128| ApplicationWrite::AddDomain {
        scope: scope(number),
        id: id(number).into(),
        domain: "www.example.com".parse().unwrap(),
        at: NOW,
    };
    records.commit(&[add(1).into(), entry()]).unwrap();
    let taken = records.commit(&[add(2).into(), entry()]);
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
    records.commit(&[update(Some(NOW), later), entry()]).unwrap();
    assert!(is_stale(records.commit(&[update(Some(NOW), later), entry()])), "it was changed since");
    records.commit(&[update(Some(later), later), entry()]).unwrap();
    records.commit(&[update(None, later), entry()]).unwrap();
}

#[test]
fn keeps_the_newest_versions_and_their_rollback_targets() {
    let mut records = records();
    for number in 11..=14 {
        records.commit(&request(number, 1, 1)).unwrap();
        let claimed = records.claim(worker(1), LIMITS, NOW, NOW).unwrap();
        records.commit(&[advance(number, DeploymentState::Deploying), go_live(number)]).unwrap();
        records.commit(&[settle(&claimed, Outcome::Succeeded), follow()]).unwrap();
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
    records.commit(&back).unwrap();
    assert_eq!(stay(&records, 2), [11, 13, 14], "one that waits goes back to it");
    records
        .commit(&[ApplicationWrite::Delete { scope: scope(1), id: id(1).into(), at: NOW }.into(), entry()])
        .unwrap();
    assert!(stay(&records, 10).is_empty(), "their application is gone");
}

#[test]
fn deletes_old_finished_jobs_except_stops() {
    let (mut records, claimed) = under_way();
    let later = NOW + chrono::TimeDelta::seconds(1);
    assert_eq!(records.forget_jobs(later), 0, "it runs");
    records.commit(&[settle(&claimed, Outcome::Succeeded), follow()]).unwrap();
    assert_eq!(records.forget_jobs(NOW), 0, "it was not over before");
    assert_eq!(records.forget_jobs(later), 1);

    let mut stop = request(12, 1, 1);
    for write in &mut stop {
        if let Write::Job(JobWrite::Enqueue(job)) = write {
            job.kind = JobKind::Stop;
        }
    }
    records.commit(&stop).unwrap();
    let claimed = records.claim(worker(1), LIMITS, NOW, NOW).unwrap();
    records.commit(&[settle(&claimed, Outcome::Succeeded), follow()]).unwrap();
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
    records.commit(&writes).unwrap();
    assert!(is_stale(records.commit(&[advance(11, DeploymentState::Cloning)])));
    records.commit(&[go_live(11), advance(11, DeploymentState::Deployed)]).unwrap();
    records.commit(&[settle(&claimed, Outcome::Succeeded), follow()]).unwrap();
    let application = records.application(scope(1), id(1).into()).unwrap().application;
    assert_eq!(
        (application.live, application.status.state),
        (Some(id(11).into()), ApplicationState::Running)
    );
    assert_eq!(state_of(&records, 11), DeploymentState::Deployed);
    assert!(is_stale(records.commit(&[JobWrite::Prove(claimed.lease).into()])));
}

#[test]
fn a_deployment_follows_its_job_to_the_end_and_says_why() {
    let (mut records, claimed) = under_way();
    let reason = "no such image".to_owned();
    records.commit(&[settle(&claimed, Outcome::Failed { reason }), follow()]).unwrap();
    assert_eq!(state_of(&records, 11), DeploymentState::Failed);
    let last = records.lines().last().map(|line| (line.number, line.text.as_str()));
    assert_eq!(last, Some((1, "Failed: no such image")));
    let application = records.application(scope(1), id(1).into()).unwrap().application;
    assert_eq!(application.status.state, ApplicationState::Failed);
}

#[test]
fn a_version_that_is_live_only_goes_forward() {
    let (mut records, claimed) = under_way();
    records.commit(&[advance(11, DeploymentState::Deploying), go_live(11)]).unwrap();
    records.give_back(&claimed.lease, "lost", true, (NOW, NOW)).unwrap();
    records.commit(&[follow()]).unwrap();
    assert_eq!(state_of(&records, 11), DeploymentState::Deploying);
    let again = records.claim(worker(1), LIMITS, NOW, NOW).unwrap();
    let reason = "gave up".to_owned();
    records.commit(&[settle(&again, Outcome::Failed { reason }), follow()]).unwrap();
    assert_eq!(state_of(&records, 11), DeploymentState::Deployed);
}

#[test]
fn a_newer_job_supersedes_a_queued_but_no_running_one() {
    let (mut records, _claimed) = under_way();
    records.commit(&request(12, 1, 1)).unwrap();
    records.commit(&request(13, 1, 1)).unwrap();
    let states = [11, 12, 13].map(|number| state_of(&records, number));
    assert_eq!(states, [DeploymentState::Queued, DeploymentState::Cancelled, DeploymentState::Queued]);
    let last = records.lines().last().map(|line| line.text.clone());
    assert_eq!(last, Some(format!("Cancelled: replaced by deployment {}", id(13))));
}

#[test]
fn of_one_subject_one_job_runs_and_limits_hold() {
    let (mut records, _claimed) = under_way();
    records.commit(&request(12, 1, 1)).unwrap();
    assert!(records.claim(worker(1), LIMITS, NOW, NOW).is_none(), "the subject is busy");
    records.commit(&request(21, 2, 2)).unwrap();
    let narrow = ClaimLimits { builds: 1, ..LIMITS };
    assert!(records.claim(worker(1), narrow, NOW, NOW).is_none(), "enough run");
    let early = NOW - chrono::TimeDelta::seconds(1);
    assert!(records.claim(worker(1), LIMITS, early, NOW).is_none(), "nothing is due");
    assert_eq!(records.claim(worker(1), LIMITS, NOW, NOW).unwrap().job.id, id(121).into());
}

#[test]
fn who_has_fewest_running_is_served_next() {
    let mut records = records();
    records.commit(&[insert(application(3, 1, "api")), entry()]).unwrap();
    for (number, of, owner) in [(11, 1, 1), (12, 3, 1), (21, 2, 2)] {
        records.commit(&request(number, of, owner)).unwrap();
    }
    let claimed: Vec<_> =
        (0..2).map(|_| records.claim(worker(1), LIMITS, NOW, NOW).unwrap().job.id).collect();
    assert_eq!(claimed, [id(111).into(), id(121).into()]);
}

#[test]
fn a_lease_holds_until_it_is_lost() {
    let (mut records, claimed) = under_way();
    let later = NOW + chrono::TimeDelta::seconds(29);
    assert!(records.rescue(id(1).into(), id(1).into(), later).is_empty(), "it holds");
    assert_eq!(records.heartbeat(&claimed.lease, later), Heartbeat::Held);
    let rescued = records.rescue(id(1).into(), id(1).into(), later);
    assert_eq!(rescued.iter().map(|one| one.job.state).collect::<Vec<_>>(), [JobState::Queued]);
    assert_eq!(records.heartbeat(&claimed.lease, later), Heartbeat::Lost);
    records.claim(worker(1), LIMITS, later, later + chrono::TimeDelta::hours(1)).unwrap();
    assert_eq!(records.rescue(id(1).into(), id(2).into(), later).len(), 1, "an earlier run is over");
}

#[test]
fn attempts_are_used_up_unless_the_worker_had_to_stop() {
    let (mut records, mut claimed) = under_way();
    for expected in [JobState::Queued, JobState::Queued, JobState::Queued, JobState::Failed] {
        let counts = claimed.lease.attempt > 1;
        let state = records.give_back(&claimed.lease, "did not work", counts, (NOW, NOW)).unwrap();
        assert_eq!(state, expected);
        if let Some(next) = records.claim(worker(1), LIMITS, NOW, NOW) {
            claimed = next;
        }
    }
}

#[test]
fn what_waits_is_cancelled_at_once_and_what_runs_is_told() {
    let (mut records, claimed) = under_way();
    let cancel = |number: u128| JobWrite::RequestCancel { scope: scope(1), id: id(number).into(), at: NOW };
    records.commit(&request(12, 1, 1)).unwrap();
    records.commit(&[cancel(112).into(), follow(), entry()]).unwrap();
    assert_eq!(state_of(&records, 12), DeploymentState::Cancelled);
    records.commit(&[cancel(111).into(), entry()]).unwrap();
    assert_eq!(records.heartbeat(&claimed.lease, NOW), Heartbeat::CancelRequested);
    assert!(is_stale(records.commit(&[cancel(112).into(), entry()])), "it is over");
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
    records.commit(&[claim(NOW)]).unwrap();
    let twin = records.commit(&[claim(NOW + IdempotencyKey::KEPT - chrono::TimeDelta::seconds(1))]);
    assert!(matches!(twin, Err(StoreError::Taken(Unique::IdempotencyKey))));
    records.commit(&[claim(NOW + IdempotencyKey::KEPT)]).unwrap();
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
    assert_eq!(records.trim(1), 1);
    records.append(&[line(1)]);
    let numbers: Vec<_> = records.lines().iter().map(|line| (line.application_id, line.number)).collect();
    assert_eq!(numbers, [(id(2).into(), 1), (id(1).into(), 2), (id(1).into(), 3)]);
}

/// Returns an operation on application `of`, which belongs to `owner`.
fn operation(number: u128, of: u128, owner: u128) -> Write {
    JobWrite::Enqueue(NewJob {
        id: id(number).into(),
        kind: JobKind::Restart,
        scope: scope(owner),
        subject: id(of).into(),
        replaceable: true,
        payload: String::new(),
        pool: Pool::Operations,
        run_at: NOW,
        enqueued_at: NOW,
    })
    .into()
}

#[test]
fn a_full_pool_holds_up_no_other() {
    let mut records = records();
    records.commit(&[insert(application(3, 1, "api")), insert(application(4, 1, "db")), entry()]).unwrap();
    for (number, of) in [(11, 1), (12, 3), (13, 4)] {
        records.commit(&request(number, of, 1)).unwrap();
    }
    let claim = |records: &mut Records| records.claim(worker(1), LIMITS, NOW, NOW).map(|one| one.job.id);
    let claimed = [(); 3].map(|()| claim(&mut records));
    assert_eq!(claimed, [Some(id(111).into()), Some(id(112).into()), None], "two builds run");
    records.commit(&[operation(201, 4, 1), operation(202, 2, 2)]).unwrap();
    assert_eq!(claim(&mut records), Some(id(202).into()), "who was served longest ago is next");
    assert_eq!(claim(&mut records), None, "one operation runs");
    let subjects: Vec<_> = records.running().map(|job| job.subject).collect();
    assert_eq!(subjects, [id(1).into(), id(3).into(), id(2).into()]);
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
    let replace =
        || DeploymentWrite::ReplaceContainer { id: id(11).into(), container: a_container("2"), at: NOW };
    let progress = Progress {
        state: Some(DeploymentState::Deploying),
        container: Some(a_container("1")),
        ..Progress::default()
    };
    let advance = DeploymentWrite::Advance { id: id(11).into(), progress, at: NOW };
    records.commit(&[advance.into()]).unwrap();
    assert!(is_stale(records.commit(&[replace().into()])), "it is not live yet");
    records.commit(&[go_live(11), replace().into()]).unwrap();
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
    records.commit(&[advance(11, DeploymentState::Deploying)]).unwrap();
    assert!(is_stale(records.commit(&broken())), "it is not live");
    records.commit(&[go_live(11)]).unwrap();
    records.commit(&broken()).unwrap();
    assert_eq!(shown(&records), (ApplicationState::Failed, Some("it exited".to_owned())));
    records.commit(&set(Health::Healthy)).unwrap();
    assert_eq!(shown(&records), (ApplicationState::Running, None));
    records.commit(&broken()).unwrap();
    let stop = ApplicationWrite::SetStopped { scope: scope(1), id: id(1).into(), is_stopped: true, at: NOW };
    records.commit(&[stop.into(), entry()]).unwrap();
    assert!(is_stale(records.commit(&broken())), "it is stopped");
    assert_eq!(shown(&records), (ApplicationState::Stopped, None));
}
