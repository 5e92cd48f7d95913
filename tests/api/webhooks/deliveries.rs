//! Accepted deliveries, of every code host.

use launchway_testkit::{
    client::{Answer, Client},
    server::TestServer,
};
use serde_json::{Value, json};

use super::{
    AFTER, DEPLOY, Followed, WEBHOOK,
    code_hosts::{Delivery, Host, send},
    create, deployments, is_on_sqlite, secret_of, site,
};
use crate::wait::{at_once, until};

super::super::on_both_databases!(
    a_push_of_every_code_host_deploys,
    a_delivery_deploys_once_however_often_it_comes,
    a_repeated_push_after_a_force_push_deploys,
    a_push_of_a_system_hook_deploys,
    owner_and_name_are_compared_ignoring_case,
    a_rejected_delivery_is_logged_with_its_repository,
    a_form_is_read_like_json,
    what_is_no_push_of_a_followed_branch_is_ignored,
    every_application_that_follows_the_branch_is_deployed,
    a_delivery_that_failed_can_be_sent_again,
    of_many_at_once_one_deploys,
    the_audit_log_and_the_log_name_the_code_host,
);

/// Asserts the envelope of `POST /api/v1/webhook`, and returns the message.
#[track_caller]
pub(super) fn handled(answer: &Answer) -> String {
    let body = answer.json();
    let fields: Vec<_> = body.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        (answer.status, fields),
        (200, vec!["data".to_owned(), "error".to_owned(), "message".to_owned(), "status".to_owned()]),
        "{answer:?}"
    );
    assert_eq!(
        (&body["data"], &body["error"], &body["status"]),
        (&Value::Null, &json!(""), &json!("success"))
    );
    answer.message()
}

const DONE: &str = "Webhook handled successfully";
const AGAIN: &str = "Duplicate delivery ignored";

/// An application of a code host: its id, and its secret.
type Application = (Host, String, String);

/// Returns an admin, who created an application of each code host.
fn with_everyone(server: &TestServer) -> (Client, Vec<Application>) {
    let admin = server.admin();
    let everyone = Host::ALL.map(|host| {
        let id = create(&admin, &site(&format!("{host:?}"), host.address()));
        let secret = secret_of(&admin, &id);
        (host, id, secret)
    });
    (admin, everyone.into())
}

fn a_push_of_every_code_host_deploys(server: TestServer) {
    let (admin, everyone) = with_everyone(&server);
    for (number, (host, id, secret)) in everyone.iter().enumerate() {
        let answer = host.push("main", "A change").send(&server.client(), secret);
        assert_eq!(handled(&answer), DONE, "{host:?}");
        assert_eq!(deployments(&admin, id).len(), 2, "{host:?}");
        // No other application.
        for (_, other, _) in &everyone[number + 1..] {
            assert_eq!(deployments(&admin, other).len(), 1, "{host:?}");
        }
    }
    let (host, id, secret) = &everyone[0];
    let (delivery, headers) =
        (host.push("main", "Another"), host.push("main", "Another").called("2").headers(secret));
    let by_doubled_prefix =
        headers.iter().fold(server.client(), |client, (name, value)| client.with_header(name, value));
    let answer = by_doubled_prefix.send("POST", "/api/v1/api/v1/webhook", Some(&delivery.body));
    assert_eq!(handled(&answer), DONE);
    assert_eq!(deployments(&admin, id).len(), 3);
}

fn a_delivery_deploys_once_however_often_it_comes(mut server: TestServer) {
    let (admin, everyone) = with_everyone(&server);
    for (host, _, secret) in &everyone {
        let push = host.push("main", "A change");
        assert_eq!(handled(&push.send(&server.client(), secret)), DONE, "{host:?}");
        assert_eq!(handled(&push.send(&server.client(), secret)), AGAIN, "{host:?}");
        // The id alone decides, whoever wrote it.
        let other = host.push("main", "Another change");
        assert_eq!(handled(&other.send(&server.client(), secret)), AGAIN, "{host:?}");
        assert_eq!(handled(&other.called("the next").send(&server.client(), secret)), DONE, "{host:?}");
    }
    // The id is stored in the database.
    assert!(server.terminate().success());
    server.restart();
    let admin = admin.at(server.url());
    for (host, id, secret) in &everyone {
        assert_eq!(handled(&host.push("main", "A change").send(&server.client(), secret)), AGAIN, "{host:?}");
        assert_eq!(deployments(&admin, id).len(), 3, "{host:?}");
    }
}

