//! Contract of `AuditRepository::page`.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use launchway_database::Database;
use launchway_domain::{
    audit::{Action, AuditRepository as _, Chain, Entry, Filter, Resource, Write},
    ids::OrganizationId,
    organizations::Scope,
    page::{Page, PageRequest},
    store::UnitOfWork as _,
};

use crate::builders::{an_entry, at, id};

contract!(
    an_audit_log_without_entries_has_one_empty_page,
    entries_come_newest_first_with_the_number_of_all,
    every_page_has_its_entries_the_last_one_too,
    a_page_behind_the_last_is_empty,
    the_audit_logs_of_others_are_not_shown,
    each_filter_shows_what_passes_it,
    filters_together_show_what_passes_all,
    a_filtered_list_has_pages_too,
    a_stretch_of_time_holds_both_its_ends,
    search_covers_each_text_of_an_entry_separately,
    a_search_takes_every_character_for_itself,
    case_does_not_matter_in_any_script,
    the_name_of_an_actor_is_compared_as_a_whole,
    what_no_text_can_hold_is_found_nowhere,
);

/// An organization with audit entries.
struct AuditLog {
    chain: OrganizationId,
    db: Database,
}

impl AuditLog {
    /// Appends entries one second apart, each changed by one of `changes`, with its index as the message.
    async fn of(db: &Database, changes: &[&dyn Fn(&mut Entry)]) -> Self {
        let chain = id();
        let mut writes = Vec::new();
        for (number, change) in (1..).zip(changes) {
            let mut entry = an_entry(Chain::Organization(chain));
            entry.message = number.to_string();
            entry.at = at(number);
            change(&mut entry);
            writes.push(Write::Append(entry).into());
        }
        db.commit(writes).await.unwrap();
        Self { chain, db: db.clone() }
    }

    async fn of_length(db: &Database, length: usize) -> Self {
        let unchanged: &dyn Fn(&mut Entry) = &|_| ();
        Self::of(db, &vec![unchanged; length]).await
    }

    async fn saying(db: &Database, messages: &[&str]) -> Self {
        let changes: Vec<_> = messages
            .iter()
            .map(|text| move |entry: &mut Entry| (*text).clone_into(&mut entry.message))
            .collect();
        let changes: Vec<&dyn Fn(&mut Entry)> = changes.iter().map(|change| change as _).collect();
        Self::of(db, &changes).await
    }

    async fn page(&self, filter: &Filter, number: i64, size: i64) -> Page<Entry> {
        let request = PageRequest::new(number, size, 100).unwrap();
        let page = self.db.page(Scope::of_record(self.chain), filter, request).await.unwrap();
        assert_eq!(page.request, request);
        page
    }

    /// Returns the messages of a page, and the total number.
    async fn messages(&self, filter: &Filter, number: i64, size: i64) -> (Vec<String>, i64) {
        let page = self.page(filter, number, size).await;
        (page.items.into_iter().map(|entry| entry.message).collect(), page.total)
    }

    /// Returns the messages of all entries that pass the filter, newest first.
    async fn passing(&self, filter: &Filter) -> Vec<String> {
        let (messages, total) = self.messages(filter, 1, 100).await;
        assert_eq!(messages.len() as i64, total);
        messages
    }

    async fn found(&self, search: &str) -> Vec<String> {
        self.passing(&Filter { search: Some(search.to_owned()), ..Filter::default() }).await
    }
}

fn everything() -> Filter {
    Filter::default()
}

async fn an_audit_log_without_entries_has_one_empty_page(db: Database) {
    let log = AuditLog::of_length(&db, 0).await;
    assert_eq!(log.messages(&everything(), 1, 10).await, (vec![], 0));
    assert_eq!(log.messages(&everything(), 7, 10).await, (vec![], 0));
    assert_eq!(log.found("a").await, [""; 0]);
}

async fn entries_come_newest_first_with_the_number_of_all(db: Database) {
    let log = AuditLog::of_length(&db, 3).await;
    let page = log.page(&everything(), 1, 10).await;
    let mut links = db.links(Chain::Organization(log.chain), 0, 10).await.unwrap();
    links.reverse();
    assert_eq!(page.items, links.into_iter().map(|link| link.entry).collect::<Vec<_>>());
    assert_eq!(page.total, 3);
}

async fn every_page_has_its_entries_the_last_one_too(db: Database) {
    let log = AuditLog::of_length(&db, 25).await;
    let pages = [(1, ["25", "24", "23", "22"].as_slice()), (6, &["5", "4", "3", "2"]), (7, &["1"])];
    for (number, expected) in pages {
        let (messages, total) = log.messages(&everything(), number, 4).await;
        assert_eq!(messages, expected, "page {number}");
        assert_eq!(total, 25);
    }
    // With a filter that everything passes, the pages are the same.
    for (number, expected) in pages {
        let filter = Filter { actor: Some("ada".to_owned()), ..everything() };
        let (messages, total) = log.messages(&filter, number, 4).await;
        assert_eq!(messages, expected, "page {number}");
        assert_eq!(total, 25);
    }
}

