//! Allowed and rejected state changes of runs and their steps.

use launchway_database::Database;
use launchway_domain::ids::ExecutionId;

use super::{
    Execution, RunWithSteps, S, a_run, a_run_of, an_entry, begin, begin_step, end_step, finish, now, request,
};
use crate::builders::{Resident, at, id, is_stale};

contract!(
    a_run_begins_on_a_machine,
    a_step_begins_and_ends,
    a_run_ends_with_the_given_outcome,
    pending_steps_are_cancelled_and_the_running_one_ends,
    steps_that_are_over_stay_as_they_are,
    no_run_makes_a_move_that_the_domain_does_not_know,
    no_step_makes_a_move_that_the_domain_does_not_know,
    nothing_ends_in_a_state_from_which_it_goes_on,
    what_is_not_there_does_not_move,
    a_run_moves_alone,
);

async fn a_run_begins_on_a_machine(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (run, steps) = a_run(&db, &ada).await;
    begin(&db, run.id).await.unwrap();
    let expected = Execution {
        state: S::Running,
        server_hostname: "box".to_owned(),
        started_at: Some(at(2)),
        ..run.clone()
    };
    assert_eq!(now(&db, &run).await, (expected, steps));
}

async fn a_step_begins_and_ends(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    for (number, end) in [(1, S::Completed), (2, S::Failed), (3, S::Cancelled)] {
        let (run, mut steps) = a_run_of(&ada, &an_entry(&db).await).numbered(number).with_steps();
        request(&db, (run.clone(), steps.clone()), false).await.unwrap();
        begin_step(&db, run.id, 2).await.unwrap();
        (steps[1].state, steps[1].started_at) = (S::Running, Some(at(3)));
        assert_eq!(now(&db, &run).await.1, steps);
        end_step(&db, run.id, 2, end).await.unwrap();
        (steps[1].state, steps[1].exit_code, steps[1].completed_at) = (end, 7, Some(at(4)));
        assert_eq!(now(&db, &run).await, (run, steps));
    }
}

async fn a_run_ends_with_the_given_outcome(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    for (number, end) in [(1, S::Completed), (2, S::Failed), (3, S::Cancelled)] {
        let (run, _) = a_run_of(&ada, &an_entry(&db).await).numbered(number).with_steps();
        request(&db, (run.clone(), vec![]), false).await.unwrap();
        begin(&db, run.id).await.unwrap();
        let before = now(&db, &run).await.0;
        finish(&db, run.id, end).await.unwrap();
        let expected = Execution {
            state: end,
            exit_code: 9,
            error_message: "why".to_owned(),
            completed_at: Some(at(5)),
            ..before
        };
        assert_eq!(now(&db, &run).await.0, expected);
    }
}

async fn pending_steps_are_cancelled_and_the_running_one_ends(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    for (number, end) in [(1, S::Completed), (2, S::Failed), (3, S::Cancelled)] {
        let (run, mut steps) = a_run_of(&ada, &an_entry(&db).await).numbered(number).with_steps();
        request(&db, (run.clone(), steps.clone()), false).await.unwrap();
        begin(&db, run.id).await.unwrap();
        begin_step(&db, run.id, 1).await.unwrap();
        finish(&db, run.id, end).await.unwrap();
        (steps[0].state, steps[0].exit_code, steps[0].started_at) = (end, 9, Some(at(3)));
        steps[1].state = S::Cancelled;
        steps[2].state = S::Cancelled;
        for step in &mut steps {
            step.completed_at = Some(at(5));
        }
        assert_eq!(now(&db, &run).await.1, steps);
    }
}

async fn steps_that_are_over_stay_as_they_are(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (run, _) = a_run(&db, &ada).await;
    begin(&db, run.id).await.unwrap();
    for (order, end) in [(1, S::Completed), (2, S::Failed), (3, S::Cancelled)] {
        begin_step(&db, run.id, order).await.unwrap();
        end_step(&db, run.id, order, end).await.unwrap();
    }
    let before = now(&db, &run).await.1;
    finish(&db, run.id, S::Failed).await.unwrap();
    assert_eq!(now(&db, &run).await.1, before);
}