/// Returns the headers of a GitLab that sends no id of a delivery.
fn without_id(push: &Delivery, secret: &str) -> Vec<(&'static str, String)> {
    let is_id = |name: &str| matches!(name, "idempotency-key" | "x-gitlab-event-uuid");
    push.headers(secret).into_iter().filter(|(name, _)| !is_id(name)).collect()
}

fn a_repeated_push_after_a_force_push_deploys(server: TestServer) {
    let (admin, everyone) = with_everyone(&server);
    for (host, id, secret) in &everyone {
        let (push, back) = (host.push("main", "A change"), host.push("main", "The one before"));
        // Forth, back, and forth again with the same body.
        for (delivery, id) in [(&push, "first"), (&back, "second"), (&push, "third")] {
            let answer = delivery.called(id).send(&server.client(), secret);
            assert_eq!(handled(&answer), DONE, "{host:?} {id}");
        }
        assert_eq!(deployments(&admin, id).len(), 4, "{host:?}");
    }
    let (gitlab, id, secret) = everyone.iter().find(|(host, ..)| *host == Host::GitLab).unwrap();
    let (push, back) = (gitlab.push("main", "Without an id"), gitlab.push("main", "And back"));
    let answer =
        |delivery: &Delivery| handled(&send(&server.client(), &without_id(delivery, secret), &delivery.body));
    let expected = [(&push, DONE), (&push, AGAIN), (&back, DONE), (&back, AGAIN), (&push, DONE)];
    for (delivery, message) in expected {
        assert_eq!(answer(delivery), message);
    }
    assert_eq!(deployments(&admin, id).len(), 7);
}

fn a_push_of_a_system_hook_deploys(server: TestServer) {
    let (admin, everyone) = with_everyone(&server);
    let (gitlab, id, secret) = everyone.iter().find(|(host, ..)| *host == Host::GitLab).unwrap();
    let sent = |event_name: &str, called: &str| {
        let mut push = gitlab.push("main", "A change").called(called);
        let mut body: Value = serde_json::from_str(&push.body).unwrap();
        body["event_name"] = json!(event_name);
        (push.event, push.body) = ("System Hook", body.to_string());
        handled(&push.send(&server.client(), secret))
    };
    assert_eq!(sent("push", "1"), DONE);
    assert_eq!(sent("repository_update", "2"), "Ignored event `System Hook`");
    assert_eq!(deployments(&admin, id).len(), 2);
}

fn owner_and_name_are_compared_ignoring_case(server: TestServer) {
    let admin = server.admin();
    for host in [Host::GitHub, Host::GitLab, Host::Bitbucket] {
        let address = host.address().replace("ada/", "ADA/").replace("engine", "Engine");
        assert_ne!(address, host.address());
        let id = create(&admin, &site(&format!("{host:?}"), &address));
        let secret = secret_of(&admin, &id);
        let answer = host.push("main", "A change").send(&server.client(), &secret);
        assert_eq!(handled(&answer), DONE, "{host:?}");
        assert_eq!(deployments(&admin, &id).len(), 2, "{host:?}");
    }
}

fn a_rejected_delivery_is_logged_with_its_repository(server: TestServer) {
    let (_, everyone) = with_everyone(&server);
    let (host, ..) = &everyone[0];
    let answer = host.push("main", "A change").send(&server.client(), "not the secret");
    answer.failure(401, "invalid_signature");
    let line = until("the line about the rejected delivery", || {
        server.log().lines().find(|line| line.contains("webhook rejected")).map(str::to_owned)
    });
    assert!(line.contains("engine") && line.contains("GitHub"), "{line}");
}

