//! Commit statuses: code hosts show the progress and the address of previews.

use launchway_testkit::{
    client::Client,
    external::{Message, Reply, TestReceiver},
    server::TestServer,
    wait::until,
};
use serde_json::{Value, json};

use super::{DONE, FIRST, SECOND, previews, request, sent_url, set};
use crate::webhooks::{
    DEPLOY, code_hosts::Host, create, deliveries::handled, deployments, requests::Happened, secret_of, site,
};

/// Starts a server with these settings.
type Start = fn(&[(&str, &str)]) -> TestServer;

mod on_sqlite {
    use launchway_testkit::server::TestServer;

    #[test]
    fn every_code_host_is_told_of_previews() {
        super::every_code_host_is_told_of_previews(TestServer::configured);
    }

    #[test]
    fn a_report_that_fails_is_made_again() {
        super::a_report_that_fails_is_made_again(TestServer::configured);
    }
}

mod on_postgres {
    use launchway_testkit::server::TestServer;

    #[test]
    fn every_code_host_is_told_of_previews() {
        super::every_code_host_is_told_of_previews(TestServer::configured_on_postgres);
    }

    #[test]
    fn a_report_that_fails_is_made_again() {
        super::a_report_that_fails_is_made_again(TestServer::configured_on_postgres);
    }
}

const TOKENS: &str = "/api/v1/organizations/code-host-tokens";
const TOKEN: &str = "a-secret-token-of-the-host";

/// A server whose reports all go to the receiver, and its administrator.
fn started(start: Start, receiver: &TestReceiver) -> (TestServer, Client) {
    let allowed = format!("127.0.0.1/32:{}", receiver.port);
    let server = start(&[("LAUNCHWAY_OUTBOUND_ALLOW", &allowed), ("LAUNCHWAY_PROXY_BIND", "127.0.0.1:0")]);
    let admin = server.admin();
    (server, admin)
}

fn give_token(admin: &Client, host: &str, receiver: &TestReceiver) -> Value {
    let api = format!("http://127.0.0.1:{}/api", receiver.port);
    admin.put(TOKENS, &json!({"host": host, "token": TOKEN, "api_url": api})).success()
}

/// Returns the name of the host in addresses.
fn name_of(host: Host) -> &'static str {
    match host {
        Host::GitHub => "github.com",
        Host::GitLab => "gitlab.com",
        Host::Gitea => "gitea.example.com",
        Host::Forgejo => "codeberg.example.com",
        Host::Bitbucket => "bitbucket.org",
    }
}

