//! Deletion of old lines.

use launchway_database::Database;
use launchway_domain::{
    applications::Application,
    deployments::Deployment,
    logs::{LogFilter, LogReader, LogSink as _},
};
use launchway_testkit::builders::a_page;
use tokio::task::JoinSet;

use super::{a_log, all, append, counted, lines_of, numbers, scope};
use crate::{
    applications::stored,
    builders::Resident,
    deployments::{deploy, get},
};

contract!(
    the_newest_lines_are_kept_and_the_oldest_go,
    what_is_short_enough_is_left_alone,
    each_application_keeps_its_own,
    pages_and_totals_count_what_is_kept,
    numbers_go_on_where_they_were,
    a_call_forgets_no_more_than_it_may,
    trimming_and_appending_at_once_leave_no_gap,
    the_last_printed_line_is_known_though_it_is_forgotten,
);

async fn trim(db: &Database, keep: i64) -> usize {
    db.trim(keep).await.unwrap()
}

async fn total(db: &Database, application: &Application, deployment: Option<&Deployment>) -> i64 {
    let filter = LogFilter { deployment: deployment.map(|one| one.id), ..LogFilter::default() };
    let page = LogReader::page(db, scope(application), application.id, &filter, a_page(1, 100)).await;
    page.unwrap().unwrap().total
}

async fn the_newest_lines_are_kept_and_the_oldest_go(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    append(&db, counted(&deployment, 1..=10)).await;
    assert_eq!(trim(&db, 9).await, 1);
    assert_eq!(numbers(&all(&db, &application).await), (2..=10).collect::<Vec<_>>());
    assert_eq!(trim(&db, 3).await, 6);
    assert_eq!(numbers(&all(&db, &application).await), [8, 9, 10]);
    assert_eq!(trim(&db, 0).await, 3);
    assert_eq!(numbers(&all(&db, &application).await), [0; 0]);
    assert_eq!(trim(&db, 0).await, 0);
}

async fn what_is_short_enough_is_left_alone(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    append(&db, counted(&deployment, 1..=10)).await;
    for keep in [10, 11, i64::MAX] {
        assert_eq!(trim(&db, keep).await, 0);
    }
    assert_eq!(all(&db, &application).await.len(), 10);
}

async fn each_application_keeps_its_own(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let mut deployments = Vec::new();
    for (name, length) in [("a", 7), ("b", 3), ("c", 12)] {
        let deployment = deploy(&db, &stored(&db, &ada, name).await, 1).await;
        append(&db, counted(&deployment, 1..=length)).await;
        deployments.push(deployment);
    }
    assert_eq!(trim(&db, 5).await, 2 + 7);
    for (deployment, expected) in deployments.iter().zip([3..=7, 1..=3, 8..=12]) {
        assert_eq!(numbers(&lines_of(&db, deployment).await), expected.collect::<Vec<_>>());
    }
}

async fn pages_and_totals_count_what_is_kept(db: Database) {
    let (application, one, two) = a_log(&db).await;
    append(&db, counted(&one, 1..=4)).await;
    append(&db, counted(&two, 5..=6)).await;
    append(&db, counted(&one, 7..=8)).await;
    append(&db, counted(&two, 9..=9)).await;
    for (keep, of_one, of_two) in [(8, 5, 3), (4, 2, 2), (3, 2, 1), (1, 0, 1), (0, 0, 0)] {
        trim(&db, keep).await;
        assert_eq!(total(&db, &application, None).await, keep);
        for (deployment, expected) in [(&one, of_one), (&two, of_two)] {
            assert_eq!(total(&db, &application, Some(deployment)).await, expected, "{keep}");
            assert_eq!(lines_of(&db, deployment).await.len() as i64, expected, "{keep}");
        }
        let none = LogFilter::default();
        let deep = LogReader::page(&db, scope(&application), application.id, &none, a_page(2, 2)).await;
        let expected: Vec<_> = (10 - keep..=7).rev().take(2).collect();
        assert_eq!(numbers(&deep.unwrap().unwrap().items), expected);
    }
}

async fn numbers_go_on_where_they_were(db: Database) {
    let (application, one, two) = a_log(&db).await;
    append(&db, counted(&one, 1..=5)).await;
    trim(&db, 0).await;
    append(&db, counted(&two, 6..=7)).await;
    append(&db, counted(&one, 8..=9)).await;
    assert_eq!(numbers(&all(&db, &application).await), [6, 7, 8, 9]);
    assert_eq!(total(&db, &application, Some(&one)).await, 2);
    assert_eq!(trim(&db, 1).await, 3);
    assert_eq!(total(&db, &application, Some(&one)).await, 1);
    assert_eq!(total(&db, &application, Some(&two)).await, 0);
}

async fn a_call_forgets_no_more_than_it_may(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    for name in ["a", "b"] {
        let deployment = deploy(&db, &stored(&db, &ada, name).await, 1).await;
        append(&db, counted(&deployment, 1..=7001)).await;
    }
    assert_eq!(trim(&db, 1000).await, 10_000);
    assert_eq!(trim(&db, 1000).await, 2002);
    assert_eq!(trim(&db, 1000).await, 0);
}

async fn trimming_and_appending_at_once_leave_no_gap(db: Database) {
    let (application, one, two) = a_log(&db).await;
    let mut tasks = JoinSet::new();
    for caller in 0..4 {
        let (db, deployment) = (db.clone(), if caller % 2 == 0 { one.clone() } else { two.clone() });
        tasks.spawn(async move {
            for _ in 0..20 {
                append(&db, counted(&deployment, 1..=5)).await;
                trim(&db, 30).await;
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(numbers(&all(&db, &application).await), (371..=400).collect::<Vec<_>>());
    let (of_one, of_two) =
        (total(&db, &application, Some(&one)).await, total(&db, &application, Some(&two)).await);
    assert_eq!(of_one, lines_of(&db, &one).await.len() as i64);
    assert_eq!(of_two, lines_of(&db, &two).await.len() as i64);
    assert_eq!(of_one + of_two, 30);
    assert!(get(&db, scope(&application), one.id).await.is_some());
}

async fn the_last_printed_line_is_known_though_it_is_forgotten(db: Database) {
    let (_, deployment, _) = a_log(&db).await;
    let mut lines = counted(&deployment, 1..=2);
    lines[0].level = launchway_domain::logs::Level::Runtime;
    let printed = lines[0].at;
    append(&db, lines).await;
    trim(&db, 0).await;
    assert_eq!(db.last_printed(deployment.id).await.unwrap(), Some(printed));
}
