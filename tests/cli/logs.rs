//! `logs`: selection, order and format of lines.

use crate::harness::{Harness, text};

#[test]
fn lines_come_oldest_first_and_can_be_narrowed() {
    let harness = Harness::new();
    let (ada, repository) = harness.site("shop");
    repository.write("index.html", "the second page").commit();
    ada.runs(&["deploy"]).succeeded();
    let all = ada.runs(&["logs", "shop", "--output", "json"]).json();
    let ids: Vec<_> = all.as_array().unwrap().iter().map(|line| text(&line["id"])).collect();
    assert!(ids.len() >= 8 && ids.is_sorted(), "{all}");
    assert!(all[0].get("application_id").is_some(), "the whole record is shown: {all}");

    // As text: the time to the second, the level, and the text. Without a name, of this repository.
    let shown = ada.runs(&["logs"]);
    let first = shown.succeeded().lines().next().unwrap();
    let (moment, rest) = first.split_once(' ').unwrap();
    assert!(moment.ends_with('Z') && moment.len() == 20, "{shown}");
    assert_eq!(rest, format!("info    {}", text(&all[0]["log"])));
    assert_eq!(shown.stdout.lines().count(), ids.len());

    let count =
        |arguments: &[&str]| ada.runs(&[&["logs", "shop"], arguments].concat()).succeeded().lines().count();
    assert_eq!(count(&["--lines", "3"]), 3);
    assert_eq!(ada.runs(&["logs", "shop", "-n", "1"]).stdout.lines().last(), shown.stdout.lines().last());
    assert_eq!(count(&["--search", "LIVE AT"]), 2);
    assert_eq!(count(&["--level", "error"]), 0);
    assert_eq!(count(&["--since", "1h"]), ids.len());
    assert_eq!(count(&["--since", &text(&all[5]["created_at"])]), ids.len() - 5);
    let deployments = ada.runs(&["deployments", "--output", "json"]).json();
    let first = text(&deployments["deployments"][1]["id"]);
    assert_eq!(count(&["--deployment", &first]), harness.lines_of(&first).len());
    assert!(ada.runs(&["logs", "shop", "--since", "yesterday"]).failed_to_parse().contains("10m or 2h"));
    assert!(ada.runs(&["logs", "shop", "--level", "loud"]).failed_to_parse().contains("runtime"));
    ada.runs(&["logs", "store"]).failed(4);
}

#[test]
fn what_comes_is_shown_and_nothing_else_with_no_lines() {
    use std::{
        io::{BufRead as _, BufReader},
        process::Stdio,
    };
    let harness = Harness::new();
    let (ada, _) = harness.site("shop");
    let mut command = ada.command(&["logs", "shop", "--follow", "--lines", "0", "--search", "Live at"]);
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    // It skips what is there before it follows, so the deployments go on until one is heard of.
    std::thread::scope(|scope| {
        let heard = scope.spawn(move || lines.next().unwrap().unwrap());
        let mut deployments = 0;
        while !heard.is_finished() {
            ada.runs(&["deploy", "shop"]).succeeded();
            deployments += 1;
            assert!(deployments < 50);
            std::thread::sleep(std::time::Duration::from_millis(500));
        }
        assert!(heard.join().unwrap().contains("Live at http://shop."));
    });
    process.kill().unwrap();
    process.wait().unwrap();
}