fn a_form_is_read_like_json(server: TestServer) {
    let (_, everyone) = with_everyone(&server);
    for (host, _, secret) in &everyone {
        let push = host.push("main", "Umlauts & more: äöü + 100 %");
        let form = push.as_form();
        // Gitea and Forgejo sign the text in a form, and not the form.
        let headers = match host {
            Host::Gitea | Host::Forgejo => form.headers_signing(secret, &push.body),
            Host::GitHub | Host::GitLab | Host::Bitbucket => form.headers(secret),
        };
        let client = server.client().with_header("content-type", "application/x-www-form-urlencoded");
        assert_eq!(handled(&send(&client, &headers, &form.body)), DONE, "{host:?}");
        // The same delivery in another encoding is a duplicate.
        assert_eq!(handled(&push.send(&server.client(), secret)), AGAIN, "{host:?}");
    }
    let (github, _, secret) = &everyone[0];
    let push = github.push("main", "Signed otherwise");
    let headers = push.as_form().headers_signing(secret, &push.body);
    send(&server.client(), &headers, &push.as_form().body).failure(401, "invalid_signature");
}

fn what_is_no_push_of_a_followed_branch_is_ignored(server: TestServer) {
    let (admin, everyone) = with_everyone(&server);
    let zeros = "0".repeat(40);
    for (host, id, secret) in &everyone {
        for (delivery, beginning) in [
            (host.other(), "Ignored event `"),
            (host.push("next", "A change"), "Ignored branch `next`"),
            (host.push("main2", "A change"), "Ignored branch `main2`"),
            (host.push_of("refs/tags/main", AFTER), "Ignored tag `main`"),
            (host.push_of("refs/heads/main", &zeros), "Ignored deleted branch `main`"),
            (
                host.push("main", "A change [skip ci]"),
                "Ignored commit 59b20b8: its message contains `[skip ci]`",
            ),
            (
                host.push("main", "[skip deploy]\n\nA change"),
                "Ignored commit 59b20b8: its message contains `[skip deploy]`",
            ),
        ] {
            // Ignored deliveries are not stored.
            for _ in 0..2 {
                let message = handled(&delivery.send(&server.client(), secret));
                assert!(message.starts_with(beginning), "{host:?}: {message}");
            }
        }
        assert_eq!(deployments(&admin, id).len(), 1, "{host:?}");
        assert_eq!(handled(&host.push("main", "A change").send(&server.client(), secret)), DONE, "{host:?}");
    }
}

fn every_application_that_follows_the_branch_is_deployed(server: TestServer) {
    let followed = Followed::by(server, Host::GitHub);
    let (admin, client) = (&followed.admin, followed.client());
    let another = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut spec = site(name, "https://github.com/ada/engine/");
        change(&mut spec);
        create(admin, &spec)
    };
    let second = another("second", &|_| ());
    let by_hand = another("by hand", &|spec| spec["auto_deploy"] = json!(false));
    let next = another("next", &|spec| spec["branch"] = json!("next"));
    let elsewhere =
        another("elsewhere", &|spec| spec["repository"] = json!("https://github.com/ada/engines"));
    assert_eq!(secret_of(admin, &by_hand), followed.secret);

    let push = followed.host.push("main", "A change");
    assert_eq!(handled(&push.send(&client, &followed.secret)), DONE);
    let count = |id: &str| deployments(admin, id).len();
    let counts = [&followed.id, &second, &by_hand, &next, &elsewhere].map(|id| count(id));
    assert_eq!(counts, [2, 2, 1, 1, 1]);

    // From now on the second is deployed by hand, and the third by pushes: for it this is no duplicate.
    admin.put(&format!("{DEPLOY}?id={second}&redeploy=false"), &json!({"auto_deploy": false})).success();
    admin.put(&format!("{DEPLOY}?id={by_hand}&redeploy=false"), &json!({"auto_deploy": true})).success();
    assert_eq!(handled(&push.send(&client, &followed.secret)), DONE);
    assert_eq!([&followed.id, &second, &by_hand].map(|id| count(id)), [2, 2, 2]);
    assert_eq!(handled(&push.send(&client, &followed.secret)), AGAIN);
    // Another organization's application of the same repository is none of theirs.
    let other = admin.post("/api/v1/organizations", &json!({"name": "Second"})).success();
    let elsewhere = admin.with_header("x-organization-id", other["id"].as_str().unwrap());
    let theirs = create(&elsewhere, &site("theirs", followed.host.address()));
    let their_secret = secret_of(&elsewhere, &theirs);
    assert_ne!(their_secret, followed.secret);
    assert_eq!(handled(&push.called("9").send(&client, &their_secret)), DONE);
    assert_eq!(deployments(&elsewhere, &theirs).len(), 2);
    assert_eq!([&followed.id, &second, &by_hand].map(|id| count(id)), [2, 2, 2]);
}

