//! Previews of pull and merge requests.

mod limits;
mod statuses;

use launchway_testkit::{client::Client, server::TestServer};
use serde_json::{Value, json};

use super::{
    DEPLOY,
    code_hosts::Host,
    create,
    deliveries::handled,
    deployments,
    requests::{Happened, Request},
    secret_of, site,
};

super::super::on_both_databases!(
    every_code_host_opens_updates_and_closes_a_preview,
    an_application_without_previews_gets_none,
    a_request_into_another_branch_gets_no_preview,
    late_and_repeated_reports_make_no_preview,
    deleting_an_application_deletes_its_previews,
    settings_are_checked_and_kept,
);

pub(super) const DONE: &str = "Webhook handled successfully";
const FIRST: &str = "59b20b8d5c6ff8d09518454d4dd8b7b30f095ab5";
const SECOND: &str = "ec26c3e57ca3a959ca5aad62de7213c562f8c821";

/// Changes the preview settings of an application.
pub(super) fn set(admin: &Client, id: &str, change: &Value) -> Value {
    admin.put(&format!("{DEPLOY}/previews/settings?id={id}"), change).success()
}

/// Returns the previews of an application.
pub(super) fn previews(admin: &Client, id: &str) -> Vec<Value> {
    let listed = admin.get(&format!("{DEPLOY}/previews?id={id}")).success();
    listed["previews"].as_array().unwrap().clone()
}