async fn a_page_behind_the_last_is_empty(db: Database) {
    let log = AuditLog::of_length(&db, 3).await;
    let filtered = Filter { actor: Some("ada".to_owned()), ..everything() };
    let since = Filter { from: Some(at(2)), ..everything() };
    for number in [4, 100, i64::MAX] {
        for (filter, total) in [(&everything(), 3), (&filtered, 3), (&since, 2)] {
            assert_eq!(log.messages(filter, number, 1).await, (vec![], total));
            assert_eq!(log.messages(filter, number, 100).await, (vec![], total));
        }
    }
}

async fn the_audit_logs_of_others_are_not_shown(db: Database) {
    let (one, other) = (AuditLog::of_length(&db, 2).await, AuditLog::of_length(&db, 3).await);
    let installation = Write::Append(an_entry(Chain::Installation));
    db.commit(vec![installation.into()]).await.unwrap();
    for filter in [everything(), Filter { actor: Some("ada".to_owned()), ..everything() }] {
        assert_eq!(one.passing(&filter).await, ["2", "1"]);
        assert_eq!(other.passing(&filter).await, ["3", "2", "1"]);
    }
}

async fn each_filter_shows_what_passes_it(db: Database) {
    let log = AuditLog::of(
        &db,
        &[
            &|entry| entry.action = Action::Create,
            &|entry| entry.resource = Resource::Token,
            &|entry| entry.actor = "grace".to_owned(),
            &|entry| entry.message = "4: rolled back".to_owned(),
            &|_| (),
        ],
    )
    .await;
    for (filter, expected) in [
        (Filter { action: Some(Action::Create), ..everything() }, ["1"].as_slice()),
        (Filter { action: Some(Action::Access), ..everything() }, &[]),
        (Filter { resource: Some(Resource::Token), ..everything() }, &["2"]),
        (Filter { actor: Some("grace".to_owned()), ..everything() }, &["3"]),
        (Filter { search: Some("rolled".to_owned()), ..everything() }, &["4: rolled back"]),
        (Filter { from: Some(at(5)), ..everything() }, &["5"]),
        (Filter { from: Some(at(6)), ..everything() }, &[]),
        (Filter { to: Some(at(1)), ..everything() }, &["1"]),
        (Filter { to: Some(at(0)), ..everything() }, &[]),
    ] {
        assert_eq!(log.passing(&filter).await, expected, "{filter:?}");
    }
}

async fn filters_together_show_what_passes_all(db: Database) {
    let passing = |entry: &mut Entry| {
        entry.action = Action::Delete;
        entry.resource = Resource::Webhook;
        entry.actor = "Grace".to_owned();
        entry.resource_id = "hook-7".to_owned();
    };
    let log = AuditLog::of(
        &db,
        &[
            &passing,
            &passing,
            &|entry| (passing(entry), entry.action = Action::Create).1,
            &|entry| (passing(entry), entry.resource = Resource::Token).1,
            &|entry| (passing(entry), entry.actor = "ada".to_owned()).1,
            &|entry| (passing(entry), entry.resource_id = "hook-8".to_owned()).1,
            &passing,
            &passing,
        ],
    )
    .await;
    let mut filter = Filter {
        search: Some("HOOK-7".to_owned()),
        resource: Some(Resource::Webhook),
        action: Some(Action::Delete),
        actor: Some("grace".to_owned()),
        from: Some(at(2)),
        to: Some(at(7)),
    };
    assert_eq!(log.passing(&filter).await, ["7", "2"]);
    filter.from = None;
    assert_eq!(log.passing(&filter).await, ["7", "2", "1"]);
    filter.to = None;
    assert_eq!(log.passing(&filter).await, ["8", "7", "2", "1"]);
    filter.search = None;
    assert_eq!(log.passing(&filter).await, ["8", "7", "6", "2", "1"]);
    filter.to = Some(at(1));
    filter.from = Some(at(2));
    assert_eq!(log.passing(&filter).await, [""; 0]);
}

async fn a_filtered_list_has_pages_too(db: Database) {
    let odd: &dyn Fn(&mut Entry) = &|entry| entry.action = Action::Create;
    let even: &dyn Fn(&mut Entry) = &|entry| entry.action = Action::Delete;
    let log = AuditLog::of(&db, &[odd, even].repeat(5)).await;
    let deleted = Filter { action: Some(Action::Delete), ..everything() };
    assert_eq!(log.messages(&deleted, 1, 2).await, (vec!["10".to_owned(), "8".to_owned()], 5));
    assert_eq!(log.messages(&deleted, 3, 2).await, (vec!["2".to_owned()], 5));
    let meanwhile = Filter { from: Some(at(3)), to: Some(at(8)), ..everything() };
    assert_eq!(log.messages(&meanwhile, 1, 4).await, (["8", "7", "6", "5"].map(str::to_owned).into(), 6));
    assert_eq!(log.messages(&meanwhile, 2, 4).await, (["4", "3"].map(str::to_owned).into(), 6));
}

