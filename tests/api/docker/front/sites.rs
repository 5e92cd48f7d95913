//! Static sites, on a machine with git and without an engine.

use std::{fs, os::unix::fs::symlink};

use launchway_testkit::server::WITH_A_FRONT;

use super::{page, site, status};
use crate::docker::deployments::harness::Harness;

/// A server that finds git, and no engine.
fn without_an_engine() -> (Harness, tempfile::TempDir) {
    let programs = tempfile::tempdir().unwrap();
    let path = std::env::var("PATH").unwrap();
    for program in ["git", "tar", "setpriv", "prlimit"] {
        let found = path
            .split(':')
            .map(|folder| format!("{folder}/{program}"))
            .find(|file| fs::exists(file).unwrap());
        symlink(found.unwrap(), programs.path().join(program)).unwrap();
    }
    let harness = Harness::on_sqlite(&[WITH_A_FRONT, ("PATH", programs.path().to_str().unwrap())]);
    (harness, programs)
}

#[test]
fn a_site_is_deployed_changed_and_taken_back_without_an_engine() {
    let (harness, _programs) = without_an_engine();
    let repository = harness.repository("site");
    repository.write("index.html", "the first page").write("style.css", "p {}").commit();
    let (id, first) = harness.create_live(&site("site", &repository));
    let host = "site.ada-s-team.localhost";
    assert_eq!(page(&harness, host), "the first page");
    let visitor = harness.server.visitor(host);
    let style = visitor.get("/style.css");
    assert_eq!(style.headers["content-type"], "text/css; charset=utf-8");
    let tag = style.headers["etag"].clone();

    repository.write("index.html", "the second page").commit();
    harness.deployed(&harness.redeploy(&id));
    assert_eq!(page(&harness, host), "the second page");
    // What did not change is not sent again.
    assert_eq!(visitor.with_header("if-none-match", &tag).get("/style.css").status, 304);

    let back = serde_json::json!({"id": first["id"]});
    let back = harness.admin.post("/api/v1/deploy/application/rollback", &back).success();
    harness.deployed(back["id"].as_str().unwrap());
    assert_eq!(page(&harness, host), "the first page");
}

#[test]
fn a_single_page_application_answers_every_path() {
    let (harness, _programs) = without_an_engine();
    let repository = harness.repository("app");
    repository.write("index.html", "home").write("200.html", "the application").commit();
    harness.create_live(&site("app", &repository));
    let visitor = harness.server.visitor("app.ada-s-team.localhost");
    let answer = visitor.with_header("accept", "text/html").get("/orders/12");
    assert_eq!((answer.status, answer.text.as_str()), (200, "the application"));
}

#[test]
fn what_is_not_published_is_not_shown() {
    let (harness, _programs) = without_an_engine();
    let repository = harness.repository("site");
    repository
        .write("public/index.html", "home")
        .write("public/.env", "SECRET=1")
        .write("secret.txt", "no")
        .commit();
    let mut spec = site("site", &repository);
    spec["base_path"] = "public".into();
    let (id, _) = harness.create_live(&spec);
    let visitor = harness.server.visitor("site.ada-s-team.localhost");
    for path in
        ["/.env", "/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/.git/config", "/secret.txt"]
    {
        let answer = visitor.get(path);
        assert!([400, 404].contains(&answer.status), "{path}: {answer:?}");
    }

    symlink("/etc/passwd", repository.path().join("public/leak")).unwrap();
    repository.commit();
    let log = harness.failed(&harness.redeploy(&id));
    assert!(log.contains("points outside"), "{log}");
    assert_eq!(status(&harness, "site.ada-s-team.localhost"), 200);
}
