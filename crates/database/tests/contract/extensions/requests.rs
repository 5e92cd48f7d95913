//! Requests and reads of runs.

use launchway_database::Database;
use launchway_domain::{
    extensions::{ExecutionDetail, ExecutionRepository, PrintedStep},
    ids::{ExecutionId, ExtensionId},
    organizations::Scope,
    page::Page,
    secret::Sealed,
};
use launchway_testkit::builders::a_page;

use super::{
    Execution, Write, a_fork, a_run, a_run_of, an_entry, delete, now, request, say, withdraw_all_but,
};
use crate::builders::{Resident, at, commit, id, is_stale};

contract!(
    a_run_is_read_as_it_was_asked_for,
    others_see_no_run,
    nobody_runs_what_is_gone_or_of_others,
    a_run_comes_with_its_steps_or_not_at_all,
    runs_come_newest_first_and_ties_by_id,
    pages_divide_the_runs_and_count_them,
    each_run_of_a_page_has_its_own_log,
    a_run_is_seen_with_everything_around_it,
    the_runs_of_a_deleted_fork_stay_readable,
);

async fn page(
    db: &Database,
    scope: Scope,
    extension: ExtensionId,
    (number, size): (i64, i64),
) -> Page<(Execution, String)> {
    ExecutionRepository::page(db, scope, extension, a_page(number, size)).await.unwrap()
}

pub(super) async fn detail(db: &Database, scope: Scope, id: ExecutionId) -> Option<ExecutionDetail> {
    ExecutionRepository::detail(db, scope, id).await.unwrap()
}

async fn a_run_is_read_as_it_was_asked_for(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (mut run, steps) = a_run_of(&ada, &an_entry(&db).await).with_steps();
    run.shown_values = r#"{"who": "Ädä \"q\""}"#.to_owned();
    run.sealed_values = Sealed("sealed".to_owned());
    run.definition = "a: 1\nb: 'ü'\n".to_owned();
    request(&db, (run.clone(), steps.clone()), false).await.unwrap();
    assert_eq!(now(&db, &run).await, (run, steps));
    assert_eq!(ExecutionRepository::get(&db, ada.scope(), id()).await.unwrap(), None);
}

async fn others_see_no_run(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let (run, _) = a_run(&db, &ada).await;
    let stranger = bob.scope();
    assert_eq!(ExecutionRepository::get(&db, stranger, run.id).await.unwrap(), None);
    assert_eq!(detail(&db, stranger, run.id).await, None);
    assert_eq!(ExecutionRepository::lines(&db, stranger, run.id, 0, 10).await.unwrap(), None);
    let page = page(&db, stranger, run.extension_id, (1, 10)).await;
    assert_eq!((page.items, page.total), (vec![], 0));
}

async fn nobody_runs_what_is_gone_or_of_others(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let (entry, fork) = (an_entry(&db).await, a_fork(&db, &ada, "mine").await);
    let runs = |extension| a_run_of(&ada, extension).with_steps();
    assert!(is_stale(&request(&db, a_run_of(&bob, &fork).with_steps(), true).await));
    let (run, steps) = runs(&entry);
    assert!(is_stale(&request(&db, (Execution { extension_id: id(), ..run }, steps), true).await));
    delete(&db, ada.scope(), &fork.key, 2).await.unwrap();
    withdraw_all_but(&db, &[], 2).await;
    for gone in [&entry, &fork] {
        assert!(is_stale(&request(&db, runs(gone), true).await));
        assert_eq!(ExecutionRepository::get(&db, ada.scope(), runs(gone).0.id).await.unwrap(), None);
    }
}

async fn a_run_comes_with_its_steps_or_not_at_all(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (run, mut steps) = a_run_of(&ada, &an_entry(&db).await).with_steps();
    steps[2].order = 2;
    let broken = Write::Request { execution: Box::new(run.clone()), steps, installs: true, home: None };
    assert!(commit(&db, broken).await.is_err());
    assert_eq!(ExecutionRepository::get(&db, ada.scope(), run.id).await.unwrap(), None);
}

