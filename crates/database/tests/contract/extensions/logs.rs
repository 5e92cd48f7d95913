//! The stored and shown output of runs.

use launchway_database::Database;
use launchway_domain::{
    extensions::{ExecutionDetail, ExecutionLine, ExecutionLog as _, ExecutionRepository},
    logs::Level,
    store::StoreError,
};
use launchway_testkit::builders::a_page;

use super::{Execution, NewExecutionLine, a_line, a_run, a_run_of, an_entry, now, request, requests::detail};
use crate::{
    builders::{Resident, at, id},
    fresh::Fresh,
};

contract!(
    lines_are_read_as_they_were_appended,
    any_number_of_lines_is_appended,
    each_run_counts_its_own_lines,
    lines_after_a_number_are_oldest_first_and_limited,
    lines_of_what_is_not_there_are_refused_as_a_whole,
    the_newest_64_kib_are_shown_from_the_beginning_of_a_line,
    a_log_of_exactly_64_kib_is_shown_whole,
    a_line_that_is_too_long_is_cut_between_characters,
    of_each_step_the_newest_64_kib_are_shown,
    lines_are_there_for_the_next_process,
);

pub(super) async fn lines(db: &Database, run: &Execution, after: i64, limit: i64) -> Vec<ExecutionLine> {
    ExecutionRepository::lines(db, run.scope, run.id, after, limit).await.unwrap().unwrap()
}

fn counted(numbers: std::ops::RangeInclusive<i64>) -> Vec<NewExecutionLine> {
    numbers.map(|number| a_line(None, &number.to_string())).collect()
}

fn numbers(lines: &[ExecutionLine]) -> Vec<i64> {
    lines.iter().map(|line| line.seq).collect()
}

async fn lines_are_read_as_they_were_appended(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (run, steps) = a_run(&db, &ada).await;
    let texts = ["", "plain", "  Ünïcode 🚀 \"q\" 'q' \\ %_ ", &"x".repeat(20_000), "tab\t"];
    let line = |(number, text): (i64, &&str)| ExecutionLine {
        seq: number,
        step_id: steps.get(usize::try_from(number).unwrap() - 1).map(|step| step.id),
        level: Level::ALL[usize::try_from(number).unwrap() - 1],
        text: (*text).to_owned(),
        at: at(number) + chrono::TimeDelta::microseconds(123_456),
    };
    let expected: Vec<_> = (1..).zip(&texts).map(line).collect();
    let new = expected.iter().cloned().map(|line| NewExecutionLine {
        step_id: line.step_id,
        level: line.level,
        text: line.text,
        at: line.at,
    });
    db.append(run.id, new.collect()).await.unwrap();
    db.append(run.id, vec![]).await.unwrap();
    assert_eq!(lines(&db, &run, 0, 10).await, expected);
    assert_eq!(now(&db, &run).await.0.log_seq, 5);
}

async fn any_number_of_lines_is_appended(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (run, _) = a_run(&db, &ada).await;
    let mut last = 0;
    for count in [1, 7, 8, 9, 63, 64, 65, 72, 137, 5000] {
        db.append(run.id, counted(last + 1..=last + count)).await.unwrap();
        last += count;
    }
    let lines = lines(&db, &run, 0, i64::MAX).await;
    assert_eq!(numbers(&lines), (1..=last).collect::<Vec<_>>());
    assert!(lines.iter().all(|line| line.text == line.seq.to_string()));
    assert_eq!(now(&db, &run).await.0.log_seq, last);
}

async fn each_run_counts_its_own_lines(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let entry = an_entry(&db).await;
    let runs = [1, 2].map(|number| a_run_of(&ada, &entry).numbered(number).with_steps());
    for run in &runs {
        request(&db, run.clone(), false).await.unwrap();
    }
    for (run, count) in [(0, 2), (1, 3), (0, 1)] {
        db.append(runs[run].0.id, counted(1..=count)).await.unwrap();
    }
    for (run, _) in &runs {
        assert_eq!(numbers(&lines(&db, run, 0, 10).await), [1, 2, 3]);
    }
}

async fn lines_after_a_number_are_oldest_first_and_limited(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (run, _) = a_run(&db, &ada).await;
    db.append(run.id, counted(1..=7)).await.unwrap();
    let read = async |after, limit| numbers(&lines(&db, &run, after, limit).await);
    assert_eq!(read(0, 3).await, [1, 2, 3]);
    assert_eq!(read(3, 3).await, [4, 5, 6]);
    assert_eq!(read(6, 3).await, [7]);
    assert_eq!(read(7, 3).await, [0; 0]);
    assert_eq!(read(-5, 1).await, [1]);
    assert_eq!(read(i64::MAX, 1).await, [0; 0]);
    assert_eq!(ExecutionRepository::lines(&db, ada.scope(), id(), 0, 1).await.unwrap(), None);
}

