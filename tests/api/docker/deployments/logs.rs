//! Output of deployments and containers: stored, searched, and streamed.

use launchway_testkit::client::Client;
use serde_json::Value;

use super::{
    harness::{DEPLOY, Harness, spec, text},
    repository::{running, web_server_by},
};
use crate::wait::until;

super::on_both_engines!(a_log_can_be_paged_and_filtered, a_log_is_followed_as_it_is_written);

/// A Dockerfile that prints for a while and then fails.
fn talkative(lines: u32, pause: &str) -> String {
    let talk = format!("RUN for n in $(seq {lines}); do echo \"Step number $n\"; sleep {pause}; done");
    running("exit 1").replace("CMD", &format!("{talk}\nCMD"))
}

fn a_log_can_be_paged_and_filtered(harness: Harness) {
    let repository = harness.repository("shop");
    repository.write("Dockerfile", talkative(40, "0")).commit();
    let (application, first) = harness.create(&spec("shop", &repository));
    let id = text(&application["id"]);
    harness.failed(&first);
    let second = harness.redeploy(&id);
    harness.failed(&second);
    let ask = |query: &str| harness.admin.get(&format!("{DEPLOY}/logs/{id}?embed=none&{query}")).success();
    let ids = |data: &Value| -> Vec<String> {
        data["logs"].as_array().unwrap().iter().map(|line| text(&line["id"])).collect()
    };

    let whole = ask("page_size=1000");
    let all = ids(&whole);
    assert!(all.len() > 60 && whole["total_count"] == all.len(), "{}", whole["total_count"]);
    let mut paged = Vec::new();
    for page in 1.. {
        let data = ask(&format!("page_size=7&page={page}"));
        assert_eq!((&data["page"], &data["page_size"]), (&page.into(), &7.into()));
        assert_eq!(data["pagination"]["has_next"], data["total_pages"] != page);
        paged.extend(ids(&data));
        if data["pagination"]["has_next"] == false {
            break;
        }
    }
    assert_eq!(paged, all);
    assert_eq!(ids(&ask("")).len(), all.len().min(100));

    let texts = |data: &Value| -> Vec<String> {
        data["logs"].as_array().unwrap().iter().map(|line| text(&line["log"])).collect()
    };
    let found = texts(&ask("search_term=STEP%20NUMBER%2017&level=build"));
    // Once or twice: the second build may have taken it from the cache.
    assert!(!found.is_empty() && found.iter().all(|line| line == "Step number 17"), "{found:?}");
    let of_second = ask(&format!("deployment_id={second}&page_size=1000"));
    assert_eq!(of_second["total_count"], harness.lines_of(&second).len());
    let errors = ask("level=error");
    assert_eq!(errors["total_count"], 2);

    let oldest_first: Vec<String> = all.iter().rev().cloned().collect();
    let later = ask(&format!("after={}&page_size=1000", oldest_first[9]));
    assert_eq!(ids(&later), oldest_first[10..]);
    let moment = text(&whole["logs"][30]["created_at"]);
    let (before, after) = (
        ask(&format!("end_time={moment}&page_size=1000")),
        ask(&format!("start_time={moment}&page_size=1000")),
    );
    let moments = |data: &Value| -> Vec<String> {
        data["logs"].as_array().unwrap().iter().map(|line| text(&line["created_at"])).collect()
    };
    assert!(
        moments(&before).iter().all(|at| *at <= moment) && moments(&after).iter().all(|at| *at >= moment)
    );
    assert!(ids(&before).len() + ids(&after).len() > all.len(), "both ends are included");
    for query in ["page=0", "level=loud", "embed=all", "start_time=yesterday", "after=1", "deployment_id=1"] {
        let refused = harness.admin.get(&format!("{DEPLOY}/logs/{id}?{query}"));
        assert_eq!(refused.status, 400, "{query}");
    }
}

