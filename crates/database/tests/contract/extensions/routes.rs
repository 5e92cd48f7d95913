//! The host names of extension containers, and those of applications beside them.

use launchway_database::Database;
use launchway_domain::{
    applications::{ApplicationRepository as _, Port},
    extensions::{ExtensionRepository, ExtensionRoute, Write},
    ids::ExtensionRouteId,
    store::{StoreError, Unique},
};
use launchway_testkit::builders::{a_container, parsed};
use uuid::Uuid;

use super::quietly;
use crate::{
    applications::{
        self, again, an_application_of,
        domains::{add as add_domain, move_to, remove as remove_domain},
        insert, is_taken, stored,
    },
    builders::{Resident, id, is_stale},
};

contract!(
    a_route_is_read_as_it_was_added,
    a_name_of_the_same_extension_leads_to_the_new_container,
    a_name_of_another_extension_or_organization_is_taken,
    a_name_of_an_application_is_taken,
    an_application_cannot_take_a_name_of_an_extension,
    a_name_that_leads_nowhere_any_more_is_free,
    only_a_name_of_the_extension_is_removed,
    a_container_that_moved_is_found_at_its_new_address,
    who_looked_at_the_old_container_does_not_move_the_new_one,
    a_name_of_an_extension_leads_somewhere_and_to_no_application,
    uninstalling_takes_the_names_of_the_extension_alone,
);

/// A route to a container that an extension created for that user's organization.
pub(crate) fn a_route(resident: &Resident, extension: &str, host: &str) -> ExtensionRoute {
    ExtensionRoute {
        id: id(),
        scope: resident.scope(),
        extension: parsed(extension),
        host: parsed(host),
        container: a_container(host).id,
        address: [10, 0, 0, 7].into(),
        port: Port::try_from(8080).unwrap(),
    }
}

pub(crate) async fn add(db: &Database, route: &ExtensionRoute) -> Result<(), StoreError> {
    quietly(db, Write::AddRoute(route.clone())).await
}

pub(crate) async fn remove(db: &Database, route: &ExtensionRoute) -> Result<(), StoreError> {
    let ExtensionRoute { scope, extension, host, .. } = route.clone();
    quietly(db, Write::RemoveRoute { scope, extension, host }).await
}

pub(crate) async fn set_route_address(db: &Database, id: ExtensionRouteId, last: u8) {
    quietly(db, Write::MoveRoute { id, address: [10, 0, 0, last].into() }).await.unwrap();
}

/// Returns every route, sorted by name.
async fn routes(db: &Database) -> Vec<ExtensionRoute> {
    let mut routes = ExtensionRepository::routes(db).await.unwrap();
    routes.sort_by(|one, other| one.host.cmp(&other.host));
    routes
}

pub(super) async fn hosts(db: &Database) -> Vec<String> {
    routes(db).await.into_iter().map(|route| route.host.into()).collect()
}

async fn a_route_is_read_as_it_was_added(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    assert_eq!(routes(&db).await, []);
    let mut all = [
        a_route(&ada, "db", "a.example.com"),
        a_route(&ada, "db", "b.example.com"),
        a_route(&bob, "db", "c.example.com"),
    ];
    all[1].address = "fd00::7".parse().unwrap();
    all[1].port = Port::try_from(65_535).unwrap();
    for route in &all {
        add(&db, route).await.unwrap();
    }
    assert_eq!(routes(&db).await, all);
}

async fn a_name_of_the_same_extension_leads_to_the_new_container(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let old = a_route(&ada, "db", "a.example.com");
    let other = a_route(&ada, "db", "b.example.com");
    let new = ExtensionRoute {
        id: id(),
        container: a_container("new").id,
        address: [10, 0, 0, 8].into(),
        port: Port::try_from(80).unwrap(),
        ..old.clone()
    };
    for route in [&old, &other, &new] {
        add(&db, route).await.unwrap();
    }
    assert_eq!(routes(&db).await, [new, other]);
}

async fn a_name_of_another_extension_or_organization_is_taken(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let route = a_route(&ada, "db", "a.example.com");
    add(&db, &route).await.unwrap();
    for other in [a_route(&ada, "cache", "a.example.com"), a_route(&bob, "db", "a.example.com")] {
        assert!(is_taken(&add(&db, &other).await, Unique::Domain));
    }
    assert_eq!(routes(&db).await, [route]);
}

async fn a_name_of_an_application_is_taken(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let web = an_application_of(&ada).at_domain("a.example.com").also_at("b.example.com").build();
    insert(&db, &web).await.unwrap();
    for host in ["a.example.com", "b.example.com"] {
        assert!(is_taken(&add(&db, &a_route(&ada, "db", host)).await, Unique::Domain), "{host}");
    }
    assert_eq!(routes(&db).await, []);
    remove_domain(&db, &web, "a.example.com").await.unwrap();
    add(&db, &a_route(&ada, "db", "a.example.com")).await.unwrap();
    applications::delete(&db, &web, 5).await.unwrap();
    add(&db, &a_route(&ada, "db", "b.example.com")).await.unwrap();
    assert_eq!(hosts(&db).await, ["a.example.com", "b.example.com"]);
}