async fn runs_come_newest_first_and_ties_by_id(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let entry = an_entry(&db).await;
    let mut ids: Vec<ExecutionId> = Vec::new();
    for (number, seconds) in [(1, 1), (2, 9), (3, 5), (4, 5)] {
        let (run, _) = a_run_of(&ada, &entry).numbered(number).created_at(at(seconds)).with_steps();
        let run = Execution { id: id(), ..run };
        request(&db, (run.clone(), vec![]), false).await.unwrap();
        ids.push(run.id);
    }
    let page = page(&db, ada.scope(), entry.id, (1, 10)).await;
    let found: Vec<_> = page.items.into_iter().map(|(run, _)| run.id).collect();
    assert_eq!(found, [ids[1], ids[3], ids[2], ids[0]]);
}

async fn pages_divide_the_runs_and_count_them(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let (entry, fork) = (an_entry(&db).await, a_fork(&db, &ada, "mine").await);
    for other in [a_run_of(&ada, &fork), a_run_of(&bob, &entry)] {
        request(&db, other.with_steps(), false).await.unwrap();
    }
    let mut expected = Vec::new();
    for number in 1..=7 {
        let run = a_run_of(&ada, &entry).numbered(number).created_at(at(number.into())).with_steps();
        request(&db, run.clone(), false).await.unwrap();
        expected.insert(0, (run.0, String::new()));
    }
    let mut walked = Vec::new();
    for number in 1..=4 {
        let page = page(&db, ada.scope(), entry.id, (number, 3)).await;
        assert_eq!((page.total, page.request.number()), (7, number));
        walked.extend(page.items);
    }
    assert_eq!(walked, expected);
    let beyond = page(&db, ada.scope(), entry.id, (i64::MAX, 100)).await;
    assert_eq!((beyond.items, beyond.total), (vec![], 7));
}

async fn each_run_of_a_page_has_its_own_log(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let entry = an_entry(&db).await;
    for number in 1..=3 {
        let (run, steps) = a_run_of(&ada, &entry).numbered(number).created_at(at(number.into())).with_steps();
        request(&db, (run.clone(), steps.clone()), false).await.unwrap();
        for line in 1..number {
            say(&db, &run, Some(&steps[0]), &format!("{number} says {line}")).await;
        }
    }
    let page = page(&db, ada.scope(), entry.id, (1, 10)).await;
    let logs: Vec<_> = page.items.iter().map(|(run, log)| (run.log_seq, log.as_str())).collect();
    assert_eq!(logs, [(2, "3 says 1\n3 says 2\n"), (1, "2 says 1\n"), (0, "")]);
}

async fn a_run_is_seen_with_everything_around_it(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let extension = an_entry(&db).await;
    let (run, steps) = a_run_of(&ada, &extension).with_steps();
    request(&db, (run.clone(), steps.clone()), false).await.unwrap();
    for (step, text) in [(None, "begin"), (Some(0), "one"), (Some(2), "three"), (Some(0), "more"), (None, "")]
    {
        say(&db, &run, step.map(|step: usize| &steps[step]), text).await;
    }
    let outputs = ["one\nmore\n", "", "three\n"].map(str::to_owned);
    let steps = steps.into_iter().zip(outputs).map(|(step, output)| PrintedStep { step, output });
    let expected = ExecutionDetail {
        execution: Execution { log_seq: 5, ..run.clone() },
        extension,
        steps: steps.collect(),
        log: "begin\none\nthree\nmore\n\n".to_owned(),
    };
    assert_eq!(detail(&db, ada.scope(), run.id).await, Some(expected));
    assert_eq!(detail(&db, ada.scope(), id()).await, None);
}

async fn the_runs_of_a_deleted_fork_stay_readable(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let fork = a_fork(&db, &ada, "mine").await;
    let run = a_run_of(&ada, &fork).with_steps();
    request(&db, run.clone(), false).await.unwrap();
    delete(&db, ada.scope(), &fork.key, 2).await.unwrap();
    assert_eq!(now(&db, &run.0).await, run);
    let detail = detail(&db, ada.scope(), run.0.id).await.unwrap();
    assert_eq!((detail.extension.id, detail.extension.deleted_at), (fork.id, Some(at(2))));
}
