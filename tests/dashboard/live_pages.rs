//! Pages that people leave open: what they cost, and when they change.

use launchway_testkit::{
    browser::Browser,
    client::Client,
    repository::Repository,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
    wait::until,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{journey::log_in, requests::Visitor};

const DEPLOY: &str = "/api/v1/deploy/application";

/// A server, and a repository of it.
struct Live {
    server: TestServer,
    admin: Client,
    repository: Repository,
    _folder: TempDir,
}

impl Live {
    fn new(start: fn(&[(&str, &str)]) -> TestServer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::empty(folder.path().join("site"));
        repository.write("index.html", "a page\n").commit();
        let (path, repositories) = (std::env::var("PATH").unwrap(), folder.path().display().to_string());
        let server = start(&[("PATH", &path), ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", &repositories)]);
        let admin = server.admin();
        Self { server, admin, repository, _folder: folder }
    }

    /// Creates a site, waits for the end of its deployment, and returns its id.
    fn create(&self, name: &str) -> String {
        let spec = json!({
            "name": name, "repository": format!("file://{}", self.repository.path().display()), "branch": "main",
            "port": 8080, "environment": "production", "build_pack": "static",
        });
        let created = self.admin.post(DEPLOY, &spec).success();
        let deployment = created["deployments"][0]["id"].as_str().unwrap();
        until("the end of the deployment", || {
            let found = self.admin.get(&format!("{DEPLOY}/deployments/{deployment}")).success();
            (found["status"]["status"] == "deployed").then_some(())
        });
        created["id"].as_str().unwrap().to_owned()
    }
}

/// Returns the number of read queries since the start of the server.
fn reads(server: &TestServer) -> u64 {
    let metrics = server.client().get("/metrics").text;
    let line = metrics.lines().find_map(|line| line.strip_prefix("launchway_database_reads_total "));
    line.unwrap().parse().unwrap()
}

/// Returns the number of reads that 50 viewers of a page cause, each of whom fetches it twice.
fn reads_of_viewers(server: &TestServer, visitor: &Visitor, path: &str) -> u64 {
    let before = reads(server);
    for _ in 0..50 {
        let first = visitor.poll(path, "\"none\"");
        assert_eq!(first.status, 200, "{path}");
        let second = visitor.poll(path, &first.headers["etag"]);
        assert_eq!((second.status, second.text.as_str()), (304, ""), "{path}");
    }
    reads(server) - before
}

#[test]
fn fifty_viewers_cause_few_reads() {
    let live = Live::new(TestServer::configured);
    let (id, server) = (live.create("Shop"), &live.server);
    let visitor = Visitor::log_in(server, ADMIN_EMAIL, ADMIN_PASSWORD);
    for path in ["/applications", &format!("/applications/{id}")] {
        // Without sharing they would be 200 and more.
        let reads = reads_of_viewers(server, &visitor, path);
        assert!(reads <= 60, "{path}: {reads} reads");
    }
}

#[test]
fn fifty_viewers_cause_few_reads_on_postgres() {
    let live = Live::new(TestServer::configured_on_postgres);
    live.create("Shop");
    let server = &live.server;
    let visitor = Visitor::log_in(server, ADMIN_EMAIL, ADMIN_PASSWORD);
    // Each request reads the epoch of its identity.
    let reads = reads_of_viewers(server, &visitor, "/applications");
    assert!((100..=160).contains(&reads), "{reads} reads");
}

#[test]
fn a_changed_page_is_sent_and_an_unchanged_one_is_not() {
    let live = Live::new(TestServer::configured);
    live.create("Shop");
    let server = &live.server;
    let visitor = Visitor::log_in(server, ADMIN_EMAIL, ADMIN_PASSWORD);
    let opened = visitor.get("/applications");
    let tag = opened.headers["etag"].clone();
    assert_eq!(visitor.poll("/applications", &tag).status, 304);
    assert_eq!(visitor.poll("/applications?search=shop", "\"none\"").status, 200);
    live.create("Documentation");
    let changed = until("the change", || {
        let answer = visitor.poll("/applications", &tag);
        (answer.status == 200).then_some(answer)
    });
    assert!(changed.text.contains("Documentation"));
    assert_ne!(changed.headers["etag"], tag);
    // Another session has other forms.
    let other = Visitor::log_in(server, ADMIN_EMAIL, ADMIN_PASSWORD);
    assert_eq!(other.poll("/applications", &changed.headers["etag"]).status, 200);
    assert_eq!(visitor.send("/logout", &[]).status, 303);
    assert_eq!(visitor.poll("/applications", &changed.headers["etag"]).status, 303);
}

#[test]
fn an_open_page_shows_a_new_application() {
    let live = Live::new(TestServer::configured);
    live.create("Shop");
    let server = &live.server;
    let browser = Browser::start();
    log_in(&browser, server);
    browser.wait_for("document.querySelectorAll('#applications .name').length === 1");
    let fetched =
        "performance.getEntriesByType('resource').filter(e => e.name.endsWith('/applications')).length";
    // The answer to the second fetch has no contents, and leaves the page as it is.
    browser.wait_for(&format!("{fetched} >= 2"));
    assert_eq!(browser.value("document.querySelectorAll('#applications .name').length"), 1);
    live.create("Documentation");
    browser.wait_for("document.querySelectorAll('#applications .name').length === 2");
    assert_eq!(browser.console_errors(), Vec::<Value>::new());
}
