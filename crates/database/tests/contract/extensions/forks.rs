//! Creation, deletion and visibility of forks.

use launchway_database::Database;
use launchway_domain::{
    extensions::{Extension, ExtensionRepository},
    organizations,
    store::{Rule, StoreError, Unique},
};
use launchway_testkit::builders::an_extension;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{
    S, Write, a_fork, a_run_of, an_entry, begin, by_key, delete, finish, fork, quietly, request,
    routes::{a_route, add, hosts},
};
use crate::{
    applications::is_taken,
    builders::{Resident, at, commit, id, is_stale},
};

contract!(
    a_fork_is_read_as_it_was_made,
    others_see_no_fork,
    a_key_is_taken_once_in_the_installation,
    of_two_who_take_a_key_at_once_one_gets_it,
    a_deleted_fork_is_gone_and_its_key_is_free,
    only_a_fork_of_the_organization_is_deleted,
    a_deleted_fork_takes_its_names_along,
    nobody_forks_for_an_organization_that_is_gone,
    the_forks_of_a_deleted_organization_go_with_it,
    an_organization_with_a_run_that_is_not_over_stays,
    an_organization_that_has_an_extension_stays,
    of_a_run_and_the_end_of_its_organization_one_happens,
);

async fn a_fork_is_read_as_it_was_made(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let made = an_extension().keyed("mine").forked_by(&ada.organization).asking_for("b").asking_for("a");
    let made = made.build();
    fork(&db, &made).await.unwrap();
    assert_eq!(by_key(&db, ada.scope(), "mine").await.as_ref(), Some(&made));
    assert_eq!(ExtensionRepository::by_id(&db, ada.scope(), made.id).await.unwrap(), Some(made));
}

async fn others_see_no_fork(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let fork = a_fork(&db, &ada, "mine").await;
    assert_eq!(by_key(&db, bob.scope(), "mine").await, None);
    assert_eq!(ExtensionRepository::by_id(&db, bob.scope(), fork.id).await.unwrap(), None);
}

async fn a_key_is_taken_once_in_the_installation(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    an_entry(&db).await;
    a_fork(&db, &ada, "mine").await;
    for (resident, key) in [(&ada, "hello-note"), (&ada, "mine"), (&bob, "mine")] {
        let other = an_extension().keyed(key).forked_by(&resident.organization).build();
        let other = Extension { id: id(), ..other };
        assert!(is_taken(&fork(&db, &other).await, Unique::ExtensionKey), "{key}");
    }
}

async fn of_two_who_take_a_key_at_once_one_gets_it(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let [one, two] =
        [&ada, &bob].map(|resident| an_extension().keyed("mine").forked_by(&resident.organization).build());
    let outcomes = tokio::join!(fork(&db, &one), fork(&db, &two));
    assert!(outcomes.0.is_ok() != outcomes.1.is_ok(), "{outcomes:?}");
    let taken = [&outcomes.0, &outcomes.1].map(|outcome| is_taken(outcome, Unique::ExtensionKey));
    assert!(taken.contains(&true), "{outcomes:?}");
}

async fn a_deleted_fork_is_gone_and_its_key_is_free(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let fork = a_fork(&db, &ada, "mine").await;
    delete(&db, ada.scope(), &fork.key, 2).await.unwrap();
    assert_eq!(by_key(&db, ada.scope(), "mine").await, None);
    assert_eq!(ExtensionRepository::by_id(&db, ada.scope(), fork.id).await.unwrap(), None);
    assert!(is_stale(&delete(&db, ada.scope(), &fork.key, 3).await));
    a_fork(&db, &bob, "mine").await;
}

async fn only_a_fork_of_the_organization_is_deleted(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let (entry, fork) = (an_entry(&db).await, a_fork(&db, &ada, "mine").await);
    assert!(is_stale(&delete(&db, bob.scope(), &fork.key, 2).await));
    assert!(is_stale(&delete(&db, ada.scope(), &entry.key, 2).await));
    assert!(is_stale(&delete(&db, ada.scope(), &"nothing".parse().unwrap(), 2).await));
    assert_eq!(by_key(&db, ada.scope(), "mine").await, Some(fork));
}