fn a_log_is_followed_as_it_is_written(harness: Harness) {
    let repository = harness.repository("shop");
    repository.write("Dockerfile", talkative(30, "0.1")).commit();
    let (_, deployment) = harness.create(&spec("shop", &repository));
    let path = format!("{DEPLOY}/deployments/{deployment}/logs/stream");
    let mut reported: Vec<(String, String)> = Vec::new();
    let mut has_ended = false;
    // Each client disconnects after a while, and the next one continues there.
    for timeout in [3, 9, 1, 14, usize::MAX] {
        let client = match reported.last() {
            Some((id, _)) => harness.admin.with_header("last-event-id", id),
            None => harness.admin.clone(),
        };
        has_ended = listen(&client, &path, timeout, &mut reported);
    }
    assert!(has_ended, "the log of a failed deployment has an end");
    let kept: Vec<(String, String)> =
        harness.lines_of(&deployment).iter().map(|line| (text(&line["id"]), text(&line["log"]))).collect();
    assert_eq!(reported, kept);
    assert!(reported.len() > 35);

    // A late client gets the same lines, and the end at once.
    let late = harness.admin.get(&path);
    assert_eq!((late.status, late.headers["content-type"].as_str()), (200, "text/event-stream"));
    assert_eq!(late.text.matches("event: log\n").count(), kept.len());
    assert!(late.text.ends_with("event: end\ndata: {}\n\n"));
    let wrong = harness.admin.with_header("last-event-id", "garbage").get(&path);
    wrong.failure(400, "invalid_id");
}

/// Reads `timeout` lines from a stream; returns whether its end was sent.
fn listen(client: &Client, path: &str, timeout: usize, reported: &mut Vec<(String, String)>) -> bool {
    let (mut id, mut taken) = (String::new(), 0);
    for line in client.lines(path) {
        if line == "event: end" {
            return true;
        } else if let Some(of_line) = line.strip_prefix("id: ") {
            of_line.clone_into(&mut id);
        } else if let Some(data) = line.strip_prefix("data: ") {
            let data: Value = serde_json::from_str(data).unwrap();
            assert_eq!(data["id"], id);
            reported.push((id.clone(), text(&data["log"])));
            taken += 1;
            if taken == timeout {
                break;
            }
        }
    }
    false
}

#[test]
fn what_a_container_printed_is_kept_after_it_was_replaced() {
    let harness = Harness::on_sqlite(&[]);
    let (id, first) = printing(&harness);
    harness.repository("shop").commit_page("the next page");
    harness.deployed(&harness.redeploy(&id));
    harness.has_containers(1);
    let story = harness.story_of(&first);
    for line in ["runtime: hello", "runtime: warning"] {
        assert_eq!(story.matches(line).count(), 1, "{story}");
    }
}

#[test]
fn the_last_lines_of_a_container_are_kept() {
    let harness = Harness::on_sqlite(&[]);
    let (id, first) = printing(&harness);
    harness.repository("shop").commit_page("the next page");
    harness.deployed(&harness.redeploy(&id));
    harness.has_containers(1);
    until("its last line", || harness.story_of(&first).contains("runtime: goodbye").then_some(()));
}

/// Creates an application whose container prints when it starts and when it stops, and waits until the
/// first line is in the log; returns it with its live deployment.
fn printing(harness: &Harness) -> (String, String) {
    let repository = harness.repository("shop");
    let printing = web_server_by(
        "",
        "trap 'echo goodbye; exit 0' TERM; echo hello; echo warning >&2; httpd -f -p 8080 -h /www & wait",
    )
    .replace("STOPSIGNAL SIGKILL\n", "");
    repository.write("Dockerfile", printing).write("index.html", "a page").commit();
    let (id, first) = harness.create_live(&spec("shop", &repository));
    let first = text(&first["id"]);
    until("what the container prints", || {
        harness.story_of(&first).contains("runtime: warning").then_some(())
    });
    (id, first)
}

#[test]
fn an_application_that_does_not_stay_up_is_said_to_have_failed() {
    let harness = Harness::on_sqlite(&[]);
    let repository = harness.repository("shop");
    let dying = web_server_by("", "httpd -p 8080 -h /www; echo alive; sleep 2; exit 1");
    repository.write("Dockerfile", dying).write("index.html", "a page").commit();
    let (id, deployment) = harness.create_live(&spec("shop", &repository));
    crate::wait::until("the failure", || {
        (harness.application(&id)["status"]["status"] == "failed").then_some(())
    });
    // The line follows the state.
    until("a line about it", || {
        harness
            .story_of(&text(&deployment["id"]))
            .contains("error: The application is unhealthy: the container keeps restarting")
            .then_some(())
    });
    // What it prints is collected all the same.
    until("what each start printed", || {
        let story = harness.story_of(&text(&deployment["id"]));
        (story.matches("runtime: alive").count() >= 4).then_some(())
    });
    // It was deployed all the same, and a better version repairs it.
    repository.commit_page("a page that stays");
    harness.deployed(&harness.redeploy(&id));
    assert_eq!(harness.application(&id)["status"]["status"], "running");
}
