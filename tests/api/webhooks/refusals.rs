//! Rejected deliveries: none of them leaves a trace.

use launchway_testkit::{
    client::Answer,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
};
use serde_json::json;

use super::{
    DEPLOY, Followed,
    code_hosts::{Delivery, Headers, Host, send, signature},
    create,
    deliveries::handled,
    deployments, secret_of, site,
};

super::super::on_both_databases!(
    rejects_a_wrong_secret_and_records_nothing,
    unknown_repositories_and_wrong_signatures_look_alike,
    a_repository_without_a_secret_believes_nobody,
    a_secret_is_of_one_repository,
    what_comes_from_the_repository_no_more_is_not_deployed,
);

/// All rejections have the same response, whatever the reason.
#[track_caller]
fn refused(answer: &Answer) -> String {
    answer.failure(401, "invalid_signature")
}

/// Returns the delivery with forged signatures.
fn forgeries(push: &Delivery, secret: &str) -> Vec<(&'static str, Headers, String)> {
    let right = push.headers(secret);
    let is_signature = |name: &str| name.contains("signature") || name.contains("token");
    let with = |value: &dyn Fn(&str) -> String| -> Headers {
        let headers = right.iter().map(|(name, old)| match is_signature(name) {
            true => (*name, value(old)),
            false => (*name, old.clone()),
        });
        headers.collect()
    };
    let body = push.body.clone();
    let mut forgeries = vec![
        ("another key", push.headers("0123456789abcdef0123456789abcdef"), body.clone()),
        ("an empty key", push.headers(""), body.clone()),
        (
            "no signature",
            right.iter().filter(|(name, _)| !is_signature(name)).cloned().collect(),
            body.clone(),
        ),
        ("an empty signature", with(&|_| String::new()), body.clone()),
        ("half a signature", with(&|old| old[..old.len() / 2].to_owned()), body.clone()),
        (
            "another algorithm",
            with(&|_| format!("sha1={}", &signature(secret, &push.body)[..40])),
            body.clone(),
        ),
        ("a longer algorithm", with(&|old| old.replace("sha256=", "sha512=") + "00"), body.clone()),
        ("zeros", with(&|_| "0".repeat(64)), body.clone()),
        ("no headers", Vec::new(), body.clone()),
    ];
    if push.host != Host::GitLab {
        // GitLab sends the secret and signs nothing.
        forgeries.push(("another body", right.clone(), body.replace("A change", "A chance")));
        forgeries.push(("a space more", right.clone(), format!("{body} ")));
    }
    forgeries.push(("a truncated body", right, body[..body.len() / 2].to_owned()));
    forgeries
}

fn rejects_a_wrong_secret_and_records_nothing(server: TestServer) {
    let admin = server.admin();
    for host in Host::ALL {
        let id = create(&admin, &site(&format!("{host:?}"), host.address()));
        let secret = secret_of(&admin, &id);
        let push = host.push("main", "A change");
        for (what, headers, body) in forgeries(&push, &secret) {
            let answer = send(&server.client(), &headers, &body);
            assert_eq!(answer.status, 401, "{host:?}, {what}: {answer:?}");
            refused(&answer);
        }
        assert_eq!(deployments(&admin, &id).len(), 1, "{host:?}");
        // The same id and the same body, with the right secret.
        assert_eq!(
            handled(&push.send(&server.client(), &secret)),
            "Webhook handled successfully",
            "{host:?}"
        );
    }
}

fn unknown_repositories_and_wrong_signatures_look_alike(server: TestServer) {
    let followed = Followed::by(server, Host::GitHub);
    let client = followed.client();
    let wrong = followed.host.push("main", "A change").send(&client, "0123456789abcdef0123456789abcdef");
    let unknown = "https://github.com/nobody/nothing.git";
    let unknown = Host::GitHub.push_from(unknown, "refs/heads/main", super::AFTER, "A change");
    let unknown = unknown.send(&client, &followed.secret);
    let nothing = send(&client, &[], "{}");
    let no_json = send(&client, &followed.host.push("main", "").headers(&followed.secret), "no JSON");
    for answer in [&unknown, &nothing, &no_json] {
        assert_eq!(refused(answer), refused(&wrong));
        assert_eq!(answer.headers.get("www-authenticate"), wrong.headers.get("www-authenticate"));
    }
}

fn a_repository_without_a_secret_believes_nobody(server: TestServer) {
    let admin = server.admin();
    for host in Host::ALL {
        let id = create(&admin, &site(&format!("{host:?}"), host.address()));
        for key in ["", " ", "null", "undefined"] {
            refused(&host.push("main", "A change").send(&server.client(), key));
        }
        assert_eq!(deployments(&admin, &id).len(), 1, "{host:?}");
    }
    let secrets = server.query("SELECT repository AS value FROM webhook_secrets");
    assert!(secrets.is_empty(), "{secrets:?}");
}

fn a_secret_is_of_one_repository(server: TestServer) {
    let admin = server.admin();
    let (github, gitlab) = (Host::GitHub, Host::GitLab);
    let [one, two] = [github, gitlab].map(|host| create(&admin, &site(&format!("{host:?}"), host.address())));
    let [first, second] = [&one, &two].map(|id| secret_of(&admin, id));
    assert_ne!(first, second);
    refused(&github.push("main", "A change").send(&server.client(), &second));
    refused(&gitlab.push("main", "A change").send(&server.client(), &first));
    // The secret of one repository is not valid for another, even if both are named.
    let both = json!({
        "ref": "refs/heads/main", "after": super::AFTER,
        "repository": {"clone_url": "https://github.com/ada/engine.git", "html_url": "https://gitlab.com/ada/engine"},
    });
    let push = Delivery { body: both.to_string(), ..github.push("main", "") };
    assert_eq!(handled(&push.send(&server.client(), &first)), "Webhook handled successfully");
    assert_eq!([&one, &two].map(|id| deployments(&admin, id).len()), [2, 1]);
}

fn what_comes_from_the_repository_no_more_is_not_deployed(server: TestServer) {
    let followed = Followed::by(server, Host::GitHub);
    let (admin, client) = (followed.server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD), followed.client());
    let push = followed.host.push("main", "A change");
    let path = format!("{DEPLOY}?id={}", followed.id);
    admin
        .put(&format!("{path}&redeploy=false"), &json!({"repository": "https://github.com/ada/other"}))
        .success();
    refused(&push.send(&client, &followed.secret));
    admin.put(&format!("{path}&redeploy=false"), &json!({"repository": followed.host.address()})).success();
    assert_eq!(handled(&push.send(&client, &followed.secret)), "Webhook handled successfully");
    admin.delete(&path).success();
    refused(&push.called("2").send(&client, &followed.secret));
}
