//! Pages of extensions.

use launchway_database::Database;
use launchway_domain::{
    extensions::{Category, Extension, ExtensionFilter, ExtensionKind, ExtensionRepository},
    organizations::Scope,
    page::Page,
};
use launchway_testkit::builders::{ExtensionBuilder, a_page, an_extension};

use super::{a_fork, delete, publish, withdraw_all_but};
use crate::builders::Resident;

contract!(
    extensions_come_by_name_whatever_its_case_and_ties_by_key,
    pages_divide_the_extensions_and_count_them,
    extensions_of_a_page_have_their_own_variables_in_order,
    a_page_shows_the_catalog_and_the_forks_of_the_organization,
    a_filter_picks_the_category_and_the_kind,
    search_covers_key_name_description_and_author,
    nothing_in_a_search_has_a_meaning_of_its_own,
);

async fn page(
    db: &Database,
    scope: Scope,
    filter: &ExtensionFilter,
    (number, size): (i64, i64),
) -> Page<Extension> {
    ExtensionRepository::page(db, scope, filter, a_page(number, size)).await.unwrap()
}

async fn found(db: &Database, scope: Scope, filter: &ExtensionFilter) -> Vec<String> {
    let page = page(db, scope, filter, (1, 100)).await;
    assert_eq!(page.total, page.items.len() as i64);
    page.items.into_iter().map(|extension| extension.key.into()).collect()
}

async fn publish_all(db: &Database, entries: impl IntoIterator<Item = ExtensionBuilder>) {
    for entry in entries {
        publish(db, &entry.build()).await.unwrap();
    }
}

async fn extensions_come_by_name_whatever_its_case_and_ties_by_key(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let entry = |key: &str, name: &str| an_extension().keyed(key).named(name);
    let entries = [
        entry("e", "zebra"),
        entry("d", "Ähre"),
        entry("b", "beta"),
        entry("c-2", "Alpha"),
        entry("c-10", "alpha"),
        entry("a", "Beta 2"),
    ];
    publish_all(&db, entries).await;
    let keys = found(&db, ada.scope(), &ExtensionFilter::default()).await;
    assert_eq!(keys, ["c-10", "c-2", "b", "a", "e", "d"]);
}

async fn pages_divide_the_extensions_and_count_them(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    publish_all(&db, (1..=7).map(|number| an_extension().keyed(&format!("e{number}")))).await;
    let mut walked = Vec::new();
    for number in 1..=4 {
        let page = page(&db, ada.scope(), &ExtensionFilter::default(), (number, 3)).await;
        assert_eq!((page.total, page.request.number()), (7, number));
        walked.extend(page.items.into_iter().map(|extension| extension.key.to_string()));
    }
    assert_eq!(walked, (1..=7).map(|number| format!("e{number}")).collect::<Vec<_>>());
    let beyond = page(&db, ada.scope(), &ExtensionFilter::default(), (i64::MAX, 100)).await;
    assert_eq!((beyond.items, beyond.total), (vec![], 7));
}

async fn extensions_of_a_page_have_their_own_variables_in_order(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let entries = [
        an_extension().keyed("a").asking_for("z").asking_for("a").asking_for("m").build(),
        an_extension().keyed("b").build(),
        an_extension().keyed("c").asking_for("a").build(),
    ];
    for entry in &entries {
        publish(&db, entry).await.unwrap();
    }
    let page = page(&db, ada.scope(), &ExtensionFilter::default(), (1, 10)).await;
    assert_eq!(page.items, entries);
}

async fn a_page_shows_the_catalog_and_the_forks_of_the_organization(db: Database) {
    let (ada, bob) = (Resident::of(&db, "ada").await, Resident::of(&db, "bob").await);
    publish_all(&db, [an_extension(), an_extension().keyed("old")]).await;
    for (resident, key) in [(&ada, "fork-a"), (&ada, "fork-gone"), (&bob, "fork-b")] {
        a_fork(&db, resident, key).await;
    }
    delete(&db, ada.scope(), &"fork-gone".parse().unwrap(), 2).await.unwrap();
    withdraw_all_but(&db, &["hello-note"], 3).await;
    assert_eq!(found(&db, ada.scope(), &ExtensionFilter::default()).await, ["fork-a", "hello-note"]);
    assert_eq!(found(&db, bob.scope(), &ExtensionFilter::default()).await, ["fork-b", "hello-note"]);
}

async fn a_filter_picks_the_category_and_the_kind(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let entries = [
        an_extension().keyed("a").about(Category::WebServer).of_kind(ExtensionKind::Install),
        an_extension().keyed("b").about(Category::WebServer).of_kind(ExtensionKind::Run),
        an_extension().keyed("c").about(Category::Database).of_kind(ExtensionKind::Install),
    ];
    publish_all(&db, entries).await;
    let pick = async |category, kind| {
        found(&db, ada.scope(), &ExtensionFilter { search: None, category, kind }).await
    };
    assert_eq!(pick(Some(Category::WebServer), None).await, ["a", "b"]);
    assert_eq!(pick(None, Some(ExtensionKind::Install)).await, ["a", "c"]);
    assert_eq!(pick(Some(Category::WebServer), Some(ExtensionKind::Run)).await, ["b"]);
    assert_eq!(pick(Some(Category::Game), None).await, [""; 0]);
}

async fn searched(db: &Database, scope: Scope, search: &str) -> Vec<String> {
    found(db, scope, &ExtensionFilter { search: Some(search.to_owned()), ..ExtensionFilter::default() }).await
}

async fn search_covers_key_name_description_and_author(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let entries = [
        an_extension().keyed("k-redis").named("First").described("One").written_by("ann"),
        an_extension().keyed("b").named("Zweite ÄHRE").described("Two\nlines").written_by("Öl"),
    ];
    publish_all(&db, entries).await;
    for search in ["REDIS", "first", "oNE", "Ann", "k-"] {
        assert_eq!(searched(&db, ada.scope(), search).await, ["k-redis"], "{search}");
    }
    for search in ["ähre", "Zweite Ä", "ÖL", "two\nLines"] {
        assert_eq!(searched(&db, ada.scope(), search).await, ["b"], "{search}");
    }
    for search in ["utility", "1.0.0", "firstone", "redisfirst", "redis\nfirst", "redis\u{1f}first"] {
        assert_eq!(searched(&db, ada.scope(), search).await, [""; 0], "{search:?}");
    }
    assert_eq!(searched(&db, ada.scope(), "").await.len(), 2);
}

async fn nothing_in_a_search_has_a_meaning_of_its_own(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let entries = [
        an_extension().keyed("plain").described("100 of a_b"),
        an_extension().keyed("odd").named("Odd").described("100% \\ it's"),
    ];
    publish_all(&db, entries).await;
    for (search, expected) in [("100%", "odd"), ("\\", "odd"), ("it's", "odd"), ("a_b", "plain")] {
        assert_eq!(searched(&db, ada.scope(), search).await, [expected], "{search}");
    }
    for search in ["%", "_"] {
        assert_eq!(searched(&db, ada.scope(), search).await.len(), 1, "{search}");
    }
    assert_eq!(searched(&db, ada.scope(), "1\0").await, [""; 0]);
}
