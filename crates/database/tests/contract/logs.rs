//! Contract of `LogSink`, `LogReader` and `logs::Write`.

mod pages;
mod sizes;
mod trim;

use launchway_database::Database;
use launchway_domain::{
    applications::Application,
    auth,
    deployments::Deployment,
    ids::ApplicationId,
    logs::{Level, LogFilter, LogLine, LogReader, LogSink as _, NewLine, Write},
    organizations::Scope,
    store::UnitOfWork as _,
};
use launchway_testkit::builders::{LogLineBuilder, a_log_line};
use tokio::task::JoinSet;

use crate::{
    applications::{delete, stored},
    builders::{Resident, at, audited, id, is_stale},
    deployments::deploy,
    fresh::Fresh,
};

contract!(
    lines_are_read_as_they_were_appended,
    lines_come_behind_all_earlier_ones_of_their_application,
    any_number_of_lines_is_appended,
    concurrent_appends_are_contiguous_and_keep_their_order,
    concurrent_appends_to_applications_do_not_deadlock,
    lines_of_an_application_that_is_gone_are_dropped,
    lines_become_visible_together_with_their_changes,
    lines_after_a_number_are_oldest_first_and_limited,
    the_lines_behind_a_number_are_filtered,
    others_read_no_lines,
    the_last_printed_line_is_that_of_the_container,
    lines_are_there_for_the_next_process,
);

pub(crate) async fn append(db: &Database, lines: Vec<NewLine>) {
    db.append(lines).await.unwrap();
}

/// An application with two deployments.
async fn a_log(db: &Database) -> (Application, Deployment, Deployment) {
    let application = stored(db, &Resident::of(db, "ada").await, "web").await;
    let (one, two) = (deploy(db, &application, 1).await, deploy(db, &application, 2).await);
    (application, one, two)
}

fn scope(application: &Application) -> Scope {
    Scope::of_record(application.organization_id)
}

async fn after(
    db: &Database,
    scope: Scope,
    application: ApplicationId,
    filter: &LogFilter,
    (after, limit): (i64, i64),
) -> Option<Vec<LogLine>> {
    LogReader::after(db, scope, application, filter, after, limit).await.unwrap()
}

/// Returns all lines of an application, oldest first.
async fn all(db: &Database, application: &Application) -> Vec<LogLine> {
    after(db, scope(application), application.id, &LogFilter::default(), (0, i64::MAX)).await.unwrap()
}

/// Returns all lines of a deployment, oldest first.
pub(crate) async fn lines_of(db: &Database, deployment: &Deployment) -> Vec<LogLine> {
    let scope = Scope::of_record(deployment.organization_id);
    let filter = LogFilter { deployment: Some(deployment.id), ..LogFilter::default() };
    after(db, scope, deployment.application_id, &filter, (0, i64::MAX)).await.unwrap()
}

fn numbers(lines: &[LogLine]) -> Vec<i64> {
    lines.iter().map(|line| line.number).collect()
}

/// Lines of that deployment with the numbers as text.
fn counted(deployment: &Deployment, numbers: std::ops::RangeInclusive<i64>) -> Vec<NewLine> {
    numbers.map(|number| a_log_line().of(deployment).saying(&number.to_string()).new_line()).collect()
}

async fn lines_are_read_as_they_were_appended(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    let texts = ["", "plain", "  Ünïcode 🚀 \"q\" 'q' \\ %_ ", &"x".repeat(20_000), "tab\t"];
    let line = |(number, text): (i64, &&str)| {
        let level = Level::ALL[usize::try_from(number).unwrap() - 1];
        let moment = at(number) + chrono::TimeDelta::microseconds(123_456);
        a_log_line().of(&deployment).numbered(number).at_level(level).saying(text).at(moment)
    };
    append(&db, (1..).zip(&texts).map(|each| line(each).new_line()).collect()).await;
    let expected: Vec<_> = (1..).zip(&texts).map(|each| line(each).build()).collect();
    assert_eq!(all(&db, &application).await, expected);
    append(&db, vec![]).await;
    assert_eq!(all(&db, &application).await.len(), 5);
}

