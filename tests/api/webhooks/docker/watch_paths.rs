//! Pushes to applications that watch paths of their repository.

use std::{thread::sleep, time::Duration};

use serde_json::{Value, json};

use super::{
    super::{DEPLOY, code_hosts::Host, deliveries::handled, deployments, secret_of},
    deployments::{becomes, push, push_of, site},
};
use crate::docker::deployments::{
    harness::{Harness, text},
    repository::Repository,
};

/// A short interval, so that a test does not wait for minutes.
const OFTEN: (&str, &str) = ("LAUNCHWAY_BRANCH_CHECK", "300ms");
/// Several intervals.
const A_WHILE: Duration = Duration::from_secs(3);

fn watching(name: &str, repository: &Repository, patterns: &Value) -> Value {
    let mut spec = site(name, repository);
    spec["watch_paths"] = patterns.clone();
    spec
}

#[test]
fn only_what_watches_a_changed_path_deploys_on_sqlite() {
    only_what_watches_a_changed_path_deploys(&Harness::on_sqlite(&[]));
}

#[test]
fn only_what_watches_a_changed_path_deploys_on_postgres() {
    only_what_watches_a_changed_path_deploys(&Harness::on_postgres(&[]));
}

fn only_what_watches_a_changed_path_deploys(harness: &Harness) {
    let repository = harness.repository("mono");
    repository.write("apps/web/index.html", "web");
    let first = repository.write("apps/shop/index.html", "shop").commit();
    let specs =
        [("web", json!(["apps/web/", "/shared"])), ("shop", json!(["apps/shop/**"])), ("all", json!([]))];
    let [web, shop, all] =
        specs.map(|(name, patterns)| harness.create_live(&watching(name, &repository, &patterns)).0);
    let secret = secret_of(&harness.admin, &web);
    let counts = || [&web, &shop, &all].map(|id| deployments(&harness.admin, id).len());

    let second = repository.write("apps/web/index.html", "web 2").commit();
    assert_eq!(push(harness, &repository, &secret, "A change"), "Webhook handled successfully");
    becomes(harness, &web, &second);
    becomes(harness, &all, &second);
    assert_eq!(counts(), [2, 1, 2]);

    // Without the application that watches everything, the reason is the answer.
    harness.admin.delete(&format!("{}?id={all}", DEPLOY)).success();
    let third = repository.write("README.md", "words").commit();
    let message = push(harness, &repository, &secret, "A change");
    let reasons = [&first, &second].map(|deployed| {
        format!("Ignored commit {}: no path of watch_paths changed since {}", &third[..7], &deployed[..7])
    });
    assert!(reasons.contains(&message), "{message}");
    // Neither a sent list of files nor the number of pushes matters, but what differs from the last deployment.
    let fourth = repository.write("shared/style.css", "red").commit();
    let fifth = repository.write("README.md", "more words").commit();
    assert_eq!(push_of(harness, &repository, &secret, (&fifth, "A change")), "Webhook handled successfully");
    becomes(harness, &web, &fifth);
    assert_eq!(deployments(&harness.admin, &shop).len(), 1);
    assert_ne!(fourth, fifth);

    // A commit that the repository does not give any more cannot be compared.
    repository.git(&["checkout", "--quiet", "--orphan", "fresh"]);
    let sixth = repository.write("README.md", "a new beginning").commit();
    repository.git(&["branch", "--quiet", "--force", "main", "fresh"]);
    repository.git(&["reflog", "expire", "--expire=now", "--all"]);
    repository.git(&["gc", "--quiet", "--prune=now"]);
    for cache in std::fs::read_dir(harness.server.data_dir().join("repositories")).unwrap() {
        std::fs::remove_dir_all(cache.unwrap().path()).unwrap();
    }
    assert_eq!(push(harness, &repository, &secret, "A change"), "Webhook handled successfully");
    becomes(harness, &web, &sixth);
    becomes(harness, &shop, &sixth);
}

#[test]
fn every_code_host_gets_the_reason_of_an_ignored_push() {
    let harness = Harness::on_sqlite(&[]);
    let repository = harness.repository("mono");
    let first = repository.write("index.html", "one").commit();
    let (id, _) = harness.create_live(&watching("web", &repository, &json!(["*.html"])));
    let secret = secret_of(&harness.admin, &id);
    let address = format!("file://{}", repository.path().display());
    for host in Host::ALL {
        let second = repository.write("README.md", format!("{host:?}")).commit();
        // The payload claims that `index.html` changed.
        let delivery = host.push_from(&address, "refs/heads/main", &second, "A change");
        let message = handled(&delivery.called(&second).send(&harness.server.client(), &secret));
        let expected =
            format!("Ignored commit {}: no path of watch_paths changed since {}", &second[..7], &first[..7]);
        assert_eq!(message, expected, "{host:?}");
    }
    assert_eq!(deployments(&harness.admin, &id).len(), 1);
}

#[test]
fn polling_passes_over_what_changes_nothing_watched() {
    let harness = Harness::on_sqlite(&[OFTEN]);
    let repository = harness.repository("mono");
    repository.write("index.html", "one").commit();
    let (id, _) = harness.create_live(&watching("web", &repository, &json!(["*.html"])));
    let (other, _) = harness.create_live(&site("other", &repository));
    let secret = secret_of(&harness.admin, &id);
    let second = repository.write("index.html", "two").commit();
    push(&harness, &repository, &secret, "A change");
    becomes(&harness, &id, &second);
    becomes(&harness, &other, &second);
    // The one that watches everything shows that branches were compared.
    let third = repository.write("README.md", "words").commit();
    becomes(&harness, &other, &third);
    sleep(A_WHILE);
    assert_eq!(deployments(&harness.admin, &id).len(), 2);
    let fourth = repository.write("index.html", "four").commit();
    let newest = becomes(&harness, &id, &fourth);
    assert!(harness.story_of(&text(&newest["id"])).contains("and no push was received"));
}