async fn an_application_cannot_take_a_name_of_an_extension(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    add(&db, &a_route(&ada, "db", "a.example.com")).await.unwrap();
    let new = an_application_of(&ada).named("new").at_domain("a.example.com").build();
    assert!(is_taken(&insert(&db, &new).await, Unique::Domain));
    let further = an_application_of(&ada).named("new").also_at("a.example.com").build();
    assert!(is_taken(&insert(&db, &further).await, Unique::Domain));
    let web = stored(&db, &ada, "web").await;
    assert!(is_taken(&add_domain(&db, &web, "a.example.com").await, Unique::Domain));
    assert!(is_taken(&move_to(&db, &web, Some("a.example.com")).await, Unique::Domain));
    assert_eq!(again(&db, &web).await, web);
    assert_eq!(hosts(&db).await, ["a.example.com"]);
}

async fn a_name_that_leads_nowhere_any_more_is_free(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let route = a_route(&ada, "db", "a.example.com");
    add(&db, &route).await.unwrap();
    remove(&db, &route).await.unwrap();
    assert_eq!(routes(&db).await, []);
    assert!(is_stale(&remove(&db, &route).await));
    let web = an_application_of(&bob).at_domain("a.example.com").build();
    insert(&db, &web).await.unwrap();
    applications::delete(&db, &web, 5).await.unwrap();
    add(&db, &a_route(&bob, "cache", "a.example.com")).await.unwrap();
}

async fn only_a_name_of_the_extension_is_removed(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    let route = a_route(&ada, "db", "a.example.com");
    add(&db, &route).await.unwrap();
    let web = an_application_of(&ada).at_domain("web.example.com").build();
    insert(&db, &web).await.unwrap();
    for (resident, key, host) in [
        (&ada, "cache", "a.example.com"),
        (&bob, "db", "a.example.com"),
        (&ada, "db", "b.example.com"),
        (&ada, "db", "web.example.com"),
    ] {
        assert!(is_stale(&remove(&db, &a_route(resident, key, host)).await), "{key} {host}");
    }
    assert_eq!(routes(&db).await, [route]);
    assert!(db.is_named("web.example.com").await.unwrap());
}

async fn a_container_that_moved_is_found_at_its_new_address(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (route, other) = (a_route(&ada, "db", "a.example.com"), a_route(&ada, "db", "b.example.com"));
    add(&db, &route).await.unwrap();
    add(&db, &other).await.unwrap();
    set_route_address(&db, route.id, 99).await;
    set_route_address(&db, id(), 100).await;
    let moved = ExtensionRoute { address: [10, 0, 0, 99].into(), ..route };
    assert_eq!(routes(&db).await, [moved, other]);
}

async fn who_looked_at_the_old_container_does_not_move_the_new_one(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let old = a_route(&ada, "db", "a.example.com");
    let new = ExtensionRoute { id: id(), container: a_container("new").id, ..old.clone() };
    add(&db, &old).await.unwrap();
    add(&db, &new).await.unwrap();
    set_route_address(&db, old.id, 99).await;
    assert_eq!(routes(&db).await, [new]);
}

async fn a_name_of_an_extension_leads_somewhere_and_to_no_application(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let route = a_route(&ada, "db", "a.example.com");
    add(&db, &route).await.unwrap();
    assert!(db.is_named("a.example.com").await.unwrap());
    assert_eq!(db.named().await.unwrap(), []);
    remove(&db, &route).await.unwrap();
    assert!(!db.is_named("a.example.com").await.unwrap());
}

async fn uninstalling_takes_the_names_of_the_extension_alone(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    for (resident, key, host) in [
        (&ada, "db", "a.example.com"),
        (&ada, "db", "b.example.com"),
        (&ada, "cache", "c.example.com"),
        (&bob, "db", "d.example.com"),
    ] {
        add(&db, &a_route(resident, key, host)).await.unwrap();
    }
    let uninstall = async |key: &str, with_volumes| {
        let write = Write::Uninstall {
            scope: ada.scope(),
            extension: parsed(key),
            subject: Uuid::nil().into(),
            with_volumes,
        };
        quietly(&db, write).await.unwrap();
    };
    uninstall("db", false).await;
    assert_eq!(hosts(&db).await, ["c.example.com", "d.example.com"]);
    uninstall("cache", true).await;
    assert_eq!(hosts(&db).await, ["d.example.com"]);
    assert!(!db.is_named("a.example.com").await.unwrap());
}
