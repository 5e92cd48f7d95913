//! Pages of applications.

use launchway_database::Database;
use launchway_domain::{
    applications::{
        Application, ApplicationFilter, ApplicationRepository, ApplicationState, ApplicationSummary, Progress,
    },
    organizations::Scope,
    page::Page,
};
use launchway_testkit::builders::{a_page, parsed};

use super::{
    an_application_of,
    domains::{add, remove},
    insert,
};
use crate::builders::{Resident, at, id};

contract!(
    applications_come_newest_first_and_ties_by_id,
    pages_divide_the_applications_and_count_them,
    a_page_shows_whose_the_applications_are,
    a_page_shows_no_applications_of_others,
    a_filter_picks_the_environment_and_the_state,
    search_covers_name_repository_and_domains_ignoring_case,
    nothing_in_a_search_has_a_meaning_of_its_own,
);

async fn page(
    db: &Database,
    scope: Scope,
    filter: &ApplicationFilter,
    (number, size): (i64, i64),
) -> Page<ApplicationSummary> {
    ApplicationRepository::page(db, scope, filter, a_page(number, size)).await.unwrap()
}

async fn found(db: &Database, scope: Scope, filter: &ApplicationFilter) -> Vec<String> {
    let page = page(db, scope, filter, (1, 100)).await;
    assert_eq!(page.total, page.items.len() as i64);
    page.items.into_iter().map(|item| item.application.blueprint.name.into()).collect()
}

/// Returns the names of all applications of an organization.
pub(super) async fn names(db: &Database, scope: Scope) -> Vec<String> {
    found(db, scope, &ApplicationFilter::default()).await
}

async fn applications_come_newest_first_and_ties_by_id(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    for (name, seconds) in [("old", 1), ("new", 9), ("tied1", 5), ("tied2", 5)] {
        let application = an_application_of(&ada).named(name).created_at(at(seconds)).build();
        insert(&db, &Application { id: id(), ..application }).await.unwrap();
    }
    assert_eq!(names(&db, ada.scope()).await, ["new", "tied2", "tied1", "old"]);
}

async fn pages_divide_the_applications_and_count_them(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    for number in 1..=7 {
        let application = an_application_of(&ada).named(&format!("web{number}")).created_at(at(number));
        insert(&db, &application.build()).await.unwrap();
    }
    let all = names(&db, ada.scope()).await;
    let mut walked = Vec::new();
    for number in 1..=4 {
        let page = page(&db, ada.scope(), &ApplicationFilter::default(), (number, 3)).await;
        assert_eq!((page.total, page.request.number()), (7, number));
        walked.extend(page.items.into_iter().map(|item| String::from(item.application.blueprint.name)));
    }
    assert_eq!(walked, all);
    let beyond = page(&db, ada.scope(), &ApplicationFilter::default(), (i64::MAX, 100)).await;
    assert_eq!((beyond.items, beyond.total), (vec![], 7));
}

async fn a_page_shows_whose_the_applications_are(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let summary = an_application_of(&ada).summary();
    insert(&db, &summary.application).await.unwrap();
    let page = page(&db, ada.scope(), &ApplicationFilter::default(), (1, 10)).await;
    assert_eq!(page.items, [summary]);
}

async fn a_page_shows_no_applications_of_others(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    insert(&db, &an_application_of(&bob).build()).await.unwrap();
    assert_eq!(names(&db, ada.scope()).await, [""; 0]);
    assert_eq!(names(&db, bob.scope()).await, ["web"]);
}

async fn a_filter_picks_the_environment_and_the_state(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let cloning = ApplicationState::InProgress(Progress::Cloning);
    for (name, environment, state) in [
        ("a", "production", ApplicationState::Failed),
        ("b", "production", cloning),
        ("c", "staging", ApplicationState::Failed),
    ] {
        let application = an_application_of(&ada).named(name).in_environment(environment).in_state(state);
        insert(&db, &application.build()).await.unwrap();
    }
    let production = ApplicationFilter { environment: Some(parsed("production")), ..Default::default() };
    let mut both = found(&db, ada.scope(), &production).await;
    both.sort();
    assert_eq!(both, ["a", "b"]);
    for (state, expected) in [(ApplicationState::Failed, vec!["a"]), (cloning, vec!["b"])] {
        let filter = ApplicationFilter { state: Some(state), ..production.clone() };
        assert_eq!(found(&db, ada.scope(), &filter).await, expected);
    }
    let none = ApplicationFilter { state: Some(ApplicationState::Running), ..Default::default() };
    assert_eq!(found(&db, ada.scope(), &none).await, [""; 0]);
}

/// Returns the names of the applications that a search finds.
pub(crate) async fn searched(db: &Database, scope: Scope, search: &str) -> Vec<String> {
    found(db, scope, &ApplicationFilter { search: Some(search.to_owned()), ..Default::default() }).await
}

async fn search_covers_name_repository_and_domains_ignoring_case(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let application = an_application_of(&ada)
        .named("Shop Front")
        .from_git("/srv/git/Team/Läden.git")
        .at_domain("kasse.example.com")
        .also_at("till.example.com");
    insert(&db, &application.clone().build()).await.unwrap();
    insert(&db, &an_application_of(&ada).named("other").build()).await.unwrap();
    for search in ["shop fr", "SHOP", "/SRV/GIT", "team/", "LÄDEN", "kasse.EXAMPLE", "TILL.ex"] {
        assert_eq!(searched(&db, ada.scope(), search).await, ["Shop Front"], "{search}");
    }
    let application = application.build();
    add(&db, &application, "caisse.example.com").await.unwrap();
    assert_eq!(searched(&db, ada.scope(), "caisse").await, ["Shop Front"]);
    remove(&db, &application, "till.example.com").await.unwrap();
    assert_eq!(searched(&db, ada.scope(), "till").await, [""; 0]);
    for search in ["main", "production", "front\nhttps", "a\0b", "shops"] {
        assert_eq!(searched(&db, ada.scope(), search).await, [""; 0], "{search:?}");
    }
}

async fn nothing_in_a_search_has_a_meaning_of_its_own(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    insert(&db, &an_application_of(&ada).named("a_b").build()).await.unwrap();
    insert(&db, &an_application_of(&ada).named("acb").build()).await.unwrap();
    assert_eq!(searched(&db, ada.scope(), "a_b").await, ["a_b"]);
    for search in ["a%b", "%", "\\", "a\\_b"] {
        assert_eq!(searched(&db, ada.scope(), search).await, [""; 0], "{search}");
    }
}