/// Returns the names of all applications, in order.
pub(super) fn names(admin: &Client) -> Vec<String> {
    let listed = admin.get("/api/v1/deploy/applications?page_size=100").success();
    let listed = listed["applications"].as_array().unwrap().iter();
    let mut names: Vec<_> = listed.map(|one| one["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// Returns the address of a repository as the host sends it.
fn sent_url(host: Host) -> String {
    match host {
        Host::GitHub => "https://github.com/ada/engine.git".to_owned(),
        Host::Forgejo => "https://codeberg.example.com/ada/engine.git".to_owned(),
        other => other.address().to_owned(),
    }
}

/// An application with previews, on a machine without git, where every deployment fails.
struct Previewed {
    server: TestServer,
    admin: Client,
    id: String,
    secret: String,
}

impl Previewed {
    fn by(server: TestServer, host: Host) -> Self {
        let admin = server.admin();
        let id = create(&admin, &site("site", host.address()));
        let secret = secret_of(&admin, &id);
        set(&admin, &id, &json!({"enabled": true}));
        Self { server, admin, id, secret }
    }

    fn send(&self, host: Host, happened: Happened, request: &Request<'_>) -> String {
        handled(&request.by(host, happened).send(&self.server.client(), &self.secret))
    }
}

/// Returns request 7 of the host's repository.
fn request<'a>(url: &'a str, head: &'a str) -> Request<'a> {
    Request { url, number: 7, branch: "feature/login", head, is_from_fork: false }
}

fn every_code_host_opens_updates_and_closes_a_preview(server: TestServer) {
    let admin = server.admin();
    for host in Host::ALL {
        let name = format!("{host:?}");
        let id = create(&admin, &site(&name, host.address()));
        let secret = secret_of(&admin, &id);
        set(&admin, &id, &json!({"enabled": true}));
        let url = sent_url(host);
        let send =
            |happened, head| handled(&request(&url, head).by(host, happened).send(&server.client(), &secret));
        assert_eq!(send(Happened::Opened, FIRST), DONE, "{host:?}");
        let [preview] = &previews(&admin, &id)[..] else { panic!("{host:?}") };
        assert_eq!(
            (&preview["number"], &preview["state"], &preview["branch"], &preview["awaits_approval"]),
            (&json!(7), &json!("active"), &json!("feature/login"), &json!(false))
        );
        assert_eq!(preview["code_host"], name.to_lowercase());
        let running = preview["application_id"].as_str().unwrap();
        let application = admin.get(&format!("{DEPLOY}?id={running}")).success();
        assert_eq!(
            (&application["name"], &application["environment"], &application["branch"]),
            (&json!(format!("pr-7-{name}")), &json!("preview"), &json!("feature/login"))
        );
        assert_eq!((&application["auto_deploy"], &application["domain"]), (&json!(false), &json!("")));
        let host_name = format!("pr-7-{}-preview.ada-s-team.localhost", name.to_lowercase());
        assert_eq!(application["domains"], json!([host_name]));

        assert_eq!(send(Happened::Opened, FIRST), "Duplicate delivery ignored", "{host:?}");
        assert_eq!(send(Happened::Updated, SECOND), DONE, "{host:?}");
        assert_eq!(deployments(&admin, running).len(), 2, "{host:?}");
        assert_eq!(previews(&admin, &id)[0]["application_id"], *running);

        assert_eq!(send(Happened::Closed, SECOND), DONE, "{host:?}");
        assert_eq!(previews(&admin, &id), Vec::<Value>::new());
        admin.get(&format!("{DEPLOY}?id={running}")).failure(404, "not_found");
        assert_eq!(deployments(&admin, &id).len(), 1, "{host:?}");
    }
    let audit = admin.get("/api/v1/audit/logs?page_size=100").success().to_string();
    for sentence in [
        "created the preview `pr-7-GitHub` of the application `GitHub` (production) by pull request 7 on GitHub",
        "updated the preview `pr-7-GitLab` of the application `GitLab` (production) by merge request 7 on GitLab",
        "deleted the application `pr-7-Bitbucket` (preview)",
        "changed the preview settings of the application `Gitea` (production)",
    ] {
        assert!(audit.contains(sentence), "{sentence}: {audit}");
    }
}

fn an_application_without_previews_gets_none(server: TestServer) {
    let harness = Previewed::by(server, Host::GitHub);
    set(&harness.admin, &harness.id, &json!({"enabled": false}));
    let url = sent_url(Host::GitHub);
    let message = harness.send(Host::GitHub, Happened::Opened, &request(&url, FIRST));
    assert_eq!(message, "Ignored pull request 7: no application of the repository has previews");
    // A request that has one keeps it until it is closed.
    set(&harness.admin, &harness.id, &json!({"enabled": true}));
    assert_eq!(harness.send(Host::GitHub, Happened::Opened, &request(&url, FIRST)), DONE);
    set(&harness.admin, &harness.id, &json!({"enabled": false}));
    assert_eq!(names(&harness.admin), ["pr-7-site", "site"]);
    assert_eq!(harness.send(Host::GitHub, Happened::Merged, &request(&url, FIRST)), DONE);
    assert_eq!(names(&harness.admin), ["site"]);
}

fn a_request_into_another_branch_gets_no_preview(server: TestServer) {
    let harness = Previewed::by(server, Host::GitLab);
    let url = sent_url(Host::GitLab);
    let mut delivery = request(&url, FIRST).by(Host::GitLab, Happened::Opened);
    delivery.body = delivery.body.replace(r#""target_branch":"main""#, r#""target_branch":"next""#);
    let message = handled(&delivery.send(&harness.server.client(), &harness.secret));
    assert_eq!(
        message,
        "Ignored merge request 7: no application with previews deploys its target branch `next`"
    );
    assert_eq!(names(&harness.admin), ["site"]);
}

fn late_and_repeated_reports_make_no_preview(server: TestServer) {
    let harness = Previewed::by(server, Host::Gitea);
    let url = sent_url(Host::Gitea);
    let (first, second) = (request(&url, FIRST), request(&url, SECOND));
    assert_eq!(harness.send(Host::Gitea, Happened::Opened, &first), DONE);
    assert_eq!(harness.send(Host::Gitea, Happened::Closed, &first), DONE);
    assert_eq!(
        harness.send(Host::Gitea, Happened::Updated, &second),
        "Ignored pull request 7: it was closed"
    );
    let again = first.by(Host::Gitea, Happened::Opened).called("another id");
    let message = handled(&again.send(&harness.server.client(), &harness.secret));
    assert_eq!(message, "Ignored pull request 7: it was closed");
    assert_eq!(names(&harness.admin), ["site"]);
    assert_eq!(harness.send(Host::Gitea, Happened::Reopened, &second), DONE);
    assert_eq!(names(&harness.admin), ["pr-7-site", "site"]);
    // The same commit needs no other deployment.
    let same = second.by(Host::Gitea, Happened::Updated).called("edited");
    let message = handled(&same.send(&harness.server.client(), &harness.secret));
    assert_eq!(message, "Ignored pull request 7: commit ec26c3e is known already");
    // A signature of another secret changes nothing.
    let forged = second.by(Host::Gitea, Happened::Closed).called("forged");
    forged.send(&harness.server.client(), "another secret that is long").failure(401, "invalid_signature");
    assert_eq!(names(&harness.admin), ["pr-7-site", "site"]);
}

fn deleting_an_application_deletes_its_previews(server: TestServer) {
    let harness = Previewed::by(server, Host::Forgejo);
    let url = sent_url(Host::Forgejo);
    for number in [7, 8] {
        let request = Request { number, ..request(&url, FIRST) };
        assert_eq!(harness.send(Host::Forgejo, Happened::Opened, &request), DONE);
    }
    assert_eq!(names(&harness.admin), ["pr-7-site", "pr-8-site", "site"]);
    // One that is deleted by hand is made again by the next change of its request.
    let running = previews(&harness.admin, &harness.id)[0]["application_id"].as_str().unwrap().to_owned();
    harness.admin.delete(&format!("{DEPLOY}?id={running}")).success();
    assert_eq!(names(&harness.admin), ["pr-8-site", "site"]);
    assert_eq!(harness.send(Host::Forgejo, Happened::Updated, &request(&url, SECOND)), DONE);
    assert_eq!(names(&harness.admin), ["pr-7-site", "pr-8-site", "site"]);
    harness.admin.delete(&format!("{DEPLOY}?id={}", harness.id)).success();
    assert_eq!(names(&harness.admin), Vec::<String>::new());
}

fn settings_are_checked_and_kept(server: TestServer) {
    let harness = Previewed::by(server, Host::GitHub);
    let path = format!("{DEPLOY}/previews/settings?id={}", harness.id);
    let shown = harness.admin.get(&path).success();
    assert_eq!(
        (&shown["enabled"], &shown["limit"], &shown["lifetime_hours"], &shown["run_commands"]),
        (&json!(true), &json!(5), &json!(168), &json!(false))
    );
    let change = json!({
        "limit": 50, "lifetime_hours": 2160, "shared_variables": ["B", "A"], "run_commands": true,
        "environment_variables": {"MODE": "preview"}, "build_variables": {"LEVEL": "1"},
    });
    let changed = set(&harness.admin, &harness.id, &change);
    assert_eq!(harness.admin.get(&path).success(), changed);
    assert_eq!(
        (&changed["shared_variables"], &changed["environment_variables"], &changed["build_variables"]),
        (&json!(["A", "B"]), &json!(r#"{"MODE":"preview"}"#), &json!(r#"{"LEVEL":"1"}"#))
    );
    // Absent fields keep their values.
    let changed = set(&harness.admin, &harness.id, &json!({"limit": 1}));
    assert_eq!((&changed["limit"], &changed["lifetime_hours"]), (&json!(1), &json!(2160)));
    for wrong in [
        json!({"limit": 0}),
        json!({"limit": 51}),
        json!({"lifetime_hours": 0}),
        json!({"lifetime_hours": 2161}),
        json!({"shared_variables": ["A B"]}),
        json!({"environment_variables": {"A B": "c"}}),
        json!({"enabled": "yes"}),
    ] {
        harness.admin.put(&path, &wrong).failure(400, "validation_failed");
    }
    // What has no requests has no previews.
    let image = json!({
        "name": "image", "repository": "registry.example/shop", "port": 8080, "environment": "production",
        "build_pack": "image",
    });
    let image = create(&harness.admin, &image);
    let path = format!("{DEPLOY}/previews/settings?id={image}");
    harness.admin.put(&path, &json!({"enabled": true})).failure(409, "conflict");
    let url = sent_url(Host::GitHub);
    assert_eq!(harness.send(Host::GitHub, Happened::Opened, &request(&url, FIRST)), DONE);
    let preview = previews(&harness.admin, &harness.id)[0]["application_id"].as_str().unwrap().to_owned();
    let path = format!("{DEPLOY}/previews/settings?id={preview}");
    harness.admin.put(&path, &json!({"enabled": true})).failure(409, "conflict");
    // Of others, or of nobody.
    let unknown = "0190a5d4-7c1e-7000-8000-000000000000";
    for path in
        [format!("{DEPLOY}/previews?id={unknown}"), format!("{DEPLOY}/previews/settings?id={unknown}")]
    {
        harness.admin.get(&path).failure(404, "not_found");
    }
}