async fn a_deleted_fork_takes_its_names_along(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let fork = a_fork(&db, &ada, "mine").await;
    for (key, host) in [("mine", "a.example.com"), ("mine", "b.example.com"), ("other", "c.example.com")] {
        add(&db, &a_route(&ada, key, host)).await.unwrap();
    }
    delete(&db, ada.scope(), &fork.key, 2).await.unwrap();
    assert_eq!(hosts(&db).await, ["c.example.com"]);
}

async fn end(db: &Database, resident: &Resident) -> Result<(), StoreError> {
    commit(db, organizations::Write::Delete { scope: resident.scope(), at: at(9) }).await
}

fn is_refused(outcome: &Result<(), StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Refused(Rule::HasExtensions)))
}

async fn nobody_forks_for_an_organization_that_is_gone(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    end(&db, &ada).await.unwrap();
    let late = an_extension().keyed("mine").forked_by(&ada.organization).build();
    assert!(is_stale(&fork(&db, &late).await));
}

async fn the_forks_of_a_deleted_organization_go_with_it(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    a_fork(&db, &ada, "mine").await;
    let other = a_fork(&db, &bob, "other").await;
    end(&db, &ada).await.unwrap();
    assert_eq!(by_key(&db, ada.scope(), "mine").await, None);
    assert_eq!(by_key(&db, bob.scope(), "other").await, Some(other));
    a_fork(&db, &bob, "mine").await;
}

async fn an_organization_with_a_run_that_is_not_over_stays(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let run = a_run_of(&ada, &an_entry(&db).await).with_steps();
    request(&db, run.clone(), false).await.unwrap();
    a_fork(&db, &ada, "mine").await;
    assert!(is_refused(&end(&db, &ada).await));
    begin(&db, run.0.id).await.unwrap();
    assert!(is_refused(&end(&db, &ada).await));
    assert!(by_key(&db, ada.scope(), "mine").await.is_some());
    end(&db, &bob).await.unwrap();
    finish(&db, run.0.id, S::Completed).await.unwrap();
    end(&db, &ada).await.unwrap();
}

async fn an_organization_that_has_an_extension_stays(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let entry = an_entry(&db).await;
    for number in 1..=2 {
        let run = a_run_of(&ada, &entry).numbered(number).with_steps();
        request(&db, run.clone(), true).await.unwrap();
        finish(&db, run.0.id, S::Failed).await.unwrap();
    }
    let uninstall = async |key: &str, with_volumes| {
        let write = Write::Uninstall {
            scope: ada.scope(),
            extension: key.parse().unwrap(),
            subject: Uuid::nil().into(),
            with_volumes,
        };
        quietly(&db, write).await.unwrap();
    };
    assert!(is_refused(&end(&db, &ada).await));
    uninstall("hello-note", false).await;
    uninstall("other", true).await;
    assert!(is_refused(&end(&db, &ada).await));
    uninstall("hello-note", true).await;
    uninstall("hello-note", true).await;
    end(&db, &ada).await.unwrap();
}

async fn of_a_run_and_the_end_of_its_organization_one_happens(db: Database) {
    let entry = an_entry(&db).await;
    let mut tasks = JoinSet::new();
    for number in 0..8 {
        let ada = Resident::of(&db, &format!("ada{number}")).await;
        let (db, run) = (db.clone(), a_run_of(&ada, &entry).with_steps());
        tasks.spawn(async move { tokio::join!(request(&db, run, false), end(&db, &ada)) });
    }
    for (requested, ended) in tasks.join_all().await {
        match requested {
            Ok(()) => assert!(is_refused(&ended), "{ended:?}"),
            refused => assert!(is_stale(&refused) && ended.is_ok(), "{refused:?} {ended:?}"),
        }
    }
}
