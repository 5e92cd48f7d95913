//! The secrets of repositories: access and rotation.

use launchway_testkit::{people::join, server::TestServer};
use serde_json::json;

use super::{DEPLOY, Followed, code_hosts::Host, create, deliveries::handled, is_on_sqlite, secret_of, site};
use crate::wait::at_once;

super::super::on_both_databases!(
    a_secret_is_made_when_it_is_first_read_and_stays,
    a_repository_has_one_secret_however_it_is_written,
    a_replaced_secret_works_for_a_day,
    whoever_reads_first_at_once_reads_the_same,
    only_admins_see_it,
);

fn path(id: &str) -> String {
    format!("{DEPLOY}/webhook-secret?id={id}")
}

fn a_secret_is_made_when_it_is_first_read_and_stays(server: TestServer) {
    let admin = server.admin();
    let id = create(&admin, &site("site", "https://git.example.com/site.git"));
    let first = admin.get(&path(&id));
    assert_eq!(first.message(), "Webhook secret retrieved successfully");
    let data = first.success();
    assert_eq!(data.as_object().unwrap().len(), 1, "{data}");
    let secret = data["secret"].as_str().unwrap();
    assert!(secret.len() == 64 && secret.bytes().all(|byte| byte.is_ascii_hexdigit()), "{secret}");
    assert_eq!(admin.get(&path(&id)).success(), data);

    let rotated = admin.send("POST", &path(&id), None);
    assert_eq!(rotated.message(), "Webhook secret replaced successfully");
    assert_ne!(rotated.success(), data);
    assert_eq!(admin.get(&path(&id)).success(), rotated.success());

    let [stored] = &server.query("SELECT secret AS value FROM webhook_secrets WHERE valid_until IS NULL")[..]
    else {
        panic!("one secret is reported");
    };
    assert!(!stored.contains(&rotated.success()["secret"].as_str().unwrap()[..16]), "{stored}");
}

fn a_repository_has_one_secret_however_it_is_written(server: TestServer) {
    let admin = server.admin();
    let same = [
        "https://git.example.com/ada/site.git",
        "git@git.example.com:ada/site",
        "ssh://git@GIT.example.com:22/ada/site/",
    ];
    let ids = same.map(|address| create(&admin, &site(&format!("a{}", address.len()), address)));
    let secrets = ids.each_ref().map(|id| secret_of(&admin, id));
    assert!(secrets.iter().all(|secret| *secret == secrets[0]), "{secrets:?}");
    let other = create(&admin, &site("other", "https://git.example.com:8443/ada/site"));
    assert_ne!(secret_of(&admin, &other), secrets[0]);
    let image = json!({
        "name": "image", "repository": "git.example.com/ada/site", "port": 80, "environment": "production",
        "build_pack": "image",
    });
    let image = create(&admin, &image);
    admin.get(&path(&image)).failure(409, "conflict");
    admin.send("POST", &path(&image), None).failure(409, "conflict");
}

fn a_replaced_secret_works_for_a_day(server: TestServer) {
    let followed = Followed::by(server, Host::GitHub);
    let (client, old) = (followed.client(), &followed.secret);
    let rotate = || {
        let answer = followed.admin.send("POST", &path(&followed.id), None).success();
        answer["secret"].as_str().unwrap().to_owned()
    };
    let (middle, new) = (rotate(), rotate());
    for (number, secret) in [old, &middle, &new].into_iter().enumerate() {
        let push = followed.host.push("main", &format!("Number {number}")).called(&number.to_string());
        assert_eq!(handled(&push.send(&client, secret)), "Webhook handled successfully");
    }
    // A day passes.
    let day = if is_on_sqlite(&followed.server) {
        "UPDATE webhook_secrets SET valid_until = valid_until - 86400000000"
    } else {
        "UPDATE webhook_secrets SET valid_until = valid_until - interval '24 hours'"
    };
    followed.server.execute(day);
    for (number, secret) in [(3, old), (4, &middle)] {
        let push = followed.host.push("main", &format!("Number {number}")).called(&number.to_string());
        push.send(&client, secret).failure(401, "invalid_signature");
    }
    let push = followed.host.push("main", "Number 5").called("5");
    assert_eq!(handled(&push.send(&client, &new)), "Webhook handled successfully");
}

fn whoever_reads_first_at_once_reads_the_same(server: TestServer) {
    let admin = server.admin();
    let id = create(&admin, &site("site", "https://git.example.com/site.git"));
    let secrets = at_once(6, |_| secret_of(&admin, &id));
    assert!(secrets.iter().all(|secret| *secret == secrets[0]), "{secrets:?}");
}

fn only_admins_see_it(server: TestServer) {
    let ada = server.admin();
    let id = create(&ada, &site("site", "https://git.example.com/site.git"));
    for role in ["viewer", "member"] {
        let someone = join(&server, &ada, &format!("{role}@example.com"), role).log_in();
        someone.get(&path(&id)).failure(403, "forbidden");
        someone.send("POST", &path(&id), None).failure(403, "forbidden");
    }
    let token = ada
        .post("/api/v1/auth/tokens", &json!({"name": "ci", "permissions": ["deploy:read", "deploy:update"]}));
    let program = server.client().with_token(token.success()["token"].as_str().unwrap());
    program.get(&path(&id)).failure(403, "forbidden");
    ada.get(&path("01980000-0000-7000-8000-0000000000ff")).failure(404, "not_found");
    ada.get(&format!("{DEPLOY}/webhook-secret")).failure(400, "validation_failed");
    ada.get(&path("one")).failure(400, "invalid_id");
    ada.send("POST", &path(&id), Some("{\"secret\": \"mine\"}")).failure(400, "unknown_field");
}