fn a_delivery_that_failed_can_be_sent_again(server: TestServer) {
    let followed = Followed::by(server, Host::Gitea);
    let (server, client) = (&followed.server, followed.client());
    let push = followed.host.push("main", "A change");
    refuse_deployments(server);
    push.send(&client, &followed.secret).failure(500, "internal");
    push.send(&client, &followed.secret).failure(500, "internal");
    accept_deployments(server);
    assert_eq!(handled(&push.send(&client, &followed.secret)), DONE);
    assert_eq!(followed.pushes(), 1);
    assert_eq!(handled(&push.send(&client, &followed.secret)), AGAIN);
}

/// Makes every insertion of a deployment fail.
fn refuse_deployments(server: &TestServer) {
    server.execute(if is_on_sqlite(server) {
        "CREATE TRIGGER refuse BEFORE INSERT ON deployments BEGIN SELECT RAISE(ABORT, 'no'); END;"
    } else {
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON deployments FOR EACH ROW EXECUTE FUNCTION refuse();"
    });
}

fn accept_deployments(server: &TestServer) {
    server.execute(if is_on_sqlite(server) {
        "DROP TRIGGER refuse;"
    } else {
        "DROP TRIGGER refuse ON deployments; DROP FUNCTION refuse();"
    });
}

#[test]
fn a_delivery_without_postgres_fails_and_can_be_resent() {
    let followed = Followed::by(TestServer::on_postgres(), Host::GitHub);
    let push = followed.host.push("main", "A change");
    followed.server.lose_database();
    push.send(&followed.client(), &followed.secret).failure(503, "unavailable");
    followed.server.regain_database();
    until("the database", || (followed.client().get("/ready").status == 200).then_some(()));
    assert_eq!(handled(&push.send(&followed.client(), &followed.secret)), DONE);
    assert_eq!(followed.pushes(), 1);
}

fn of_many_at_once_one_deploys(server: TestServer) {
    let followed = Followed::by(server, Host::GitHub);
    let push = followed.host.push("main", "A change");
    let answers = at_once(8, |_| push.send(&followed.client(), &followed.secret));
    let messages: Vec<_> = answers.iter().map(handled).collect();
    assert_eq!(messages.iter().filter(|message| *message == DONE).count(), 1, "{messages:?}");
    assert_eq!(messages.iter().filter(|message| *message == AGAIN).count(), 7, "{messages:?}");
    assert_eq!(followed.pushes(), 1);
}

fn the_audit_log_and_the_log_name_the_code_host(server: TestServer) {
    let followed = Followed::by(server, Host::Forgejo);
    let push = followed.host.push("main", "A change").called("its-own-id");
    let client = followed.client().with_header("x-request-id", "from-the-host");
    handled(&push.send(&client, &followed.secret));
    let audit_log = followed.admin.get("/api/v1/audit/logs?resource_type=deployment&page_size=1").success();
    let entry = &audit_log["activities"][0];
    let deployment = &deployments(&followed.admin, &followed.id)[0];
    assert_eq!(
        entry["message"],
        "forgejo requested a deployment of the application `site` (production) by a push to `main`"
    );
    assert_eq!(
        (&entry["actor"], &entry["action"], &entry["resource_id"]),
        (&json!("forgejo"), &json!("create"), &deployment["id"])
    );
    let metadata = json!({
        "application_id": followed.id, "branch": "main", "commit": AFTER, "delivery": "its-own-id",
        "request_id": "from-the-host", "address": "127.0.0.1",
    });
    assert_eq!(entry["metadata"], metadata);
    let id = deployment["id"].as_str().unwrap();
    let log =
        followed.admin.get(&format!("{DEPLOY}/deployments/{id}/logs?page_size=100&embed=none")).success();
    let lines = log["logs"].as_array().unwrap();
    assert_eq!(lines.last().unwrap()["log"], "Deployment requested by a push to main on Forgejo");
    assert_eq!(followed.client().get(WEBHOOK).headers["allow"], "POST");
}