async fn lines_come_behind_all_earlier_ones_of_their_application(db: Database) {
    let (application, one, two) = a_log(&db).await;
    let other = stored(&db, &Resident::of(&db, "bob").await, "web").await;
    let elsewhere = deploy(&db, &other, 1).await;
    let mut expected = Vec::new();
    for round in 1..=3 {
        let say = |deployment, number: i64| {
            a_log_line().of(deployment).numbered((round - 1) * 3 + number).at(at(10 - round))
        };
        let lines = [say(&two, 1), say(&one, 2), say(&two, 3)];
        expected.extend(lines.clone().map(LogLineBuilder::build));
        let mut lines: Vec<_> = lines.map(LogLineBuilder::new_line).to_vec();
        lines.insert(1, a_log_line().of(&elsewhere).new_line());
        append(&db, lines).await;
    }
    assert_eq!(all(&db, &application).await, expected);
    assert_eq!(numbers(&lines_of(&db, &one).await), [2, 5, 8]);
    assert_eq!(numbers(&lines_of(&db, &two).await), [1, 3, 4, 6, 7, 9]);
    assert_eq!(numbers(&all(&db, &other).await), [1, 2, 3]);
}

async fn any_number_of_lines_is_appended(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    let mut last = 0;
    for count in [1, 7, 8, 9, 63, 64, 65, 72, 137, 5000] {
        append(&db, counted(&deployment, last + 1..=last + count)).await;
        last += count;
    }
    let lines = all(&db, &application).await;
    assert_eq!(numbers(&lines), (1..=last).collect::<Vec<_>>());
    assert!(lines.iter().all(|line| line.text == line.number.to_string()));
}

async fn concurrent_appends_are_contiguous_and_keep_their_order(fresh: &Fresh) {
    let (application, one, two) = a_log(&fresh.database).await;
    // Replicas on PostgreSQL; on SQLite the server is alone with its file.
    let (db, replica) = (fresh.database.clone(), fresh.open_again());
    let mut tasks = JoinSet::new();
    for caller in 0..8 {
        let db = if caller % 2 == 0 || fresh.folder().is_some() { db.clone() } else { replica.clone() };
        let deployment = if caller % 3 == 0 { one.clone() } else { two.clone() };
        tasks.spawn(async move {
            for round in 0..10 {
                let say = |line: i64| format!("{caller} {}", round * 7 + line);
                let lines = (0..7).map(|line| a_log_line().of(&deployment).saying(&say(line)).new_line());
                append(&db, lines.collect()).await;
            }
        });
    }
    tasks.join_all().await;
    let lines = all(&db, &application).await;
    assert_eq!(numbers(&lines), (1..=560).collect::<Vec<_>>());
    for caller in 0..8 {
        let said = lines.iter().filter_map(|line| line.text.strip_prefix(&format!("{caller} ")));
        let expected: Vec<_> = (0..70).map(|number| number.to_string()).collect();
        assert_eq!(said.collect::<Vec<_>>(), expected);
    }
    let mut of_both = lines_of(&db, &one).await;
    of_both.extend(lines_of(&db, &two).await);
    assert_eq!(of_both.len(), 560);
}

async fn concurrent_appends_to_applications_do_not_deadlock(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let mut deployments = Vec::new();
    for name in ["a", "b", "c", "d"] {
        deployments.push(deploy(&db, &stored(&db, &ada, name).await, 1).await);
    }
    let mut tasks = JoinSet::new();
    for caller in 0..8 {
        let (db, mut deployments) = (db.clone(), deployments.clone());
        deployments.rotate_left(caller % 4);
        tasks.spawn(async move {
            for _ in 0..10 {
                let lines = deployments.iter().map(|deployment| a_log_line().of(deployment).new_line());
                append(&db, lines.collect()).await;
            }
        });
    }
    tasks.join_all().await;
    for deployment in deployments {
        assert_eq!(numbers(&lines_of(&db, &deployment).await), (1..=80).collect::<Vec<_>>());
    }
}

async fn lines_of_an_application_that_is_gone_are_dropped(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    let gone = stored(&db, &Resident::of(&db, "bob").await, "web").await;
    let of_gone = deploy(&db, &gone, 1).await;
    delete(&db, &gone, 2).await.unwrap();
    let unknown = Deployment { application_id: id(), ..deployment.clone() };
    let line = |deployment| a_log_line().of(deployment).new_line();
    append(&db, vec![line(&of_gone), line(&deployment), line(&unknown), line(&deployment)]).await;
    append(&db, vec![line(&of_gone)]).await;
    assert_eq!(numbers(&all(&db, &application).await), [1, 2]);
    let read = after(&db, scope(&gone), gone.id, &LogFilter::default(), (0, 10)).await;
    assert_eq!(read, None);
}