/// Returns the path, the header with the token, and the names of the fields and states.
fn spelled(
    host: Host,
    commit: &str,
) -> (String, (&'static str, String), [&'static str; 2], [&'static str; 2]) {
    let target = ["target_url", "context"];
    match host {
        Host::GitHub => (
            format!("/api/repos/ada/engine/statuses/{commit}"),
            ("authorization", format!("Bearer {TOKEN}")),
            target,
            ["pending", "failure"],
        ),
        Host::Gitea | Host::Forgejo => (
            format!("/api/repos/ada/engine/statuses/{commit}"),
            ("authorization", format!("token {TOKEN}")),
            target,
            ["pending", "failure"],
        ),
        Host::GitLab => (
            format!("/api/projects/ada%2Fengine/statuses/{commit}"),
            ("private-token", TOKEN.to_owned()),
            ["target_url", "name"],
            ["pending", "failed"],
        ),
        Host::Bitbucket => (
            format!("/api/repositories/ada/engine/commit/{commit}/statuses/build"),
            ("authorization", format!("Bearer {TOKEN}")),
            ["url", "name"],
            ["INPROGRESS", "FAILED"],
        ),
    }
}

/// Asserts that a message reports a state, with the address of the preview.
fn assert_reports(message: &Message, host: Host, commit: &str, is_failed: bool) {
    let (path, (header, value), [url, name], states) = spelled(host, commit);
    assert_eq!(message.request.line, format!("POST {path} HTTP/1.1"), "{host:?}");
    assert_eq!(message.request.header(header), Some(value.as_str()), "{host:?}");
    let body: Value = serde_json::from_str(&message.request.body).unwrap();
    assert_eq!(body["state"], states[usize::from(is_failed)], "{host:?}: {body}");
    assert_eq!(body[name], format!("launchway/{host:?}"), "{host:?}: {body}");
    let host_name = format!("pr-7-{}-preview.ada-s-team.localhost", format!("{host:?}").to_lowercase());
    assert!(body[url].as_str().unwrap().contains(&host_name), "{host:?}: {body}");
}

fn every_code_host_is_told_of_previews(start: Start) {
    let receiver = TestReceiver::taking();
    let (server, admin) = started(start, &receiver);
    let mut reports = 0;
    for host in Host::ALL {
        let id = create(&admin, &site(&format!("{host:?}"), host.address()));
        let secret = secret_of(&admin, &id);
        set(&admin, &id, &json!({"enabled": true}));
        let url = sent_url(host);
        let send =
            |happened, head| handled(&request(&url, head).by(host, happened).send(&server.client(), &secret));
        assert_eq!(send(Happened::Opened, FIRST), DONE, "{host:?}");
        assert_eq!(receiver.messages().len(), reports, "{host:?}: nothing is reported without a token");
        let stored = give_token(&admin, name_of(host), &receiver);
        assert_eq!((&stored["host"], &stored["last_error"]), (&json!(name_of(host)), &Value::Null));
        let is_whole = host != Host::Bitbucket;
        if is_whole {
            reports += 1;
            assert_reports(&receiver.wait_for(reports)[reports - 1], host, FIRST, false);
        }
        // Of Bitbucket's abbreviated commits nothing is known before the repository was fetched.
        let running = previews(&admin, &id)[0]["application_id"].as_str().unwrap().to_owned();
        let newest = deployments(&admin, &running)[0]["id"].clone();
        admin.post(&format!("{DEPLOY}/cancel-deployment"), &json!({"id": newest})).success();
        if is_whole {
            reports += 1;
            assert_reports(&receiver.wait_for(reports)[reports - 1], host, FIRST, true);
            assert_eq!(send(Happened::Updated, SECOND), DONE, "{host:?}");
            reports += 1;
            assert_reports(&receiver.wait_for(reports)[reports - 1], host, SECOND, false);
        }
        assert_eq!(send(Happened::Closed, SECOND), DONE, "{host:?}");
    }
    assert_eq!(receiver.messages().len(), reports);

    let listed = admin.get(TOKENS).success();
    assert_eq!(listed["tokens"].as_array().unwrap().len(), 5, "{listed}");
    assert!(!listed.to_string().contains(TOKEN), "{listed}");
    admin.delete(&format!("{TOKENS}?host=GitHub.com")).success();
    admin.delete(&format!("{TOKENS}?host=github.com")).failure(404, "not_found");
    let audit = admin.get("/api/v1/audit/logs?page_size=100").success().to_string();
    assert!(audit.contains("changed the token for commit statuses at `gitlab.com`"), "{audit}");
    assert!(audit.contains("removed the token for commit statuses at `github.com`"), "{audit}");
    assert!(!audit.contains(TOKEN), "{audit}");
}

fn a_report_that_fails_is_made_again(start: Start) {
    let refusal = |_: usize, _: &_| Reply::Full(401, String::new(), format!("no such token: {TOKEN}"));
    let receiver = TestReceiver::answering(refusal);
    let (mut server, admin) = started(start, &receiver);
    let id = create(&admin, &site("GitHub", Host::GitHub.address()));
    let secret = secret_of(&admin, &id);
    set(&admin, &id, &json!({"enabled": true}));
    give_token(&admin, "github.com", &receiver);
    let url = sent_url(Host::GitHub);
    let opened = request(&url, FIRST).by(Host::GitHub, Happened::Opened).send(&server.client(), &secret);
    assert_eq!(handled(&opened), DONE);
    let problem = until("the problem", || {
        admin.get(TOKENS).success()["tokens"][0]["last_error"].as_str().map(str::to_owned)
    });
    assert!(problem.starts_with("the code host answered 401: no such token: "), "{problem}");
    assert!(!problem.contains(TOKEN), "{problem}");

    // After a restart nothing waits for the next retry.
    receiver.answer_by(|_, _| Reply::Status(201));
    let before = receiver.messages().len();
    server.restart();
    let admin = admin.at(server.url());
    assert_reports(&receiver.wait_for(before + 1)[before], Host::GitHub, FIRST, false);
    until("the end of the problem", || {
        admin.get(TOKENS).success()["tokens"][0]["last_error"].is_null().then_some(())
    });
}

#[test]
fn tokens_are_for_admins_and_have_rules() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let send = |body: Value| admin.put(TOKENS, &body);
    for (body, field) in [
        (json!({"token": TOKEN}), "host"),
        (json!({"host": "https://github.com", "token": TOKEN}), "host"),
        (json!({"host": "github.com"}), "token"),
        (json!({"host": "github.com", "token": TOKEN, "api_url": "ftp://github.com"}), "api_url"),
    ] {
        assert!(send(body.clone()).failure(400, "validation_failed").contains(field), "{body}");
    }
    for (token, fits) in [("", false), ("a b", false), ("a\n", false), ("ä", false), ("a", true)] {
        let answer = send(json!({"host": "github.com", "token": token}));
        assert_eq!(answer.status == 200, fits, "{token:?}: {}", answer.text);
    }
    for (length, fits) in [(1024, true), (1025, false)] {
        let answer = send(json!({"host": "github.com", "token": "a".repeat(length)}));
        assert_eq!(answer.status == 200, fits, "{length}: {}", answer.text);
    }
    for number in 1..20 {
        send(json!({"host": format!("git-{number}.example.com"), "token": TOKEN})).success();
    }
    send(json!({"host": "one.more.example.com", "token": TOKEN})).failure(409, "conflict");
    send(json!({"host": "github.com", "token": TOKEN})).success();
}
