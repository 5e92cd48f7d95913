//! Configurations of HTTP channels.

use launchway_database::Database;
use launchway_domain::{
    notifications::{KeptSigningSecret, NotificationRepository as _, WebhookConfig, WebhookKind, Write},
    organizations::Scope,
    secret::Sealed,
    store::{StoreError, Unique},
};
use tokio::task::JoinSet;

use super::{a_secret, a_stored, a_webhook, delete_organization, insert};
use crate::{
    applications::is_taken,
    builders::{Resident, at, commit, id, is_stale},
};

contract!(
    a_place_is_read_as_it_was_made,
    an_organization_has_one_place_of_a_kind,
    of_two_who_make_a_place_at_once_one_does,
    nobody_makes_a_place_for_an_organization_that_is_gone,
    only_what_is_named_changes,
    what_is_deleted_is_gone_with_its_secrets_and_may_come_again,
    what_is_not_there_is_not_changed,
    others_see_and_change_nothing,
    nothing_of_a_deleted_organization_is_seen,
);

async fn webhook(
    db: &Database,
    scope: Scope,
    kind: WebhookKind,
) -> Option<(WebhookConfig, Vec<KeptSigningSecret>)> {
    db.webhook(scope, kind, at(0)).await.unwrap()
}

fn update(scope: Scope, kind: WebhookKind, url: Option<&str>, is_active: Option<bool>) -> Write {
    let url = url.map(|url| Sealed(url.to_owned()));
    Write::UpdateWebhook { scope, kind, url, is_active, at: at(9) }
}

/// Every possible change of a channel.
fn changes(scope: Scope, kind: WebhookKind) -> [Write; 3] {
    [
        update(scope, kind, Some("other"), Some(false)),
        Write::ReplaceSigningSecret { scope, kind, secret: a_secret("new"), until: at(100), at: at(9) },
        Write::DeleteWebhook { scope, kind, at: at(9) },
    ]
}

async fn a_place_is_read_as_it_was_made(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    for (kind, is_active) in
        [(WebhookKind::Slack, true), (WebhookKind::Discord, false), (WebhookKind::Generic, true)]
    {
        assert_eq!(webhook(&db, ada.scope(), kind).await, None);
        let config = WebhookConfig { is_active, updated_at: at(3), ..a_webhook(&ada, kind) };
        commit(&db, Write::InsertWebhook(config.clone())).await.unwrap();
        assert_eq!(webhook(&db, ada.scope(), kind).await, Some((config, vec![])));
    }
}

async fn an_organization_has_one_place_of_a_kind(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let first = a_stored(&db, &ada, WebhookKind::Slack).await;
    let second = insert(&db, &a_webhook(&ada, WebhookKind::Slack)).await;
    assert!(is_taken(&second, Unique::WebhookConfig));
    assert_eq!(webhook(&db, ada.scope(), WebhookKind::Slack).await, Some((first, vec![])));
    a_stored(&db, &ada, WebhookKind::Discord).await;
    a_stored(&db, &bob, WebhookKind::Slack).await;
}

async fn of_two_who_make_a_place_at_once_one_does(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let mut makers = JoinSet::new();
    for _ in 0..8 {
        let (db, config) = (db.clone(), a_webhook(&ada, WebhookKind::Generic));
        makers.spawn(async move { insert(&db, &config).await });
    }
    let outcomes = makers.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert_eq!(outcomes.iter().filter(|outcome| is_taken(outcome, Unique::WebhookConfig)).count(), 7);
}

async fn nobody_makes_a_place_for_an_organization_that_is_gone(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    delete_organization(&db, ada.scope(), 1).await;
    assert!(is_stale(&insert(&db, &a_webhook(&ada, WebhookKind::Slack)).await));
    let unknown = WebhookConfig { organization_id: id(), ..a_webhook(&ada, WebhookKind::Slack) };
    assert!(is_stale(&insert(&db, &unknown).await));
}

async fn only_what_is_named_changes(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let kind = WebhookKind::Slack;
    let mut expected = a_stored(&db, &ada, kind).await;
    let other = a_stored(&db, &ada, WebhookKind::Discord).await;
    expected.updated_at = at(9);
    for (url, is_active) in [(Some("new"), None), (None, Some(false)), (None, None), (None, Some(true))] {
        commit(&db, update(ada.scope(), kind, url, is_active)).await.unwrap();
        expected.url = url.map_or(expected.url, |url| Sealed(url.to_owned()));
        expected.is_active = is_active.unwrap_or(expected.is_active);
        assert_eq!(webhook(&db, ada.scope(), kind).await, Some((expected.clone(), vec![])));
    }
    assert_eq!(webhook(&db, ada.scope(), WebhookKind::Discord).await, Some((other, vec![])));
}

async fn what_is_deleted_is_gone_with_its_secrets_and_may_come_again(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (scope, kind) = (ada.scope(), WebhookKind::Generic);
    commit(&db, Write::InsertWebhook(a_webhook(&ada, kind))).await.unwrap();
    let (secret, until) = (a_secret("one"), at(9));
    commit(&db, Write::ReplaceSigningSecret { scope, kind, secret, until, at: at(0) }).await.unwrap();
    commit(&db, Write::DeleteWebhook { scope, kind, at: at(1) }).await.unwrap();
    assert_eq!(webhook(&db, scope, kind).await, None);
    let again = a_webhook(&ada, kind);
    commit(&db, Write::InsertWebhook(again.clone())).await.unwrap();
    assert_eq!(webhook(&db, scope, kind).await, Some((again, vec![])));
}

async fn what_is_not_there_is_not_changed(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    a_stored(&db, &ada, WebhookKind::Slack).await;
    for write in changes(ada.scope(), WebhookKind::Discord) {
        assert!(is_stale(&commit(&db, write.clone()).await), "{write:?}");
    }
}

async fn others_see_and_change_nothing(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let config = a_stored(&db, &ada, WebhookKind::Generic).await;
    assert_eq!(webhook(&db, bob.scope(), WebhookKind::Generic).await, None);
    for write in changes(bob.scope(), WebhookKind::Generic) {
        assert!(is_stale(&commit(&db, write.clone()).await), "{write:?}");
    }
    assert_eq!(webhook(&db, ada.scope(), WebhookKind::Generic).await, Some((config, vec![])));
}

async fn nothing_of_a_deleted_organization_is_seen(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    a_stored(&db, &ada, WebhookKind::Generic).await;
    delete_organization(&db, ada.scope(), 1).await;
    assert_eq!(webhook(&db, ada.scope(), WebhookKind::Generic).await, None);
    for write in changes(ada.scope(), WebhookKind::Generic) {
        let outcome: Result<(), StoreError> = commit(&db, write.clone()).await;
        assert!(is_stale(&outcome), "{write:?}");
    }
}