async fn lines_of_what_is_not_there_are_refused_as_a_whole(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let entry = an_entry(&db).await;
    let [(run, steps), (other, _)] =
        [1, 2].map(|number| a_run_of(&ada, &entry).numbered(number).with_steps());
    request(&db, (run.clone(), steps.clone()), false).await.unwrap();
    request(&db, (other.clone(), vec![]), false).await.unwrap();
    let unknown = db.append(id(), counted(1..=3)).await;
    let of_another = db.append(other.id, vec![a_line(None, "one"), a_line(Some(steps[0].id), "two")]).await;
    for refused in [unknown, of_another] {
        assert!(matches!(refused, Err(StoreError::Internal(_))), "{refused:?}");
    }
    assert_eq!(lines(&db, &other, 0, 10).await, []);
    assert_eq!(now(&db, &other).await.0.log_seq, 0);
}

const SHOWN: usize = ExecutionDetail::SHOWN;

/// Returns the shown output of a run that printed those lines, in two calls.
async fn shown(db: &Database, texts: &[String]) -> String {
    let ada = Resident::of(db, "ada").await;
    let (run, _) = a_run(db, &ada).await;
    for part in texts.chunks(texts.len().div_ceil(2)) {
        db.append(run.id, part.iter().map(|text| a_line(None, text)).collect()).await.unwrap();
    }
    let page = ExecutionRepository::page(db, ada.scope(), run.extension_id, a_page(1, 10));
    let in_page = page.await.unwrap().items.remove(0).1;
    let in_detail = detail(db, ada.scope(), run.id).await.unwrap().log;
    assert_eq!(in_page, in_detail);
    in_detail
}

async fn the_newest_64_kib_are_shown_from_the_beginning_of_a_line(db: Database) {
    let texts: Vec<String> = (0..3000).map(|number| format!("{number:04} {}", "ü".repeat(20))).collect();
    let shown = shown(&db, &texts).await;
    let expected: Vec<&str> = texts[3000 - SHOWN / 46..].iter().map(String::as_str).collect();
    assert_eq!(shown, format!("{}\n", expected.join("\n")));
    assert!(shown.len() <= SHOWN && shown.len() + 46 > SHOWN);
}

async fn a_log_of_exactly_64_kib_is_shown_whole(db: Database) {
    let mut texts = vec!["gone".to_owned(), "a".repeat(SHOWN / 2 - 1), "b".repeat(SHOWN / 2 - 1)];
    let shown = shown(&db, &texts).await;
    texts.remove(0);
    assert_eq!(shown, format!("{}\n", texts.join("\n")));
    assert_eq!(shown.len(), SHOWN);
}

async fn a_line_that_is_too_long_is_cut_between_characters(db: Database) {
    let shown = shown(&db, &["before".to_owned(), "🚀".repeat(SHOWN / 4 + 10)]).await;
    assert_eq!(shown, format!("{}\n", "🚀".repeat(SHOWN / 4 - 1)));
}

async fn of_each_step_the_newest_64_kib_are_shown(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (run, steps) = a_run(&db, &ada).await;
    let text = |number: usize| format!("{number:04} {}", "x".repeat(94));
    // Enough for one step, more than is shown of all together, and much more of another.
    db.append(run.id, (0..10).map(|number| a_line(Some(steps[2].id), &text(number))).collect())
        .await
        .unwrap();
    for number in 0..100 {
        let many = (0..10).map(|line| a_line(Some(steps[0].id), &text(number * 10 + line)));
        db.append(run.id, many.chain([a_line(None, "around")]).collect()).await.unwrap();
    }
    let detail = detail(&db, ada.scope(), run.id).await.unwrap();
    let joined = |from: usize, to: usize| (from..to).map(|number| text(number) + "\n").collect::<String>();
    let outputs: Vec<_> = detail.steps.into_iter().map(|step| step.output).collect();
    assert_eq!(outputs, [joined(1000 - SHOWN / 100, 1000), String::new(), joined(0, 10)]);
    assert!(detail.log.len() <= SHOWN && detail.log.ends_with("around\n"));
}

async fn lines_are_there_for_the_next_process(fresh: &Fresh) {
    let db = &fresh.database;
    let ada = Resident::of(db, "ada").await;
    let (run, _) = a_run(db, &ada).await;
    db.append(run.id, counted(1..=3)).await.unwrap();
    db.close().await;
    let next = fresh.open_again();
    next.append(run.id, counted(4..=5)).await.unwrap();
    assert_eq!(numbers(&lines(&next, &run, 0, 10).await), [1, 2, 3, 4, 5]);
}
