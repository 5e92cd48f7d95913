//! Signing secrets of messages.

use launchway_database::Database;
use launchway_domain::{
    notifications::{
        Channel, DeliveryQueue as _, KeptSigningSecret, NotificationRepository as _, WebhookKind, Write,
    },
    organizations::Scope,
};
use tokio::task::JoinSet;

use super::{a_secret, a_webhook, announced, claim_one};
use crate::builders::{Resident, at, commit};

contract!(
    a_replaced_secret_keeps_signing_for_a_while,
    the_oldest_secrets_make_room,
    a_place_without_a_secret_gets_one,
    secrets_that_are_replaced_at_once_all_sign,
    a_claim_has_the_secrets_that_sign_now,
    secrets_that_sign_no_more_are_forgotten,
);

const KIND: WebhookKind = WebhookKind::Generic;

/// A user with a webhook channel of their own, and its signing secret.
async fn a_receiver(db: &Database) -> (Resident, KeptSigningSecret) {
    let ada = Resident::of(db, "ada").await;
    commit(db, Write::InsertWebhook(a_webhook(&ada, KIND))).await.unwrap();
    assert_eq!(signing(db, ada.scope(), 0).await, []);
    let secret = replace(db, ada.scope(), 0, 0).await;
    (ada, secret)
}

async fn replace(db: &Database, scope: Scope, until: i64, seconds: i64) -> KeptSigningSecret {
    let secret = a_secret(&format!("of {seconds}"));
    let (until, at) = (at(until), at(seconds));
    let write = Write::ReplaceSigningSecret { scope, kind: KIND, secret: secret.clone(), until, at };
    commit(db, write).await.unwrap();
    secret
}

async fn signing(db: &Database, scope: Scope, seconds: i64) -> Vec<KeptSigningSecret> {
    db.webhook(scope, KIND, at(seconds)).await.unwrap().unwrap().1
}

async fn a_replaced_secret_keeps_signing_for_a_while(db: Database) {
    let (ada, first) = a_receiver(&db).await;
    assert_eq!(signing(&db, ada.scope(), 5).await, std::slice::from_ref(&first));
    let second = replace(&db, ada.scope(), 100, 10).await;
    let third = replace(&db, ada.scope(), 200, 20).await;
    let all = [third.clone(), second.clone(), first];
    assert_eq!(signing(&db, ada.scope(), 20).await, all);
    assert_eq!(signing(&db, ada.scope(), 99).await, all);
    assert_eq!(signing(&db, ada.scope(), 100).await, [third.clone(), second]);
    assert_eq!(signing(&db, ada.scope(), 200).await, [third]);
}

async fn the_oldest_secrets_make_room(db: Database) {
    let (ada, first) = a_receiver(&db).await;
    let mut expected = vec![first];
    for seconds in 1..=8 {
        expected.insert(0, replace(&db, ada.scope(), 1000, seconds).await);
        expected.truncate(6);
        assert_eq!(signing(&db, ada.scope(), seconds).await, expected);
    }
}

async fn a_place_without_a_secret_gets_one(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    super::insert(&db, &a_webhook(&ada, KIND)).await.unwrap();
    assert_eq!(signing(&db, ada.scope(), 1).await, []);
    let secret = replace(&db, ada.scope(), 10, 1).await;
    assert_eq!(signing(&db, ada.scope(), 1).await, [secret]);
    let (config, _) = db.webhook(ada.scope(), KIND, at(1)).await.unwrap().unwrap();
    assert_eq!(config.updated_at, at(1));
}

async fn secrets_that_are_replaced_at_once_all_sign(db: Database) {
    let (ada, first) = a_receiver(&db).await;
    let mut replacing = JoinSet::new();
    for seconds in 1..=4 {
        let (db, scope) = (db.clone(), ada.scope());
        replacing.spawn(async move { replace(&db, scope, 1000, seconds).await });
    }
    let mut expected = replacing.join_all().await;
    expected.push(first);
    let mut signing = signing(&db, ada.scope(), 5).await;
    for secrets in [&mut expected, &mut signing] {
        secrets.sort_by_key(|secret| secret.id);
    }
    assert_eq!(signing, expected);
}

async fn a_claim_has_the_secrets_that_sign_now(db: Database) {
    let (ada, first) = a_receiver(&db).await;
    let second = replace(&db, ada.scope(), 100, 10).await;
    announced(&db, ada.scope(), 20).await;
    let Channel::Webhook { secrets, .. } = claim_one(&db, 20).await.channel else { panic!("by mail") };
    assert_eq!(secrets, [second.clone(), first]);
    announced(&db, ada.scope(), 100).await;
    let Channel::Webhook { secrets, .. } = claim_one(&db, 100).await.channel else { panic!("by mail") };
    assert_eq!(secrets, [second]);
}

async fn secrets_that_sign_no_more_are_forgotten(db: Database) {
    let (ada, first) = a_receiver(&db).await;
    let second = replace(&db, ada.scope(), 100, 10).await;
    db.forget(at(0), at(0), at(99)).await.unwrap();
    assert_eq!(signing(&db, ada.scope(), 0).await, [second.clone(), first]);
    db.forget(at(0), at(0), at(100)).await.unwrap();
    assert_eq!(signing(&db, ada.scope(), 0).await, [second]);
}
