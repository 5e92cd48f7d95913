//! The domains of applications.

use serde_json::{Value, json};

use super::{page, site, stage, status};
use crate::docker::deployments::stage::{DEPLOY, Stage, text};

const DOMAINS: &str = "/api/v1/deploy/application/domains";

fn add(stage: &Stage, id: &str, domain: &str) -> launchway_testkit::client::Answer {
    stage.admin.post(DOMAINS, &json!({"id": id, "domain": domain}))
}

fn remove(stage: &Stage, id: &str, domain: &str) -> launchway_testkit::client::Answer {
    stage.admin.send_json("DELETE", DOMAINS, &json!({"id": id, "domain": domain}))
}

/// Publishes a site, by its name; returns its id.
fn publish(stage: &Stage, name: &str, more: Value) -> String {
    let repository = stage.repository(name);
    repository.write("index.html", format!("the site {name}")).commit();
    let mut spec = site(name, &repository);
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    stage.create_live(&spec).0
}

#[test]
fn an_application_is_reachable_by_automatic_and_own_domain() {
    let stage = stage();
    let id = publish(&stage, "My Shop", json!({"domain": "Shop.Example.com"}));

    let application = stage.application(&id);
    assert_eq!(application["domain"], "shop.example.com");
    assert_eq!(application["domains"], json!(["shop.example.com", "my-shop.ada-s-team.localhost"]));
    for host in ["shop.example.com", "SHOP.example.com", "shop.example.com:8000", "shop.example.com."] {
        assert_eq!(page(&stage, host), "the site My Shop", "{host}");
    }
    assert_eq!(page(&stage, "my-shop.ada-s-team.localhost"), "the site My Shop");
    assert_eq!(status(&stage, "other.example.com"), 404);
    let log = stage.story_of(&text(&application["deployments"][0]["id"]));
    let port = stage.server.front().rsplit(':').next().unwrap();
    assert!(log.contains(&format!("Live at http://shop.example.com:{port}")), "{log}");
}

#[test]
fn automatic_domains_get_environment_and_number_if_taken() {
    let stage = stage();
    let automatic = |id: &str| text(stage.application(id)["domains"].as_array().unwrap().last().unwrap());
    let first = publish(&stage, "web app", json!({}));
    let second = publish(&stage, "web_app", json!({}));
    let staging = publish(&stage, "web", json!({"environment": "staging"}));
    assert_eq!(automatic(&first), "web-app.ada-s-team.localhost");
    assert_eq!(automatic(&second), "web-app-2.ada-s-team.localhost");
    assert_eq!(automatic(&staging), "web-staging.ada-s-team.localhost");
    assert_eq!(page(&stage, "web-app-2.ada-s-team.localhost"), "the site web_app");

    // It stays when the application is called something else.
    stage.admin.put(&format!("{DEPLOY}?id={first}&redeploy=false"), &json!({"name": "shop"})).success();
    assert_eq!(automatic(&first), "web-app.ada-s-team.localhost");
}

#[test]
fn names_are_added_and_removed_while_the_application_serves() {
    let stage = stage();
    let id = publish(&stage, "shop", json!({"domain": "shop.example.com"}));

    let added = add(&stage, &id, "Bücher.example").success();
    let names = json!(["shop.example.com", "xn--bcher-kva.example", "shop.ada-s-team.localhost"]);
    assert_eq!(added["domains"], names);
    assert_eq!(page(&stage, "xn--bcher-kva.example"), "the site shop");
    add(&stage, &id, "xn--bcher-kva.example").failure(409, "conflict");

    let removed = remove(&stage, &id, "bücher.example").success();
    assert_eq!(removed["domains"], json!(["shop.example.com", "shop.ada-s-team.localhost"]));
    assert_eq!(status(&stage, "xn--bcher-kva.example"), 404);
    remove(&stage, &id, "bücher.example").failure(404, "not_found");

    // The domain goes the same way; the automatic name stays.
    let removed = remove(&stage, &id, "shop.example.com").success();
    assert_eq!(
        (&removed["domain"], &removed["domains"]),
        (&json!(""), &json!(["shop.ada-s-team.localhost"]))
    );
    assert_eq!(status(&stage, "shop.example.com"), 404);
    remove(&stage, &id, "shop.ada-s-team.localhost").failure(400, "validation_failed");
    assert_eq!(page(&stage, "shop.ada-s-team.localhost"), "the site shop");
}

#[test]
fn a_changed_domain_is_reached_at_once_and_the_old_one_is_not() {
    let stage = stage();
    let id = publish(&stage, "shop", json!({"domain": "old.example.com"}));
    add(&stage, &id, "next.example.com").success();

    let path = format!("{DEPLOY}?id={id}&redeploy=false");
    // One of its own becomes its domain.
    let changed = stage.admin.put(&path, &json!({"domain": "next.example.com"})).success();
    assert_eq!(changed["domains"], json!(["next.example.com", "shop.ada-s-team.localhost"]));
    assert_eq!(page(&stage, "next.example.com"), "the site shop");
    assert_eq!(status(&stage, "old.example.com"), 404);
    // And the old one is free.
    publish(&stage, "other", json!({"domain": "old.example.com"}));
    assert_eq!(page(&stage, "old.example.com"), "the site other");
}

#[test]
fn a_name_leads_to_one_application_of_the_installation() {
    let stage = stage();
    let first = publish(&stage, "first", json!({"domain": "first.example.com"}));
    let second = publish(&stage, "second", json!({}));
    add(&stage, &first, "www.example.com").success();
    for taken in ["first.example.com", "www.example.com"] {
        let message = add(&stage, &second, taken).failure(409, "conflict");
        assert_eq!(message, format!("the domain `{taken}` is in use by another application"));
        let path = format!("{DEPLOY}?id={second}");
        stage.admin.put(&path, &json!({"domain": taken})).failure(409, "conflict");
    }
    for refused in ["127.0.0.1", "x.localhost", "first.ada-s-team.localhost", "*.example.com", "a b", ""] {
        add(&stage, &second, refused).failure(400, "validation_failed");
    }

    stage.admin.delete(&format!("{DEPLOY}?id={first}")).success();
    add(&stage, &second, "www.example.com").success();
    assert_eq!(page(&stage, "www.example.com"), "the site second");
}

#[test]
fn only_this_machine_learns_which_names_are_served() {
    let stage = stage();
    publish(&stage, "shop", json!({"domain": "shop.example.com"}));
    let ask = |client: &launchway_testkit::client::Client, domain: &str| {
        client.get(&format!("/api/v1/proxy/ask?domain={domain}"))
    };
    let caddy = stage.server.client();
    for served in ["shop.example.com", "Shop.Example.com", "shop.example.com.", "shop.ada-s-team.localhost"] {
        assert_eq!(ask(&caddy, served).status, 200, "{served}");
    }
    for unknown in ["example.com", "evil.shop.example.com", "%00", ""] {
        assert!([400, 404].contains(&ask(&caddy, unknown).status), "{unknown}");
    }
    let from_elsewhere = caddy.with_header("x-forwarded-for", "203.0.113.7");
    ask(&from_elsewhere, "shop.example.com").failure(404, "not_found");
}