/// Advances a pending run to a state.
async fn bring_run(db: &Database, id: ExecutionId, to: S) {
    if to != S::Pending {
        begin(db, id).await.unwrap();
    }
    if to.is_final() {
        finish(db, id, to).await.unwrap();
    }
}

async fn no_run_makes_a_move_that_the_domain_does_not_know(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let entry = an_entry(&db).await;
    let mut number = 0;
    for from in S::ALL.iter().copied() {
        for to in S::ALL.iter().copied().filter(|to| *to != S::Pending) {
            number += 1;
            let (run, steps) = a_run_of(&ada, &entry).numbered(number).with_steps();
            request(&db, (run.clone(), steps), false).await.unwrap();
            bring_run(&db, run.id, from).await;
            let before = now(&db, &run).await;
            let outcome =
                if to == S::Running { begin(&db, run.id).await } else { finish(&db, run.id, to).await };
            let after = now(&db, &run).await;
            match from.advance(to) {
                Ok(_) => assert!(outcome.is_ok() && after.0.state == to, "{from:?} to {to:?}"),
                Err(_) => assert!(is_stale(&outcome) && after == before, "{from:?} to {to:?}"),
            }
        }
    }
}

async fn no_step_makes_a_move_that_the_domain_does_not_know(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let entry = an_entry(&db).await;
    let mut number = 0;
    for from in S::ALL.iter().copied() {
        for to in S::ALL.iter().copied().filter(|to| *to != S::Pending) {
            number += 1;
            let (run, steps) = a_run_of(&ada, &entry).numbered(number).with_steps();
            request(&db, (run.clone(), steps), false).await.unwrap();
            if from != S::Pending {
                begin_step(&db, run.id, 1).await.unwrap();
            }
            if from.is_final() {
                end_step(&db, run.id, 1, from).await.unwrap();
            }
            let before = now(&db, &run).await;
            let outcome = match to {
                S::Running => begin_step(&db, run.id, 1).await,
                to => end_step(&db, run.id, 1, to).await,
            };
            // A step that waits ends with its run alone.
            let is_legal = from.advance(to).is_ok() && (to == S::Running || from == S::Running);
            let after = now(&db, &run).await;
            if is_legal {
                assert!(outcome.is_ok() && after.1[0].state == to, "{from:?} to {to:?}");
            } else {
                assert!(is_stale(&outcome) && after == before, "{from:?} to {to:?}");
            }
        }
    }
}

async fn nothing_ends_in_a_state_from_which_it_goes_on(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (run, _) = a_run(&db, &ada).await;
    for state in [S::Pending, S::Running] {
        assert!(is_stale(&finish(&db, run.id, state).await));
    }
    begin(&db, run.id).await.unwrap();
    begin_step(&db, run.id, 1).await.unwrap();
    let before = now(&db, &run).await;
    for state in [S::Pending, S::Running] {
        assert!(is_stale(&finish(&db, run.id, state).await));
        assert!(is_stale(&end_step(&db, run.id, 1, state).await));
    }
    assert_eq!(now(&db, &run).await, before);
}

async fn what_is_not_there_does_not_move(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (run, _) = a_run(&db, &ada).await;
    assert!(is_stale(&begin(&db, id()).await) && is_stale(&finish(&db, id(), S::Failed).await));
    for (execution, order) in [(id(), 1), (run.id, 0), (run.id, 4)] {
        assert!(is_stale(&begin_step(&db, execution, order).await));
        assert!(is_stale(&end_step(&db, execution, order, S::Failed).await));
    }
}

async fn a_run_moves_alone(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let entry = an_entry(&db).await;
    let [run, other]: [RunWithSteps; 2] =
        [1, 2].map(|number| a_run_of(&ada, &entry).numbered(number).with_steps());
    for run in [&run, &other] {
        request(&db, run.clone(), false).await.unwrap();
    }
    begin(&db, run.0.id).await.unwrap();
    begin_step(&db, run.0.id, 1).await.unwrap();
    end_step(&db, run.0.id, 1, S::Failed).await.unwrap();
    finish(&db, run.0.id, S::Failed).await.unwrap();
    assert_eq!(now(&db, &other.0).await, other);
}
