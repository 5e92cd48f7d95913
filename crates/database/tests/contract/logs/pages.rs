//! Pages of logs.

use std::time::{Duration, Instant};

use launchway_database::Database;
use launchway_domain::{
    applications::Application,
    logs::{Level, LogFilter, LogLine, LogReader},
    page::Page,
};
use launchway_testkit::builders::{a_log_line, a_page};

use super::{a_log, append, counted, numbers, scope};
use crate::{
    applications::{delete, stored},
    builders::{Resident, at, execute, id},
    deployments::deploy,
};

contract!(
    pages_split_the_lines_newest_first_and_have_the_total,
    pages_of_a_deployment_divide_its_lines,
    a_page_beyond_the_last_is_empty,
    an_empty_log_has_an_empty_page,
    others_see_no_page,
    a_filter_picks_the_level,
    a_filter_picks_a_stretch_of_time_with_both_its_ends,
    a_search_ignores_case_in_every_script,
    nothing_in_a_search_has_a_meaning_of_its_own,
    filters_hold_together_and_divide_into_pages,
    a_page_costs_the_same_however_long_the_log_is,
);

async fn page(
    db: &Database,
    application: &Application,
    filter: &LogFilter,
    (number, size): (i64, i64),
) -> Page<LogLine> {
    let page = a_page(number, size);
    LogReader::page(db, scope(application), application.id, filter, page).await.unwrap().unwrap()
}

async fn found(db: &Database, application: &Application, filter: &LogFilter) -> Vec<i64> {
    let page = page(db, application, filter, (1, 100)).await;
    assert_eq!(page.total, page.items.len() as i64);
    numbers(&page.items)
}

/// Returns the numbers on all pages of that size.
async fn walked(db: &Database, application: &Application, filter: &LogFilter, size: i64) -> Vec<i64> {
    let mut walked = Vec::new();
    for number in 1.. {
        let page = page(db, application, filter, (number, size)).await;
        walked.extend(numbers(&page.items));
        if !page.has_next() {
            assert_eq!(page.total, walked.len() as i64);
            break;
        }
        assert_eq!(page.items.len() as i64, size);
    }
    walked
}

async fn pages_split_the_lines_newest_first_and_have_the_total(db: Database) {
    let (application, one, two) = a_log(&db).await;
    append(&db, counted(&one, 1..=5)).await;
    append(&db, counted(&two, 6..=7)).await;
    for size in [1, 3, 7, 8] {
        let all = walked(&db, &application, &LogFilter::default(), size).await;
        assert_eq!(all, [7, 6, 5, 4, 3, 2, 1]);
    }
    let line = page(&db, &application, &LogFilter::default(), (7, 1)).await.items.remove(0);
    let expected = a_log_line().of(&one).numbered(1).saying("1").build();
    assert_eq!((line.id(), &line), (expected.id(), &expected));
}

async fn pages_of_a_deployment_divide_its_lines(db: Database) {
    let (application, one, two) = a_log(&db).await;
    for round in 0..3 {
        append(&db, counted(&one, round..=round + 1)).await;
        append(&db, counted(&two, round..=round)).await;
    }
    for (deployment, expected) in [(&one, vec![8, 7, 5, 4, 2, 1]), (&two, vec![9, 6, 3])] {
        let filter = LogFilter { deployment: Some(deployment.id), ..LogFilter::default() };
        for size in [1, 2, 4, 6] {
            assert_eq!(walked(&db, &application, &filter, size).await, expected);
        }
    }
}

async fn a_page_beyond_the_last_is_empty(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    append(&db, counted(&deployment, 1..=7)).await;
    let of_deployment = LogFilter { deployment: Some(deployment.id), ..LogFilter::default() };
    let of_level = LogFilter { level: Some(Level::Info), ..LogFilter::default() };
    for filter in [LogFilter::default(), of_deployment, of_level] {
        for number in [3, 1000, i64::MAX] {
            let page = page(&db, &application, &filter, (number, 5)).await;
            assert_eq!((page.items, page.total), (vec![], 7));
        }
    }
}

async fn an_empty_log_has_an_empty_page(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    let of_deployment = LogFilter { deployment: Some(deployment.id), ..LogFilter::default() };
    for filter in [LogFilter::default(), of_deployment] {
        assert_eq!(found(&db, &application, &filter).await, [0; 0]);
    }
}

async fn others_see_no_page(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    append(&db, counted(&deployment, 1..=3)).await;
    let bob = Resident::of(&db, "bob").await;
    let none = LogFilter::default();
    let read = async |scope, id| LogReader::page(&db, scope, id, &none, a_page(1, 9)).await.unwrap();
    assert_eq!(read(bob.scope(), application.id).await, None);
    assert_eq!(read(scope(&application), id()).await, None);
    // Nor through an application of their own.
    let own = stored(&db, &bob, "web").await;
    let foreign = LogFilter { deployment: Some(deployment.id), ..LogFilter::default() };
    assert_eq!(found(&db, &own, &foreign).await, [0; 0]);
    assert_eq!(found(&db, &own, &LogFilter { level: Some(Level::Info), ..foreign }).await, [0; 0]);
    delete(&db, &application, 9).await.unwrap();
    assert_eq!(read(scope(&application), application.id).await, None);
}

async fn a_filter_picks_the_level(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    let line = |level| a_log_line().of(&deployment).at_level(level).new_line();
    append(&db, Level::ALL.into_iter().chain(Level::ALL).map(line).collect()).await;
    for (number, level) in (1..).zip(Level::ALL) {
        let filter = LogFilter { level: Some(level), ..LogFilter::default() };
        assert_eq!(found(&db, &application, &filter).await, [number + 5, number]);
    }
}