async fn a_stretch_of_time_holds_both_its_ends(db: Database) {
    let log = AuditLog::of_length(&db, 5).await;
    let moment = TimeDelta::microseconds(1);
    let mut filter = Filter { from: Some(at(2)), to: Some(at(4)), ..everything() };
    assert_eq!(log.passing(&filter).await, ["4", "3", "2"]);
    filter = Filter { from: Some(at(2) + moment), to: Some(at(4) - moment), ..filter };
    assert_eq!(log.passing(&filter).await, ["3"]);
    filter = Filter { from: Some(at(4)), to: Some(at(2)), ..filter };
    assert_eq!(log.passing(&filter).await, [""; 0]);
    filter = Filter { actor: Some("ada".to_owned()), ..filter };
    assert_eq!(log.passing(&filter).await, [""; 0]);
    filter = Filter { from: Some(at(3)), to: Some(at(3)), ..filter };
    assert_eq!(log.passing(&filter).await, ["3"]);
}

async fn search_covers_each_text_of_an_entry_separately(db: Database) {
    let noted = |value: &str| BTreeMap::from([("name".to_owned(), value.to_owned())]);
    let log = AuditLog::of(
        &db,
        &[
            &|entry| entry.message = "1 needle".to_owned(),
            &|entry| entry.actor = "Needleman".to_owned(),
            &|entry| entry.resource_id = "the-needle".to_owned(),
            &|entry| entry.metadata = noted("a needle in the hay"),
            &|entry| entry.resource = Resource::SmtpConfig,
            &|entry| (entry.actor = "nee".to_owned(), entry.resource_id = "dle".to_owned()).1,
        ],
    )
    .await;
    assert_eq!(log.found("needle").await, ["4", "3", "2", "1 needle"]);
    assert_eq!(log.found("smtp_config").await, ["5"]);
    assert_eq!(log.found("hayfever").await, [""; 0]);
    assert_eq!(log.found("").await.len(), 6);
}

async fn a_search_takes_every_character_for_itself(db: Database) {
    let texts = ["100%", "100x", r"a\b", "a_b", "axb", "a%b", "[a-c]", "'; --"];
    let log = AuditLog::saying(&db, &texts).await;
    for (search, expected) in [
        ("100%", ["100%"].as_slice()),
        ("%", &["a%b", "100%"]),
        ("_b", &["a_b"]),
        ("a_b", &["a_b"]),
        (r"\", &[r"a\b"]),
        (r"\%", &[]),
        (r"a\b", &[r"a\b"]),
        ("[a-c]", &["[a-c]"]),
        ("'; --", &["'; --"]),
    ] {
        assert_eq!(log.found(search).await, expected, "{search}");
    }
}

async fn case_does_not_matter_in_any_script(db: Database) {
    let texts = ["Müller", "MÜLLER", "ΟΔΟΣΑ", "Straße", "İstanbul"];
    let log = AuditLog::saying(&db, &texts).await;
    assert_eq!(log.found("müLLer").await, ["MÜLLER", "Müller"]);
    assert_eq!(log.found("οδοσ").await, ["ΟΔΟΣΑ"]);
    assert_eq!(log.found("ΟΔΟΣ").await, ["ΟΔΟΣΑ"]);
    assert_eq!(log.found("STRAßE").await, ["Straße"]);
    assert_eq!(log.found("İSTANBUL").await, ["İstanbul"]);

    let named: &dyn Fn(&mut Entry) = &|entry| entry.actor = "JÜRGEN".to_owned();
    let log = AuditLog::of(&db, &[named]).await;
    for actor in ["jürgen", "Jürgen", "JÜRGEN"] {
        assert_eq!(log.passing(&Filter { actor: Some(actor.to_owned()), ..everything() }).await, ["1"]);
    }
}

async fn the_name_of_an_actor_is_compared_as_a_whole(db: Database) {
    let log = AuditLog::of(
        &db,
        &[
            &|entry| entry.actor = "ada".to_owned(),
            &|entry| entry.actor = "adam".to_owned(),
            &|entry| entry.actor = "a_a".to_owned(),
            &|entry| entry.actor = "ADA".to_owned(),
        ],
    )
    .await;
    for (actor, expected) in [("Ada", ["4", "1"].as_slice()), ("a_a", &["3"]), ("ad", &[]), ("", &[])] {
        let filter = Filter { actor: Some(actor.to_owned()), ..everything() };
        assert_eq!(log.passing(&filter).await, expected, "{actor}");
    }
}

async fn what_no_text_can_hold_is_found_nowhere(db: Database) {
    let log = AuditLog::of_length(&db, 2).await;
    assert_eq!(log.found("\0").await, [""; 0]);
    let filter = Filter { actor: Some("ada\0".to_owned()), ..everything() };
    assert_eq!(log.passing(&filter).await, [""; 0]);
}
