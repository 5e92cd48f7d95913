//! Additional domains of applications.

use launchway_database::Database;
use launchway_domain::{
    applications::{Application, Write},
    organizations::Scope,
    store::{Rule, StoreError, Unique},
};
use launchway_testkit::builders::parsed;

use super::{again, an_application_of, delete, get, insert, is_taken, stored, update};
use crate::builders::{Resident, at, commit, id, is_stale};

contract!(
    a_domain_is_added_behind_the_others,
    a_domain_that_an_application_has_is_not_added,
    an_application_has_a_hundred_further_domains_and_no_more,
    a_further_domain_is_removed_and_free,
    the_domain_itself_is_removed_and_free,
    a_domain_that_an_application_does_not_have_is_not_removed,
    what_is_gone_or_of_others_gets_and_loses_no_domain,
    a_changed_domain_leaves_the_old_one_free,
    a_further_domain_becomes_the_domain,
    a_change_leaves_further_domains_and_the_automatic_host_alone,
    a_change_takes_no_name_of_others,
    a_deleted_applications_names_are_free,
);

pub(crate) async fn add(db: &Database, application: &Application, domain: &str) -> Result<(), StoreError> {
    let scope = Scope::of_record(application.organization_id);
    commit(db, Write::AddDomain { scope, id: application.id, domain: parsed(domain), at: at(7) }).await
}

pub(crate) async fn remove(db: &Database, application: &Application, domain: &str) -> Result<(), StoreError> {
    let scope = Scope::of_record(application.organization_id);
    commit(db, Write::RemoveDomain { scope, id: application.id, domain: parsed(domain), at: at(8) }).await
}

/// Sets the domain of an application, or removes it.
pub(crate) async fn move_to(
    db: &Database,
    application: &Application,
    domain: Option<&str>,
) -> Result<(), StoreError> {
    let mut moved = application.clone();
    moved.blueprint.domain = domain.map(parsed);
    commit(db, update(&moved)).await
}

fn is_full(outcome: &Result<(), StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Refused(Rule::MostDomains)))
}

async fn a_domain_is_added_behind_the_others(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = an_application_of(&ada).at_domain("z.example.com").also_at("y.example.com");
    insert(&db, &web.clone().build()).await.unwrap();
    let other = stored(&db, &ada, "other").await;
    add(&db, &web.clone().build(), "x.example.com").await.unwrap();
    add(&db, &web.clone().build(), "xx.example.com").await.unwrap();
    let expected = web.also_at("x.example.com").also_at("xx.example.com").build();
    assert_eq!(again(&db, &expected).await, Application { updated_at: at(7), ..expected });
    assert_eq!(again(&db, &other).await, other);
}

async fn a_domain_that_an_application_has_is_not_added(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let web = an_application_of(&ada).at_domain("a.example.com").also_at("b.example.com").build();
    let theirs = an_application_of(&bob).at_domain("c.example.com").also_at("d.example.com").build();
    for application in [&web, &theirs] {
        insert(&db, application).await.unwrap();
    }
    for domain in ["a.example.com", "b.example.com", "c.example.com", "d.example.com"] {
        assert!(is_taken(&add(&db, &web, domain).await, Unique::Domain), "{domain}");
    }
    assert_eq!((again(&db, &web).await, again(&db, &theirs).await), (web, theirs));
}

async fn an_application_has_a_hundred_further_domains_and_no_more(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let mut web = an_application_of(&ada).at_domain("web.example.com");
    for number in 1..=99 {
        web = web.also_at(&format!("{number}.example.com"));
    }
    let web = web.build();
    insert(&db, &web).await.unwrap();
    add(&db, &web, "100.example.com").await.unwrap();
    let full = again(&db, &web).await;
    assert_eq!(full.further_domains.len(), Application::MOST_FURTHER_DOMAINS);
    assert!(is_full(&add(&db, &web, "101.example.com").await));
    assert_eq!(again(&db, &web).await, full);
    // A name whose change was rejected stays free.
    let other = stored(&db, &ada, "other").await;
    add(&db, &other, "101.example.com").await.unwrap();
    // The domain itself is none of them.
    remove(&db, &web, "web.example.com").await.unwrap();
    assert!(is_full(&add(&db, &web, "102.example.com").await));
    remove(&db, &web, "50.example.com").await.unwrap();
    add(&db, &web, "102.example.com").await.unwrap();
    assert!(is_full(&add(&db, &web, "103.example.com").await));
}

async fn a_further_domain_is_removed_and_free(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let web = an_application_of(&ada).at_domain("web.example.com");
    let (before, after) = (
        web.clone().also_at("a.example.com").also_at("b.example.com").also_at("c.example.com").build(),
        web.also_at("a.example.com").also_at("c.example.com").build(),
    );
    insert(&db, &before).await.unwrap();
    remove(&db, &before, "b.example.com").await.unwrap();
    assert_eq!(again(&db, &after).await, Application { updated_at: at(8), ..after });
    let theirs = stored(&db, &bob, "web").await;
    add(&db, &theirs, "b.example.com").await.unwrap();
    assert!(is_taken(&add(&db, &theirs, "a.example.com").await, Unique::Domain));
}

async fn the_domain_itself_is_removed_and_free(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let bare = an_application_of(&ada).also_at("a.example.com");
    insert(&db, &bare.clone().at_domain("web.example.com").build()).await.unwrap();
    let bare = bare.build();
    remove(&db, &bare, "web.example.com").await.unwrap();
    assert_eq!(again(&db, &bare).await, Application { updated_at: at(8), ..bare });
    insert(&db, &an_application_of(&bob).at_domain("web.example.com").build()).await.unwrap();
}