async fn a_filter_picks_a_stretch_of_time_with_both_its_ends(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    let line = |seconds| a_log_line().of(&deployment).at(at(seconds)).new_line();
    append(&db, [10, 20, 30, 15].map(line).to_vec()).await;
    let read = async |from: Option<i64>, to: Option<i64>| {
        let filter = LogFilter { from: from.map(at), to: to.map(at), ..LogFilter::default() };
        found(&db, &application, &filter).await
    };
    assert_eq!(read(Some(15), None).await, [4, 3, 2]);
    assert_eq!(read(None, Some(15)).await, [4, 1]);
    assert_eq!(read(Some(15), Some(20)).await, [4, 2]);
    assert_eq!(read(Some(16), Some(19)).await, [0; 0]);
    assert_eq!(read(Some(20), Some(10)).await, [0; 0]);
}

async fn search(db: &Database, application: &Application, search: &str) -> Vec<i64> {
    let filter = LogFilter { search: Some(search.to_owned()), ..LogFilter::default() };
    found(db, application, &filter).await
}

async fn a_search_ignores_case_in_every_script(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    let texts = ["GET /Index", "Größe ÄNDERN", "größe ändern", "ПРИВЕТ мир", "I", "plain 🚀"];
    let line = |text| a_log_line().of(&deployment).saying(text).new_line();
    append(&db, texts.map(line).to_vec()).await;
    for (wanted, expected) in [
        ("get /i", vec![1]),
        ("GET /INDEX", vec![1]),
        ("größe", vec![3, 2]),
        ("ändern", vec![3, 2]),
        ("ÄNDERN", vec![3, 2]),
        ("привет МИР", vec![4]),
        ("i", vec![6, 5, 1]),
        ("🚀", vec![6]),
        ("nothing", vec![]),
    ] {
        assert_eq!(search(&db, &application, wanted).await, expected, "{wanted}");
    }
}

async fn nothing_in_a_search_has_a_meaning_of_its_own(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    let line = |text| a_log_line().of(&deployment).saying(text).new_line();
    append(&db, ["100%", "a_b", "acb", "c:\\d", "it's"].map(line).to_vec()).await;
    for (wanted, expected) in
        [("%", vec![1]), ("a_b", vec![2]), ("\\", vec![4]), ("'", vec![5]), ("a\0b", vec![])]
    {
        assert_eq!(search(&db, &application, wanted).await, expected, "{wanted:?}");
    }
}

async fn filters_hold_together_and_divide_into_pages(db: Database) {
    let (application, one, two) = a_log(&db).await;
    let mut lines = Vec::new();
    for number in 0..40 {
        let deployment = if number % 2 == 0 { &one } else { &two };
        let level = if number % 4 < 2 { Level::Build } else { Level::Warn };
        let text = if number % 8 < 4 { "Apple" } else { "pear" };
        let line = a_log_line().of(deployment).at_level(level).saying(text).at(at(number));
        lines.push(line.new_line());
    }
    append(&db, lines).await;
    let filter = LogFilter {
        search: Some("APP".to_owned()),
        level: Some(Level::Build),
        from: Some(at(8)),
        to: Some(at(32)),
        deployment: Some(one.id),
    };
    for size in [1, 3, 4] {
        assert_eq!(walked(&db, &application, &filter, size).await, [33, 25, 17, 9]);
    }
    let filter = LogFilter { deployment: None, ..filter };
    assert_eq!(walked(&db, &application, &filter, 3).await, [33, 26, 25, 18, 17, 10, 9]);
}

/// Returns the time of the fastest of several reads.
async fn fastest(read: impl AsyncFn()) -> Duration {
    let mut fastest = Duration::MAX;
    for _ in 0..40 {
        let begun = Instant::now();
        read().await;
        fastest = fastest.min(begun.elapsed());
    }
    fastest
}

/// Doubles every log named "long", as if its lines had been appended once more.
const TWICE_AS_LONG: &str = "
    INSERT INTO application_logs
        (application_id, number, deployment_id, deployment_number, level, log, created_at)
    SELECT l.application_id, l.number + h.last_number, l.deployment_id, l.deployment_number + h.last_number,
        l.level, l.log, l.created_at
    FROM application_logs l
    JOIN log_heads h ON h.application_id = l.application_id
    JOIN applications a ON a.id = l.application_id
    WHERE a.name = 'long';
    UPDATE log_heads SET last_number = 2 * last_number
    WHERE application_id IN (SELECT id FROM applications WHERE name = 'long');
    UPDATE deployment_log_heads SET last_number = 2 * last_number
    WHERE application_id IN (SELECT id FROM applications WHERE name = 'long');";

async fn a_page_costs_the_same_however_long_the_log_is(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let mut times = Vec::new();
    for (name, doublings, length) in [("short", 0, 1000), ("long", 6, 64_000)] {
        let application = stored(&db, &ada, name).await;
        let deployment = deploy(&db, &application, 1).await;
        append(&db, counted(&deployment, 1..=1000)).await;
        for _ in 0..doublings {
            execute(&db, TWICE_AS_LONG).await;
        }
        let of_deployment = LogFilter { deployment: Some(deployment.id), ..LogFilter::default() };
        for filter in [LogFilter::default(), of_deployment] {
            for number in [1, length / 100] {
                let read = async || {
                    let page = page(&db, &application, &filter, (number, 50)).await;
                    assert_eq!((page.total, page.items.len()), (length, 50));
                };
                times.push(fastest(read).await);
            }
        }
    }
    // Whoever counts or skips lines takes much longer; a busy machine takes somewhat longer.
    let (short, long) = times.split_at(4);
    for (short, long) in short.iter().zip(long) {
        assert!(*long < *short * 4, "{times:?}");
    }
}
