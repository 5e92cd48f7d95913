//! The page of the installation: queue, disk and checks.

use std::{
    env,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
};

use launchway_testkit::{
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
    wait::until,
};
use serde_json::json;

use crate::requests::Visitor;

/// Returns the text of the cells of the checks: outcome, part and finding of each.
fn checks(page: &str) -> Vec<[String; 3]> {
    let (_, table) = page.split_once("<table class=\"list checks\">").unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    let text = |cell: &str| {
        let mut text = String::new();
        let mut is_tag = false;
        for letter in cell.chars() {
            match letter {
                '<' => is_tag = true,
                '>' => is_tag = false,
                letter if !is_tag => text.push(letter),
                _ => {}
            }
        }
        text
    };
    let rows = table.split("<tr>").skip(2).map(|row| {
        let cells: Vec<String> = row.split("</t").take(3).map(|cell| text(&format!("<t{cell}"))).collect();
        cells.try_into().unwrap()
    });
    rows.collect()
}

/// Returns the finding about a part.
#[track_caller]
fn finding(page: &str, part: &str) -> String {
    let checks = checks(page);
    let found = checks.iter().find(|[_, subject, _]| subject.ends_with(part));
    found.unwrap_or_else(|| panic!("no check of {part} in {checks:?}")).join(" ")
}

fn shows_the_installation(server: &TestServer) {
    server.admin();
    let visitor = Visitor::log_in(server, ADMIN_EMAIL, ADMIN_PASSWORD);
    let page = visitor.get("/installation");
    assert_eq!(page.status, 200, "{}", page.text);
    for part in [
        "No job waits or runs.",
        " are free.",
        "<meter min=\"0\"",
        "<dt>Logs in it</dt><dd>0 B</dd>",
        "Those of",
    ] {
        assert!(page.text.contains(part), "no {part:?} in {}", page.text);
    }
    // The checks of the command line, in its words.
    let doctor = server.command(&["doctor"]).output().unwrap();
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    for part in ["server", "database", "installation", "packet filter"] {
        let prefix = format!("ok    {part}: ");
        let line = doctor.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap();
        // Code between backticks is an element of the page.
        assert!(finding(&page.text, part).contains(&line.replace('`', "")), "{part}: {line}");
    }
    let before = finding(&page.text, "server");
    assert!(before.contains("runs on this data directory"), "{before}");
    // The server goes on as before: nothing of its locks was released.
    assert_eq!(visitor.send("/installation/check", &[]).status, 303);
    assert_eq!(visitor.get("/installation?done=checked").status, 200);
    assert!(server.command(&["migrate"]).output().unwrap().stderr.len() > 10, "the data directory is in use");
}

#[test]
fn administrators_see_queue_disk_and_checks() {
    shows_the_installation(&TestServer::on_sqlite());
}

#[test]
fn administrators_see_queue_disk_and_checks_on_postgres() {
    shows_the_installation(&TestServer::on_postgres());
}

#[test]
fn waiting_jobs_are_shown_by_kind() {
    // A repository that is never fetched, so that the other deployments wait.
    let folder = tempfile::tempdir().unwrap();
    let git = folder.path().join("git");
    fs::write(&git, "#!/bin/sh\nexec /bin/sleep 60\n").unwrap();
    fs::set_permissions(&git, Permissions::from_mode(0o755)).unwrap();
    let path = folder.path().display().to_string();
    let programs = format!("{path}:{}", env::var("PATH").unwrap());
    let server = TestServer::configured(&[
        ("LAUNCHWAY_MAX_BUILDS", "1"),
        ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", &path),
        ("PATH", &programs),
    ]);
    let admin = server.admin();
    for number in 0..3 {
        let spec = json!({
            "name": format!("Shop {number}"), "repository": format!("file://{path}/shop"), "branch": "main",
            "port": 8080, "environment": "production", "build_pack": "dockerfile",
        });
        admin.post("/api/v1/deploy/application", &spec).success();
    }
    let visitor = Visitor::log_in(&server, ADMIN_EMAIL, ADMIN_PASSWORD);
    let page = until("the first job to run", || {
        let page = visitor.get("/installation").text;
        page.contains("<dt>Waiting</dt><dd>2</dd><dt>Running</dt><dd>1</dd>").then_some(page)
    });
    assert!(page.contains("<th scope=\"row\">Deploy<span class=\"sub quiet\">oldest: "), "{page}");
    assert!(page.contains("<dt>Oldest</dt><dd>waits for "), "{page}");
}

#[test]
fn a_problem_is_shown_with_its_hint() {
    let server = TestServer::configured(&[("LAUNCHWAY_MIN_FREE_DISK", "999999g")]);
    server.admin();
    let page = Visitor::log_in(&server, ADMIN_EMAIL, ADMIN_PASSWORD).get("/installation").text;
    assert!(page.contains("Deployments are rejected until "), "{page}");
    let disk = finding(&page, "disk");
    assert!(
        disk.contains("LAUNCHWAY_MIN_FREE_DISK requires") && disk.contains("Hint: free some space"),
        "{disk}"
    );
    assert!(page.contains("<span class=\"state bad\">problems</span>"), "{page}");
}

#[test]
fn nobody_else_checks_the_installation() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let user = json!({"email": "grace@example.com", "role": "admin"});
    let added = admin.post("/api/v1/organizations/users", &user).success();
    let setup = json!({"token": added["setup_token"], "password": "a long password of grace"});
    server.client().post("/api/v1/auth/password/setup", &setup).success();
    let visitor = Visitor::log_in(&server, "grace@example.com", "a long password of grace");
    assert_eq!(visitor.send("/installation/check", &[]).status, 403);
    assert_eq!(visitor.get("/installation").status, 403);
}
