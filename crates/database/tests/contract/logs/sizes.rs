//! Logs that exceed their limit in bytes.

use launchway_database::Database;
use launchway_domain::{
    applications::Application,
    deployments::Deployment,
    logs::{Level, LogFilter, LogLimits, LogLine, LogReader, LogSink as _, NewLine},
};
use launchway_testkit::builders::a_page;
use tokio::task::JoinSet;

use super::{a_log, all, append, counted, scope};
use crate::{applications::stored, builders::Resident, deployments::deploy};

contract!(
    the_oldest_lines_go_while_new_ones_come,
    one_line_says_how_many_went,
    positions_and_pages_go_on_after_lines_went,
    without_limits_nothing_goes,
    lines_that_are_trimmed_do_not_count_any_more,
    the_longest_log_of_an_organization_goes_first,
    other_organizations_keep_theirs,
    two_who_append_do_not_wait_for_each_other,
);

/// Lines of 1,000 bytes each, as they are counted.
fn long(deployment: &Deployment, count: usize) -> Vec<NewLine> {
    let mut lines = counted(deployment, 1..=count as i64);
    for (place, line) in lines.iter_mut().enumerate() {
        line.text = format!("{place:0>900}");
    }
    lines
}

fn limited(db: &Database, application: u64, organization: u64) -> Database {
    db.clone().with_log_limits(LogLimits { application, organization })
}

fn bytes(lines: &[LogLine]) -> usize {
    lines.iter().map(|line| line.text.len() + 100).sum()
}

fn notes(lines: &[LogLine]) -> Vec<&str> {
    lines.iter().filter(|line| line.level == Level::Warn).map(|line| line.text.as_str()).collect()
}

async fn flood(db: &Database, deployment: &Deployment, rounds: usize, count: usize) {
    for _ in 0..rounds {
        append(db, long(deployment, count)).await;
    }
}

async fn the_oldest_lines_go_while_new_ones_come(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    let db = limited(&db, 100_000, 0);
    for _ in 0..30 {
        append(&db, long(&deployment, 20)).await;
        let kept = all(&db, &application).await;
        assert!(bytes(&kept) <= 100_000, "{}", bytes(&kept));
    }
    let kept = all(&db, &application).await;
    assert!(bytes(&kept) > 80_000, "{}", bytes(&kept));
    let numbers: Vec<i64> = kept.iter().map(|line| line.number).collect();
    assert!(numbers.windows(2).all(|pair| pair[0].abs_diff(pair[1]) == 1), "{numbers:?}");
}

async fn one_line_says_how_many_went(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    let db = limited(&db, 100_000, 0);
    flood(&db, &deployment, 1, 101).await;
    let kept = all(&db, &application).await;
    // 101,000 bytes were there, and a tenth of the limit goes with the excess.
    assert_eq!(notes(&kept), ["The oldest 11 lines (10 KiB) were removed (LAUNCHWAY_APPLICATION_LOG_SIZE)"]);
    assert_eq!(kept.len(), 101 - 11 + 1);
}

async fn positions_and_pages_go_on_after_lines_went(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    let db = limited(&db, 50_000, 0);
    flood(&db, &deployment, 1, 10).await;
    flood(&db, &deployment, 6, 20).await;
    let none = LogFilter::default();
    let after = db.after(scope(&application), application.id, &none, 5, 1000).await.unwrap().unwrap();
    let kept = all(&db, &application).await;
    assert_eq!(after.len(), kept.len(), "a follower goes on with the oldest line that is left");
    assert!(after.first().unwrap().number > 6);
    let of_one = LogFilter { deployment: Some(deployment.id), ..LogFilter::default() };
    for filter in [none, of_one] {
        let page = LogReader::page(&db, scope(&application), application.id, &filter, a_page(1, 10)).await;
        let page = page.unwrap().unwrap();
        assert_eq!((page.items.len(), page.total), (10, kept.len() as i64));
    }
}

async fn without_limits_nothing_goes(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    flood(&db, &deployment, 10, 100).await;
    assert_eq!(all(&db, &application).await.len(), 1000);
}

async fn lines_that_are_trimmed_do_not_count_any_more(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    let db = limited(&db, 100_000, 0);
    flood(&db, &deployment, 1, 99).await;
    assert_eq!(db.trim(10).await.unwrap(), 89);
    flood(&db, &deployment, 1, 89).await;
    let kept = all(&db, &application).await;
    assert_eq!((kept.len(), notes(&kept).len()), (99, 0));
}

/// Applications of one organization, each with a deployment.
async fn several(db: &Database, resident: &str, names: &[&str]) -> Vec<(Application, Deployment)> {
    let resident = Resident::of(db, resident).await;
    let mut made = Vec::new();
    for name in names {
        let application = stored(db, &resident, name).await;
        let deployment = deploy(db, &application, 1).await;
        made.push((application, deployment));
    }
    made
}

async fn the_longest_log_of_an_organization_goes_first(db: Database) {
    let made = several(&db, "ada", &["a", "b"]).await;
    let [(large, of_large), (small, of_small)] = &made[..] else { panic!() };
    let db = limited(&db, 0, 100_000);
    flood(&db, of_large, 1, 80).await;
    flood(&db, of_small, 1, 15).await;
    flood(&db, of_small, 1, 10).await;
    let (kept, untouched) = (all(&db, large).await, all(&db, small).await);
    assert_eq!((untouched.len(), notes(&untouched).len()), (25, 0));
    assert_eq!(notes(&kept), ["The oldest 15 lines (14 KiB) were removed (LAUNCHWAY_ORGANIZATION_LOG_SIZE)"]);
}

async fn other_organizations_keep_theirs(db: Database) {
    let ours = several(&db, "ada", &["a"]).await;
    let theirs = several(&db, "bob", &["a"]).await;
    let db = limited(&db, 0, 50_000);
    flood(&db, &theirs[0].1, 1, 40).await;
    flood(&db, &ours[0].1, 10, 20).await;
    let kept = all(&db, &theirs[0].0).await;
    assert_eq!((kept.len(), notes(&kept).len()), (40, 0));
}

async fn two_who_append_do_not_wait_for_each_other(db: Database) {
    let made = several(&db, "ada", &["a", "b", "c"]).await;
    let db = limited(&db, 60_000, 100_000);
    let mut tasks = JoinSet::new();
    for (_, deployment) in made.clone() {
        let db = db.clone();
        tasks.spawn(async move { flood(&db, &deployment, 15, 20).await });
    }
    tasks.join_all().await;
    for (application, _) in &made {
        let kept = all(&db, application).await;
        assert!(bytes(&kept) <= 60_000, "{}", bytes(&kept));
        let page = a_page(1, 1);
        let total =
            LogReader::page(&db, scope(application), application.id, &LogFilter::default(), page).await;
        assert_eq!(total.unwrap().unwrap().total, kept.len() as i64);
    }
}
