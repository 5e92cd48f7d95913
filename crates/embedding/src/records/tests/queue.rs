//! The job queue of the records.

use super::*;

#[test]
fn of_one_subject_one_job_runs_and_limits_hold() {
    let (mut records, _claimed) = under_way();
    records.unit(&request(12, 1, 1)).unwrap();
    assert!(records.claim(worker(1), LIMITS, NOW, NOW).is_none(), "the subject is busy");
    records.unit(&request(21, 2, 2)).unwrap();
    let narrow = ClaimLimits { builds: 1, ..LIMITS };
    assert!(records.claim(worker(1), narrow, NOW, NOW).is_none(), "enough run");
    let early = NOW - chrono::TimeDelta::seconds(1);
    assert!(records.claim(worker(1), LIMITS, early, NOW).is_none(), "nothing is due");
    assert_eq!(records.claim(worker(1), LIMITS, NOW, NOW).unwrap().job.id, id(121).into());
}

#[test]
fn the_limit_of_a_pool_is_that_of_each_instance() {
    let (mut records, claimed) = under_way();
    records.unit(&request(21, 2, 2)).unwrap();
    let narrow = ClaimLimits { builds: 1, ..LIMITS };
    assert!(records.claim(claimed.lease.worker, narrow, NOW, NOW).is_none(), "it has its one build");
    let other = WorkerId { instance: id(99).into(), ..claimed.lease.worker };
    assert_eq!(records.claim(other, narrow, NOW, NOW).unwrap().job.id, id(121).into());
}

#[test]
fn who_has_fewest_running_is_served_next() {
    let mut records = records();
    records.unit(&[insert(application(3, 1, "api")), entry()]).unwrap();
    for (number, of, owner) in [(11, 1, 1), (12, 3, 1), (21, 2, 2)] {
        records.unit(&request(number, of, owner)).unwrap();
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
    records.unit(&request(12, 1, 1)).unwrap();
    records.unit(&[cancel(112).into(), follow(), entry()]).unwrap();
    assert_eq!(state_of(&records, 12), DeploymentState::Cancelled);
    records.unit(&[cancel(111).into(), entry()]).unwrap();
    assert_eq!(records.heartbeat(&claimed.lease, NOW), Heartbeat::CancelRequested);
    assert!(is_stale(records.unit(&[cancel(112).into(), entry()])), "it is over");
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
    records.unit(&[insert(application(3, 1, "api")), insert(application(4, 1, "db")), entry()]).unwrap();
    for (number, of) in [(11, 1), (12, 3), (13, 4)] {
        records.unit(&request(number, of, 1)).unwrap();
    }
    let claim = |records: &mut Records| records.claim(worker(1), LIMITS, NOW, NOW).map(|one| one.job.id);
    let claimed = [(); 3].map(|()| claim(&mut records));
    assert_eq!(claimed, [Some(id(111).into()), Some(id(112).into()), None], "two builds run");
    records.unit(&[operation(201, 4, 1), operation(202, 2, 2)]).unwrap();
    assert_eq!(claim(&mut records), Some(id(202).into()), "who was served longest ago is next");
    assert_eq!(claim(&mut records), None, "one operation runs");
    let subjects: Vec<_> = records.running().map(|job| job.subject).collect();
    assert_eq!(subjects, [id(1).into(), id(3).into(), id(2).into()]);
}