async fn a_domain_that_an_application_does_not_have_is_not_removed(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let web = an_application_of(&ada).at_domain("a.example.com").also_at("b.example.com").build();
    let theirs = an_application_of(&bob).at_domain("c.example.com").also_at("d.example.com").build();
    for application in [&web, &theirs] {
        insert(&db, application).await.unwrap();
    }
    remove(&db, &web, "b.example.com").await.unwrap();
    let left = again(&db, &web).await;
    for domain in ["b.example.com", "c.example.com", "d.example.com", "nobodys.example.com"] {
        assert!(is_stale(&remove(&db, &web, domain).await), "{domain}");
    }
    assert_eq!((again(&db, &web).await, again(&db, &theirs).await), (left, theirs));
}

async fn what_is_gone_or_of_others_gets_and_loses_no_domain(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let there = an_application_of(&ada).at_domain("a.example.com").also_at("b.example.com").build();
    let gone = an_application_of(&ada).named("gone").at_domain("c.example.com").build();
    for application in [&there, &gone] {
        insert(&db, application).await.unwrap();
    }
    delete(&db, &gone, 1).await.unwrap();
    let foreign = Application { organization_id: bob.organization.id, ..there.clone() };
    let unknown = Application { id: id(), ..there.clone() };
    for application in [gone, foreign, unknown] {
        assert!(is_stale(&add(&db, &application, "new.example.com").await));
        for domain in ["a.example.com", "b.example.com", "c.example.com"] {
            assert!(is_stale(&remove(&db, &application, domain).await));
        }
        assert!(is_stale(&move_to(&db, &application, Some("new.example.com")).await));
    }
    assert_eq!(again(&db, &there).await, there);
    add(&db, &there, "new.example.com").await.unwrap();
}

async fn a_changed_domain_leaves_the_old_one_free(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = an_application_of(&ada).at_domain("old.example.com").build();
    insert(&db, &web).await.unwrap();
    let other = stored(&db, &ada, "other").await;
    move_to(&db, &web, Some("new.example.com")).await.unwrap();
    assert!(is_taken(&add(&db, &other, "new.example.com").await, Unique::Domain));
    add(&db, &other, "old.example.com").await.unwrap();
    // The same once more changes nothing.
    move_to(&db, &web, Some("new.example.com")).await.unwrap();
    assert!(is_taken(&add(&db, &other, "new.example.com").await, Unique::Domain));
    move_to(&db, &web, None).await.unwrap();
    add(&db, &other, "new.example.com").await.unwrap();
}

async fn a_further_domain_becomes_the_domain(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = an_application_of(&ada).also_at("a.example.com").also_at("b.example.com");
    insert(&db, &web.at_domain("web.example.com").build()).await.unwrap();
    let moved = an_application_of(&ada).at_domain("b.example.com").also_at("a.example.com").build();
    move_to(&db, &moved, Some("b.example.com")).await.unwrap();
    assert_eq!(again(&db, &moved).await, Application { updated_at: at(5), ..moved.clone() });
    let other = stored(&db, &ada, "other").await;
    assert!(is_taken(&add(&db, &other, "b.example.com").await, Unique::Domain));
    add(&db, &other, "web.example.com").await.unwrap();
    // Then it goes like any domain.
    remove(&db, &moved, "b.example.com").await.unwrap();
    add(&db, &other, "b.example.com").await.unwrap();
}

async fn a_change_leaves_further_domains_and_the_automatic_host_alone(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = an_application_of(&ada).also_at("a.example.com").build();
    insert(&db, &web).await.unwrap();
    let mut renamed = web.clone();
    renamed.blueprint.name = parsed("Shop");
    // A change says nothing about these.
    renamed.further_domains = vec![];
    commit(&db, update(&renamed)).await.unwrap();
    let expected = Application { further_domains: web.further_domains, updated_at: at(5), ..renamed };
    assert_eq!(expected.automatic_host.as_str(), "web.ada-s-team.localhost");
    assert_eq!(again(&db, &expected).await, expected);
}

async fn a_change_takes_no_name_of_others(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let web = an_application_of(&ada).at_domain("web.example.com").build();
    let theirs = an_application_of(&bob).at_domain("a.example.com").also_at("b.example.com").build();
    for application in [&web, &theirs] {
        insert(&db, application).await.unwrap();
    }
    for domain in ["a.example.com", "b.example.com"] {
        assert!(is_taken(&move_to(&db, &web, Some(domain)).await, Unique::Domain));
        let new = an_application_of(&ada).named("new");
        assert!(is_taken(&insert(&db, &new.clone().at_domain(domain).build()).await, Unique::Domain));
        assert!(is_taken(&insert(&db, &new.also_at(domain).build()).await, Unique::Domain));
    }
    assert_eq!((again(&db, &web).await, again(&db, &theirs).await), (web, theirs));
}

async fn a_deleted_applications_names_are_free(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let web = an_application_of(&ada).at_domain("a.example.com").also_at("b.example.com").build();
    insert(&db, &web).await.unwrap();
    delete(&db, &web, 1).await.unwrap();
    assert_eq!(get(&db, ada.scope(), web.id).await, None);
    let same = Application { id: id(), ..web };
    insert(&db, &same).await.unwrap();
    assert_eq!(again(&db, &same).await, same);
    delete(&db, &same, 1).await.unwrap();
    let theirs = stored(&db, &bob, "web").await;
    for domain in ["a.example.com", "b.example.com"] {
        add(&db, &theirs, domain).await.unwrap();
    }
}
