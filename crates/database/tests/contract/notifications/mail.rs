//! Configurations of mail channels.

use launchway_database::Database;
use launchway_domain::{
    notifications::{
        Channel, ChannelKind, DeliveryState, MailSecurity, NotificationRepository as _, Recipients,
        SmtpConfig, Write,
    },
    store::Unique,
};

use super::{a_mail, announced, claim_one, delete_organization, insert_mail, the_delivery};
use crate::{
    applications::is_taken,
    builders::{Resident, at, commit, id, is_stale},
};

contract!(
    a_server_is_read_as_it_was_made,
    an_organization_has_one_server,
    a_server_changes_but_for_who_made_it_and_when,
    a_server_that_is_deleted_is_gone_and_may_come_again,
    nobody_makes_a_server_for_an_organization_that_is_gone,
    others_see_and_change_no_server,
    mail_is_a_channel_like_others,
    what_waits_for_mail_that_is_switched_off_or_deleted_is_dead,
);

fn bare(resident: &Resident) -> SmtpConfig {
    SmtpConfig {
        username: None,
        password: None,
        from_name: String::new().try_into().unwrap(),
        to: Recipients::default(),
        security: MailSecurity::None,
        is_active: false,
        ..a_mail(resident)
    }
}

async fn smtp(db: &Database, resident: &Resident) -> Option<SmtpConfig> {
    db.smtp(resident.scope()).await.unwrap()
}

fn update(config: &SmtpConfig) -> Write {
    Write::UpdateSmtp(Box::new(config.clone()))
}

async fn a_server_is_read_as_it_was_made(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    for (resident, config) in [(&ada, a_mail(&ada)), (&bob, bare(&bob))] {
        assert_eq!(smtp(&db, resident).await, None);
        insert_mail(&db, &config).await.unwrap();
        assert_eq!(smtp(&db, resident).await, Some(config));
    }
}

async fn an_organization_has_one_server(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let config = a_mail(&ada);
    insert_mail(&db, &config).await.unwrap();
    assert!(is_taken(&insert_mail(&db, &bare(&ada)).await, Unique::SmtpConfig));
    assert_eq!(smtp(&db, &ada).await, Some(config));
}

async fn a_server_changes_but_for_who_made_it_and_when(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let made = a_mail(&ada);
    insert_mail(&db, &made).await.unwrap();
    let changed = SmtpConfig {
        id: made.id,
        user_id: bob.user.id,
        created_at: at(5),
        updated_at: at(7),
        host: "127.0.0.1".to_owned().try_into().unwrap(),
        port: 25,
        ..bare(&ada)
    };
    commit(&db, update(&changed)).await.unwrap();
    let expected = SmtpConfig { user_id: made.user_id, created_at: made.created_at, ..changed };
    assert_eq!(smtp(&db, &ada).await, Some(expected));
}

async fn a_server_that_is_deleted_is_gone_and_may_come_again(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let config = a_mail(&ada);
    insert_mail(&db, &config).await.unwrap();
    let delete = Write::DeleteSmtp { scope: ada.scope(), id: config.id, at: at(1) };
    commit(&db, delete.clone()).await.unwrap();
    assert_eq!(smtp(&db, &ada).await, None);
    assert!(is_stale(&commit(&db, delete).await));
    assert!(is_stale(&commit(&db, update(&config)).await));
    insert_mail(&db, &config).await.unwrap();
}

async fn nobody_makes_a_server_for_an_organization_that_is_gone(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let config = a_mail(&ada);
    insert_mail(&db, &config).await.unwrap();
    delete_organization(&db, ada.scope(), 1).await;
    assert_eq!(smtp(&db, &ada).await, None);
    assert!(is_stale(&commit(&db, update(&config)).await));
    assert!(is_stale(&insert_mail(&db, &a_mail(&ada)).await));
}

async fn others_see_and_change_no_server(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let config = a_mail(&ada);
    insert_mail(&db, &config).await.unwrap();
    assert_eq!(smtp(&db, &bob).await, None);
    let foreign = SmtpConfig { organization_id: bob.organization.id, port: 1, ..config.clone() };
    assert!(is_stale(&commit(&db, update(&foreign)).await));
    for (scope, id) in [(bob.scope(), config.id), (ada.scope(), id())] {
        assert!(is_stale(&commit(&db, Write::DeleteSmtp { scope, id, at: at(1) }).await));
    }
    assert_eq!(smtp(&db, &ada).await, Some(config));
}

async fn mail_is_a_channel_like_others(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let config = a_mail(&ada);
    insert_mail(&db, &config).await.unwrap();
    let event = announced(&db, ada.scope(), 1).await;
    let claimed = claim_one(&db, 1).await;
    assert_eq!(claimed.channel, Channel::Mail(Box::new(config)));
    assert_eq!(claimed.event, event);
    assert_eq!(the_delivery(&db, ada.scope()).await.channel, ChannelKind::Smtp);
}

async fn what_waits_for_mail_that_is_switched_off_or_deleted_is_dead(db: Database) {
    for (name, is_deleted) in [("ada", true), ("bob", false)] {
        let ada = Resident::of(&db, name).await;
        let config = a_mail(&ada);
        insert_mail(&db, &config).await.unwrap();
        announced(&db, ada.scope(), 1).await;
        let off = SmtpConfig { is_active: false, updated_at: at(5), ..config.clone() };
        let (write, reason) = match is_deleted {
            true => {
                let write = Write::DeleteSmtp { scope: ada.scope(), id: config.id, at: at(5) };
                (write, "the channel was removed")
            }
            false => (update(&off), "the channel was switched off"),
        };
        commit(&db, write).await.unwrap();
        let dead = the_delivery(&db, ada.scope()).await;
        assert_eq!((dead.state, dead.finished_at), (DeliveryState::Dead, Some(at(5))));
        assert_eq!((dead.reason.as_str(), dead.next_at), (reason, None));
    }
}
