//! The host names of applications.

use launchway_database::Database;
use launchway_domain::{
    applications::{Application, ApplicationRepository as _, AutomaticHost, NamedApplication},
    ids::ApplicationId,
    store::Unique,
};

use super::{
    again, an_application_of, delete,
    domains::{add, move_to, remove},
    insert, is_taken, searched, stored,
};
use crate::builders::{Resident, execute};

contract!(
    names_are_returned_of_every_existing_application,
    names_follow_what_changes,
    a_name_leads_somewhere_while_an_application_has_it,
    an_automatic_host_that_is_taken_gets_the_first_free_number,
    automatic_hosts_of_two_organizations_do_not_meet_by_chance,
    an_automatic_host_is_tried_a_thousand_times,
    a_search_does_not_look_at_automatic_hosts,
);

/// Returns the names of every application, in order.
pub(super) async fn named(db: &Database) -> Vec<(ApplicationId, Vec<String>)> {
    let in_order = |NamedApplication { id, mut hosts }: NamedApplication| {
        hosts.sort();
        (id, hosts)
    };
    let mut named: Vec<_> = db.named().await.unwrap().into_iter().map(in_order).collect();
    named.sort();
    named
}

/// Returns the names in the form of [`named`], from the applications themselves.
pub(super) fn names_of(applications: &[Application]) -> Vec<(ApplicationId, Vec<String>)> {
    let names = |application: &Application| {
        let mut hosts: Vec<_> = application.hosts().map(str::to_owned).collect();
        hosts.sort();
        (application.id, hosts)
    };
    let mut named: Vec<_> = applications.iter().map(names).collect();
    named.sort();
    named
}

async fn names_are_returned_of_every_existing_application(db: Database) {
    assert_eq!(named(&db).await, []);
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let full = an_application_of(&ada).at_domain("a.example.com").also_at("c.example.com");
    let all = [
        full.also_at("b.example.com").build(),
        an_application_of(&ada).named("bare").build(),
        an_application_of(&bob).at_domain("d.example.com").build(),
    ];
    for application in &all {
        insert(&db, application).await.unwrap();
    }
    let gone = an_application_of(&bob).named("gone").at_domain("gone.example.com").build();
    insert(&db, &gone).await.unwrap();
    delete(&db, &gone, 1).await.unwrap();
    assert_eq!(named(&db).await, names_of(&all));
}

async fn names_follow_what_changes(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = an_application_of(&ada).at_domain("a.example.com").also_at("b.example.com").build();
    insert(&db, &web).await.unwrap();
    let other = stored(&db, &ada, "other").await;
    add(&db, &web, "c.example.com").await.unwrap();
    assert_eq!(named(&db).await, names_of(&[again(&db, &web).await, other.clone()]));
    move_to(&db, &web, Some("b.example.com")).await.unwrap();
    assert_eq!(named(&db).await, names_of(&[again(&db, &web).await, other.clone()]));
    remove(&db, &web, "b.example.com").await.unwrap();
    assert_eq!(named(&db).await, names_of(&[again(&db, &web).await, other.clone()]));
    assert_eq!(again(&db, &web).await.hosts().count(), 2);
    delete(&db, &web, 9).await.unwrap();
    assert_eq!(named(&db).await, names_of(&[other]));
}

async fn a_name_leads_somewhere_while_an_application_has_it(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = an_application_of(&ada).at_domain("a.example.com").also_at("b.example.com").build();
    let hosts = ["a.example.com", "b.example.com", "web.ada-s-team.localhost"];
    insert(&db, &web).await.unwrap();
    for host in hosts {
        assert!(db.is_named(host).await.unwrap(), "{host}");
    }
    for host in ["", "example.com", "c.example.com", "%.example.com", "a.example.com\0", "a.example.com."] {
        assert!(!db.is_named(host).await.unwrap(), "{host:?}");
    }
    delete(&db, &web, 1).await.unwrap();
    for host in hosts {
        assert!(!db.is_named(host).await.unwrap(), "{host}");
    }
}

async fn automatic_host_of(db: &Database, application: &Application) -> AutomaticHost {
    again(db, application).await.automatic_host
}

async fn an_automatic_host_that_is_taken_gets_the_first_free_number(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let mut all = Vec::new();
    for (name, expected) in [("my shop", "my-shop"), ("My Shop", "my-shop-2"), ("my_shop", "my-shop-3")] {
        let application = stored(&db, &ada, name).await;
        assert_eq!(application.automatic_host.as_str(), "my-shop.ada-s-team.localhost");
        let expected = format!("{expected}.ada-s-team.localhost");
        assert_eq!(automatic_host_of(&db, &application).await.as_str(), expected);
        all.push(again(&db, &application).await);
    }
    assert_eq!(named(&db).await, names_of(&all));
    // Names that became free are used first.
    for (gone, expected) in [(&all[1], "my-shop-2"), (&all[0], "my-shop")] {
        delete(&db, gone, 1).await.unwrap();
        let application = stored(&db, &ada, &format!("my--shop{}", "-".repeat(expected.len()))).await;
        let expected = format!("{expected}.ada-s-team.localhost");
        assert_eq!(automatic_host_of(&db, &application).await.as_str(), expected);
    }
}

async fn automatic_hosts_of_two_organizations_do_not_meet_by_chance(db: Database) {
    let (one, two) = (Resident::of(&db, "a.b").await, Resident::of(&db, "a-b").await);
    let (first, second) = (stored(&db, &one, "web").await, stored(&db, &two, "web").await);
    assert_eq!(automatic_host_of(&db, &first).await.as_str(), "web.a-b-s-team.localhost");
    assert_eq!(automatic_host_of(&db, &second).await.as_str(), "web-2.a-b-s-team.localhost");
}

async fn an_automatic_host_is_tried_a_thousand_times(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let first = stored(&db, &ada, "web").await;
    execute(
        &db,
        "WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < 999)
         INSERT INTO hosts (host, application_id)
             SELECT 'web-' || n || '.ada-s-team.localhost', id FROM numbers, applications",
    )
    .await;
    let last = stored(&db, &ada, "Web").await;
    assert_eq!(automatic_host_of(&db, &last).await.as_str(), "web-1000.ada-s-team.localhost");
    let one_more = an_application_of(&ada).named("WEB").build();
    assert!(is_taken(&insert(&db, &one_more).await, Unique::Domain));
    delete(&db, &first, 1).await.unwrap();
    insert(&db, &one_more).await.unwrap();
    assert_eq!(again(&db, &one_more).await, one_more);
}

async fn a_search_does_not_look_at_automatic_hosts(db: Database) {
    // Their organization's name is in all of them.
    let ada = Resident::of(&db, "ada").await;
    stored(&db, &ada, "shop").await;
    assert!(searched(&db, ada.scope(), "ada-s-team").await.is_empty());
}