async fn lines_become_visible_together_with_their_changes(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    let more = || Write::Append(counted(&deployment, 1..=3)).into();
    let stale = auth::Write::EndSession { id: id(), at: at(0) };
    assert!(is_stale(&db.commit(audited(vec![more(), stale.into()])).await));
    assert_eq!(all(&db, &application).await, []);
    // Without an audit entry: the lines are about changes that have one.
    db.commit(vec![more()]).await.unwrap();
    append(&db, counted(&deployment, 4..=4)).await;
    assert_eq!(numbers(&all(&db, &application).await), [1, 2, 3, 4]);
}

async fn lines_after_a_number_are_oldest_first_and_limited(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    append(&db, counted(&deployment, 1..=7)).await;
    let read = async |behind, limit| {
        let place = (behind, limit);
        let lines = after(&db, scope(&application), application.id, &LogFilter::default(), place).await;
        numbers(&lines.unwrap())
    };
    assert_eq!(read(0, 3).await, [1, 2, 3]);
    assert_eq!(read(3, 3).await, [4, 5, 6]);
    assert_eq!(read(6, 3).await, [7]);
    assert_eq!(read(7, 3).await, [0; 0]);
    assert_eq!(read(-5, 1).await, [1]);
    assert_eq!(read(i64::MAX, 1).await, [0; 0]);
}

async fn the_lines_behind_a_number_are_filtered(db: Database) {
    let (application, one, two) = a_log(&db).await;
    let line = |deployment, text| a_log_line().of(deployment).saying(text).at_level(Level::Build).new_line();
    append(&db, vec![line(&one, "A"), line(&two, "b"), line(&one, "c"), line(&one, "a")]).await;
    let read = async |filter: LogFilter, behind| {
        let lines = after(&db, scope(&application), application.id, &filter, (behind, 10)).await;
        numbers(&lines.unwrap())
    };
    let of_one = LogFilter { deployment: Some(one.id), ..LogFilter::default() };
    assert_eq!(read(of_one.clone(), 1).await, [3, 4]);
    assert_eq!(read(LogFilter { search: Some("A".to_owned()), ..of_one.clone() }, 0).await, [1, 4]);
    assert_eq!(read(LogFilter { level: Some(Level::Info), ..of_one.clone() }, 0).await, [0; 0]);
    assert_eq!(read(LogFilter { search: Some("\0".to_owned()), ..of_one }, 0).await, [0; 0]);
}

async fn others_read_no_lines(db: Database) {
    let (application, deployment, _) = a_log(&db).await;
    append(&db, counted(&deployment, 1..=3)).await;
    let bob = Resident::of(&db, "bob").await;
    let none = LogFilter::default();
    assert_eq!(after(&db, bob.scope(), application.id, &none, (0, 9)).await, None);
    assert_eq!(after(&db, scope(&application), id(), &none, (0, 9)).await, None);
    // Nor through an application of their own.
    let own = stored(&db, &bob, "web").await;
    let foreign = LogFilter { deployment: Some(deployment.id), ..none };
    assert_eq!(after(&db, bob.scope(), own.id, &foreign, (0, 9)).await, Some(vec![]));
}

async fn the_last_printed_line_is_that_of_the_container(db: Database) {
    let (application, one, two) = a_log(&db).await;
    let printed = async |deployment: &Deployment| db.last_printed(deployment.id).await.unwrap();
    assert_eq!(printed(&one).await, None);
    let line = |level, seconds| a_log_line().of(&one).at_level(level).at(at(seconds)).new_line();
    append(&db, vec![line(Level::Build, 50), line(Level::Info, 60)]).await;
    assert_eq!(printed(&one).await, None);
    append(&db, vec![line(Level::Runtime, 5), line(Level::Runtime, 9), line(Level::Runtime, 7)]).await;
    assert_eq!(printed(&one).await, Some(at(9)));
    append(&db, vec![line(Level::Runtime, 8), line(Level::Error, 70)]).await;
    assert_eq!(printed(&one).await, Some(at(9)));
    append(&db, vec![line(Level::Runtime, 10)]).await;
    assert_eq!(printed(&one).await, Some(at(10)));
    assert_eq!(printed(&two).await, None);
    delete(&db, &application, 99).await.unwrap();
    assert_eq!(printed(&one).await, None);
}

async fn lines_are_there_for_the_next_process(fresh: &Fresh) {
    let (application, deployment, _) = a_log(&fresh.database).await;
    append(&fresh.database, counted(&deployment, 1..=3)).await;
    fresh.database.close().await;
    let next = fresh.open_again();
    append(&next, counted(&deployment, 4..=5)).await;
    assert_eq!(numbers(&all(&next, &application).await), [1, 2, 3, 4, 5]);
}
