//! The domains of applications.

use serde_json::{Value, json};

use super::{harness, page, site, status};
use crate::docker::deployments::harness::{DEPLOY, Harness, text};

const DOMAINS: &str = "/api/v1/deploy/application/domains";

fn add(harness: &Harness, id: &str, domain: &str) -> launchway_testkit::client::Answer {
    harness.admin.post(DOMAINS, &json!({"id": id, "domain": domain}))
}

fn remove(harness: &Harness, id: &str, domain: &str) -> launchway_testkit::client::Answer {
    harness.admin.send_json("DELETE", DOMAINS, &json!({"id": id, "domain": domain}))
}

/// Publishes a site, by its name; returns its id.
fn publish(harness: &Harness, name: &str, more: Value) -> String {
    let repository = harness.repository(name);
    repository.write("index.html", format!("the site {name}")).commit();
    let mut spec = site(name, &repository);
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    harness.create_live(&spec).0
}

#[test]
fn an_application_is_reachable_by_automatic_and_own_domain() {
    let harness = harness();
    let id = publish(&harness, "My Shop", json!({"domain": "Shop.Example.com"}));

    let application = harness.application(&id);
    assert_eq!(application["domain"], "shop.example.com");
    assert_eq!(application["domains"], json!(["shop.example.com", "my-shop.ada-s-team.localhost"]));
    for host in ["shop.example.com", "SHOP.example.com", "shop.example.com:8000", "shop.example.com."] {
        assert_eq!(page(&harness, host), "the site My Shop", "{host}");
    }
    assert_eq!(page(&harness, "my-shop.ada-s-team.localhost"), "the site My Shop");
    assert_eq!(status(&harness, "other.example.com"), 404);
    let log = harness.story_of(&text(&application["deployments"][0]["id"]));
    let port = harness.server.front().rsplit(':').next().unwrap();
    assert!(log.contains(&format!("Live at http://shop.example.com:{port}")), "{log}");
}

#[test]
fn automatic_domains_get_environment_and_number_if_taken() {
    let harness = harness();
    let automatic = |id: &str| text(harness.application(id)["domains"].as_array().unwrap().last().unwrap());
    let first = publish(&harness, "web app", json!({}));
    let second = publish(&harness, "web_app", json!({}));
    let staging = publish(&harness, "web", json!({"environment": "staging"}));
    assert_eq!(automatic(&first), "web-app.ada-s-team.localhost");
    assert_eq!(automatic(&second), "web-app-2.ada-s-team.localhost");
    assert_eq!(automatic(&staging), "web-staging.ada-s-team.localhost");
    assert_eq!(page(&harness, "web-app-2.ada-s-team.localhost"), "the site web_app");

    // It stays when the application is called something else.
    harness.admin.put(&format!("{DEPLOY}?id={first}&redeploy=false"), &json!({"name": "shop"})).success();
    assert_eq!(automatic(&first), "web-app.ada-s-team.localhost");
}

#[test]
fn names_are_added_and_removed_while_the_application_serves() {
    let harness = harness();
    let id = publish(&harness, "shop", json!({"domain": "shop.example.com"}));

    let added = add(&harness, &id, "Bücher.example").success();
    let names = json!(["shop.example.com", "xn--bcher-kva.example", "shop.ada-s-team.localhost"]);
    assert_eq!(added["domains"], names);
    assert_eq!(page(&harness, "xn--bcher-kva.example"), "the site shop");
    add(&harness, &id, "xn--bcher-kva.example").failure(409, "conflict");

    let removed = remove(&harness, &id, "bücher.example").success();
    assert_eq!(removed["domains"], json!(["shop.example.com", "shop.ada-s-team.localhost"]));
    assert_eq!(status(&harness, "xn--bcher-kva.example"), 404);
    remove(&harness, &id, "bücher.example").failure(404, "not_found");

    // The domain goes the same way; the automatic name stays.
    let removed = remove(&harness, &id, "shop.example.com").success();
    assert_eq!(
        (&removed["domain"], &removed["domains"]),
        (&json!(""), &json!(["shop.ada-s-team.localhost"]))
    );
    assert_eq!(status(&harness, "shop.example.com"), 404);
    remove(&harness, &id, "shop.ada-s-team.localhost").failure(400, "validation_failed");
    assert_eq!(page(&harness, "shop.ada-s-team.localhost"), "the site shop");
}

#[test]
fn a_changed_domain_is_reached_at_once_and_the_old_one_is_not() {
    let harness = harness();
    let id = publish(&harness, "shop", json!({"domain": "old.example.com"}));
    add(&harness, &id, "next.example.com").success();

    let path = format!("{DEPLOY}?id={id}&redeploy=false");
    // One of its own becomes its domain.
    let changed = harness.admin.put(&path, &json!({"domain": "next.example.com"})).success();
    assert_eq!(changed["domains"], json!(["next.example.com", "shop.ada-s-team.localhost"]));
    assert_eq!(page(&harness, "next.example.com"), "the site shop");
    assert_eq!(status(&harness, "old.example.com"), 404);
    // And the old one is free.
    publish(&harness, "other", json!({"domain": "old.example.com"}));
    assert_eq!(page(&harness, "old.example.com"), "the site other");
}

#[test]
fn a_name_leads_to_one_application_of_the_installation() {
    let harness = harness();
    let first = publish(&harness, "first", json!({"domain": "first.example.com"}));
    let second = publish(&harness, "second", json!({}));
    add(&harness, &first, "www.example.com").success();
    for taken in ["first.example.com", "www.example.com"] {
        let message = add(&harness, &second, taken).failure(409, "conflict");
        assert_eq!(message, format!("the domain `{taken}` is in use by another application"));
        let path = format!("{DEPLOY}?id={second}");
        harness.admin.put(&path, &json!({"domain": taken})).failure(409, "conflict");
    }
    for refused in ["127.0.0.1", "x.localhost", "first.ada-s-team.localhost", "*.example.com", "a b", ""] {
        add(&harness, &second, refused).failure(400, "validation_failed");
    }

    harness.admin.delete(&format!("{DEPLOY}?id={first}")).success();
    add(&harness, &second, "www.example.com").success();
    assert_eq!(page(&harness, "www.example.com"), "the site second");
}

#[test]
fn only_this_machine_learns_which_names_are_served() {
    let harness = harness();
    publish(&harness, "shop", json!({"domain": "shop.example.com"}));
    let ask = |client: &launchway_testkit::client::Client, domain: &str| {
        client.get(&format!("/api/v1/proxy/ask?domain={domain}"))
    };
    let caddy = harness.server.client();
    for served in ["shop.example.com", "Shop.Example.com", "shop.example.com.", "shop.ada-s-team.localhost"] {
        assert_eq!(ask(&caddy, served).status, 200, "{served}");
    }
    for unknown in ["example.com", "evil.shop.example.com", "%00", ""] {
        assert!([400, 404].contains(&ask(&caddy, unknown).status), "{unknown}");
    }
    let from_elsewhere = caddy.with_header("x-forwarded-for", "203.0.113.7");
    ask(&from_elsewhere, "shop.example.com").failure(404, "not_found");
}
