//! Adding, updating, withdrawing and restoring catalog entries.

use launchway_database::Database;
use launchway_domain::{
    extensions::{Extension, ExtensionRepository, Validation},
    store::{Unique, UnitOfWork as _},
};
use launchway_testkit::builders::an_extension;

use super::{Write, a_fork, an_entry, by_key, publish, withdraw_all_but};
use crate::{
    applications::is_taken,
    builders::{Resident, at, id},
};

contract!(
    an_entry_is_read_as_it_was_published_by_everyone,
    an_entry_with_the_same_content_stays_as_it_is,
    a_changed_entry_keeps_its_id_and_creation_time,
    the_catalog_lists_keys_states_and_hashes_of_its_entries,
    entries_that_are_not_kept_are_withdrawn_and_forks_stay,
    an_entry_that_was_withdrawn_comes_back_as_the_same,
    an_entry_that_comes_back_brings_what_changed_meanwhile,
    an_entry_cannot_take_the_key_of_a_fork,
    a_catalog_is_published_as_a_whole,
);

async fn an_entry_is_read_as_it_was_published_by_everyone(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let entry = an_extension().asking_for("who").asking_for("how").build();
    let mut invalid = an_extension().keyed("broken").defined_by("line \"1\"\n'ü' 🚀").build();
    invalid.validation = Validation::Invalid;
    invalid.validation_errors = r#"["line 1"]"#.to_owned();
    for entry in [entry, invalid] {
        publish(&db, &entry).await.unwrap();
        for resident in [&ada, &bob] {
            assert_eq!(by_key(&db, resident.scope(), entry.key.as_str()).await.as_ref(), Some(&entry));
            let by_id = ExtensionRepository::by_id(&db, resident.scope(), entry.id).await.unwrap();
            assert_eq!(by_id.as_ref(), Some(&entry));
        }
    }
    assert_eq!(by_key(&db, ada.scope(), "nothing").await, None);
    assert_eq!(ExtensionRepository::by_id(&db, ada.scope(), id()).await.unwrap(), None);
}

/// The same entry of the next version of Launchway: with another id and other timestamps.
fn renewed(entry: &Extension, seconds: i64) -> Extension {
    let mut next = Extension {
        id: id(),
        created_at: at(seconds),
        updated_at: at(seconds),
        deleted_at: None,
        ..entry.clone()
    };
    for variable in &mut next.variables {
        variable.id = id();
    }
    next
}

async fn an_entry_with_the_same_content_stays_as_it_is(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let entry = an_entry(&db).await;
    publish(&db, &renewed(&entry, 9)).await.unwrap();
    assert_eq!(by_key(&db, ada.scope(), "hello-note").await, Some(entry));
}

async fn a_changed_entry_keeps_its_id_and_creation_time(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let entry = an_entry(&db).await;
    let next = an_extension().named("Hello again").asking_for("a").asking_for("b").defined_by("new");
    let next = renewed(&next.build(), 9);
    publish(&db, &next).await.unwrap();
    let expected = Extension { id: entry.id, created_at: entry.created_at, ..next };
    assert_eq!(by_key(&db, ada.scope(), "hello-note").await, Some(expected));
}

async fn the_catalog_lists_keys_states_and_hashes_of_its_entries(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    assert_eq!(ExtensionRepository::catalog(&db).await.unwrap(), []);
    let mut broken = an_extension().keyed("broken").defined_by("?").build();
    broken.validation = Validation::Invalid;
    let (entry, gone) = (an_entry(&db).await, an_extension().keyed("gone").build());
    for entry in [&gone, &broken] {
        publish(&db, entry).await.unwrap();
    }
    a_fork(&db, &ada, "mine").await;
    withdraw_all_but(&db, &["broken", "hello-note"], 3).await;
    let expected = [broken, entry].map(|entry| (entry.key, entry.validation, entry.content_hash));
    assert_eq!(ExtensionRepository::catalog(&db).await.unwrap(), expected);
}

async fn entries_that_are_not_kept_are_withdrawn_and_forks_stay(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let entry = an_entry(&db).await;
    publish(&db, &an_extension().keyed("gone").build()).await.unwrap();
    let fork = a_fork(&db, &ada, "mine").await;
    withdraw_all_but(&db, &["hello-note", "unknown"], 3).await;
    assert_eq!(by_key(&db, ada.scope(), "hello-note").await, Some(entry));
    assert_eq!(by_key(&db, ada.scope(), "mine").await, Some(fork.clone()));
    assert_eq!(by_key(&db, ada.scope(), "gone").await, None);
    withdraw_all_but(&db, &[], 4).await;
    assert_eq!(ExtensionRepository::catalog(&db).await.unwrap(), []);
    assert_eq!(by_key(&db, ada.scope(), "mine").await, Some(fork));
}

async fn an_entry_that_was_withdrawn_comes_back_as_the_same(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let entry = an_entry(&db).await;
    withdraw_all_but(&db, &[], 3).await;
    assert_eq!(by_key(&db, ada.scope(), "hello-note").await, None);
    assert_eq!(ExtensionRepository::by_id(&db, ada.scope(), entry.id).await.unwrap(), None);
    let next = renewed(&entry, 9);
    publish(&db, &next).await.unwrap();
    let back = Extension { id: entry.id, created_at: entry.created_at, ..next };
    assert_eq!(by_key(&db, ada.scope(), "hello-note").await, Some(back));
}

async fn an_entry_that_comes_back_brings_what_changed_meanwhile(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let entry = an_entry(&db).await;
    withdraw_all_but(&db, &[], 3).await;
    let next = renewed(&an_extension().named("Hello again").defined_by("new").build(), 9);
    publish(&db, &next).await.unwrap();
    let back = Extension { id: entry.id, created_at: entry.created_at, ..next };
    assert_eq!(by_key(&db, ada.scope(), "hello-note").await, Some(back));
}

async fn an_entry_cannot_take_the_key_of_a_fork(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let fork = a_fork(&db, &ada, "mine").await;
    let entry = an_extension().keyed("mine").build();
    assert!(is_taken(&publish(&db, &entry).await, Unique::ExtensionKey));
    assert_eq!(by_key(&db, ada.scope(), "mine").await, Some(fork.clone()));
    super::delete(&db, ada.scope(), &fork.key, 2).await.unwrap();
    publish(&db, &entry).await.unwrap();
    assert_eq!(by_key(&db, ada.scope(), "mine").await, Some(entry));
}

async fn a_catalog_is_published_as_a_whole(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    a_fork(&db, &ada, "mine").await;
    let publish = |key: &str| Write::Publish(Box::new(an_extension().keyed(key).build())).into();
    let taken = db.commit(vec![publish("a"), publish("mine"), publish("b")]).await;
    assert!(is_taken(&taken, Unique::ExtensionKey));
    assert_eq!(ExtensionRepository::catalog(&db).await.unwrap(), []);
}
