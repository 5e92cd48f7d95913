//! Contract of `PreviewRepository` and its writes.

use launchway_database::{
    Database,
    tables::{SEALED, Tables},
};
use launchway_domain::{
    applications::{Application, Write as ApplicationWrite},
    organizations::Scope,
    previews::{ExpiredPreview, Preview, PreviewRepository as _, PreviewSettings, PreviewState, Write},
    secret::Sealed,
    store::{Rule, StoreError, UnitOfWork as _},
    webhooks::CodeHost,
};
use tokio::task::JoinSet;

use crate::{
    applications::stored,
    builders::{Resident, at, audited, commit, is_stale},
    fresh::Fresh,
};

contract!(
    settings_are_read_as_they_were_stored,
    settings_that_were_changed_meanwhile_are_kept,
    what_is_gone_of_others_or_a_preview_has_no_settings,
    a_preview_is_read_as_it_was_stored,
    a_preview_that_was_changed_meanwhile_is_kept,
    no_more_previews_are_stored_than_the_limit,
    of_two_that_take_the_last_place_one_gets_it,
    the_record_goes_with_its_application,
    expired_previews_and_those_of_deleted_applications_are_found,
    sealed_variables_are_known_to_the_rotation_of_keys,
);

/// An organization with an application.
async fn shop(db: &Database) -> (Resident, Application) {
    let ada = Resident::of(db, "ada").await;
    let shop = stored(db, &ada, "shop").await;
    (ada, shop)
}

fn settings_of(application: &Application, seconds: i64) -> PreviewSettings {
    PreviewSettings {
        application: application.id,
        is_enabled: true,
        limit: 50.try_into().unwrap(),
        lifetime: 2160.try_into().unwrap(),
        shared: vec!["LOG_LEVEL".to_owned(), "A".to_owned()].try_into().unwrap(),
        runs_commands: true,
        build_variables: Sealed("sealed build".to_owned()),
        environment_variables: Sealed("sealed environment".to_owned()),
        updated_at: at(seconds),
    }
}

async fn set(
    db: &Database,
    scope: Scope,
    settings: &PreviewSettings,
    seen: Option<i64>,
) -> Result<(), StoreError> {
    commit(db, Write::SetSettings { scope, settings: settings.clone(), seen: seen.map(at) }).await
}

/// A preview that waits, recorded `seconds` after time zero.
fn preview_of(parent: &Application, number: i64, seconds: i64) -> Preview {
    Preview {
        parent: parent.id,
        number: number.try_into().unwrap(),
        code_host: CodeHost::Forgejo,
        application: None,
        state: PreviewState::Waiting,
        branch: "feature/ä".to_owned(),
        head: "59b20b8d5c6f".parse().ok(),
        is_from_fork: true,
        approved: "a".repeat(40).parse().ok(),
        expires_at: at(1000),
        created_at: at(0),
        updated_at: at(seconds),
    }
}

fn running(preview: Preview, application: &Application) -> Preview {
    Preview { application: Some(application.id), state: PreviewState::Active, ..preview }
}

async fn put(
    db: &Database,
    scope: Scope,
    preview: &Preview,
    seen: Option<i64>,
    most: u16,
) -> Result<(), StoreError> {
    commit(db, Write::Put { scope, preview: preview.clone(), seen: seen.map(at), most }).await
}

async fn delete(db: &Database, scope: Scope, application: &Application) {
    let id = application.id;
    commit(db, ApplicationWrite::Delete { scope, id, at: at(500) }).await.unwrap();
}

fn is_full(outcome: &Result<(), StoreError>) -> bool {
    matches!(outcome, Err(StoreError::Refused(Rule::MostPreviews)))
}

async fn settings_are_read_as_they_were_stored(db: Database) {
    let (ada, shop) = shop(&db).await;
    let other = stored(&db, &ada, "other").await;
    let scope = ada.scope();
    assert_eq!(db.settings(scope, &[shop.id, other.id]).await.unwrap(), []);
    let first = settings_of(&shop, 1);
    set(&db, scope, &first, None).await.unwrap();
    assert_eq!(db.settings(scope, &[shop.id, other.id]).await.unwrap(), [first]);
    let second = PreviewSettings {
        is_enabled: false,
        shared: Default::default(),
        runs_commands: false,
        ..settings_of(&shop, 2)
    };
    set(&db, scope, &second, Some(1)).await.unwrap();
    assert_eq!(db.settings(scope, &[shop.id]).await.unwrap(), [second]);
    assert_eq!(db.settings(scope, &[]).await.unwrap(), []);
}

async fn settings_that_were_changed_meanwhile_are_kept(db: Database) {
    let (ada, shop) = shop(&db).await;
    let (scope, first) = (ada.scope(), settings_of(&shop, 1));
    assert!(is_stale(&set(&db, scope, &first, Some(0)).await));
    set(&db, scope, &first, None).await.unwrap();
    for seen in [None, Some(0), Some(2)] {
        assert!(is_stale(&set(&db, scope, &settings_of(&shop, 3), seen).await), "{seen:?}");
    }
    assert_eq!(db.settings(scope, &[shop.id]).await.unwrap(), [first]);
}

async fn what_is_gone_of_others_or_a_preview_has_no_settings(db: Database) {
    let (ada, shop) = shop(&db).await;
    let grace = Resident::of(&db, "grace").await;
    assert!(is_stale(&set(&db, grace.scope(), &settings_of(&shop, 1), None).await));
    set(&db, ada.scope(), &settings_of(&shop, 1), None).await.unwrap();
    assert_eq!(db.settings(grace.scope(), &[shop.id]).await.unwrap(), []);
    let preview = stored(&db, &ada, "pr-7-shop").await;
    put(&db, ada.scope(), &running(preview_of(&shop, 7, 1), &preview), None, 1).await.unwrap();
    assert!(is_stale(&set(&db, ada.scope(), &settings_of(&preview, 1), None).await));
    delete(&db, ada.scope(), &shop).await;
    assert!(is_stale(&set(&db, ada.scope(), &settings_of(&shop, 2), Some(1)).await));
    assert_eq!(db.settings(ada.scope(), &[shop.id]).await.unwrap(), []);
}

async fn a_preview_is_read_as_it_was_stored(db: Database) {
    let (ada, shop) = shop(&db).await;
    let other = stored(&db, &ada, "other").await;
    let (scope, grace) = (ada.scope(), Resident::of(&db, "grace").await);
    let waiting = preview_of(&shop, 7, 1);
    put(&db, scope, &waiting, None, 1).await.unwrap();
    let number = waiting.number;
    let found = db.of_request(scope, &[other.id, shop.id], number).await.unwrap();
    assert_eq!(found, std::slice::from_ref(&waiting));
    assert_eq!(db.of_request(scope, &[shop.id], 8.try_into().unwrap()).await.unwrap(), []);
    assert_eq!(db.of_request(grace.scope(), &[shop.id], number).await.unwrap(), []);
    let [summary] = &db.of_application(scope, shop.id).await.unwrap()[..] else { panic!("one") };
    assert_eq!((&summary.preview, &summary.application), (&waiting, &None));

    let application = stored(&db, &ada, "pr-7-shop").await;
    assert!(!db.is_preview(scope, application.id).await.unwrap());
    let active = Preview { head: None, approved: None, updated_at: at(2), ..running(waiting, &application) };
    put(&db, scope, &active, Some(1), 1).await.unwrap();
    let [summary] = &db.of_application(scope, shop.id).await.unwrap()[..] else { panic!("one") };
    assert_eq!((&summary.preview, &summary.application), (&active, &Some(application.clone())));
    assert!(db.is_preview(scope, application.id).await.unwrap());
    assert!(!db.is_preview(scope, shop.id).await.unwrap());
    assert!(!db.is_preview(grace.scope(), application.id).await.unwrap());
    assert!(db.of_application(grace.scope(), shop.id).await.unwrap().is_empty());

    // One that was closed is known, but not listed.
    let closed = Preview { application: None, state: PreviewState::Closed, updated_at: at(3), ..active };
    put(&db, scope, &closed, Some(2), 1).await.unwrap();
    assert_eq!(db.of_request(scope, &[shop.id], number).await.unwrap(), [closed]);
    assert!(db.of_application(scope, shop.id).await.unwrap().is_empty());
}

async fn a_preview_that_was_changed_meanwhile_is_kept(db: Database) {
    let (ada, shop) = shop(&db).await;
    let (scope, grace) = (ada.scope(), Resident::of(&db, "grace").await);
    let first = preview_of(&shop, 7, 1);
    assert!(is_stale(&put(&db, scope, &first, Some(0), 9).await));
    assert!(is_stale(&put(&db, grace.scope(), &first, None, 9).await));
    put(&db, scope, &first, None, 9).await.unwrap();
    for seen in [None, Some(0), Some(2)] {
        assert!(is_stale(&put(&db, scope, &preview_of(&shop, 7, 3), seen, 9).await), "{seen:?}");
    }
    let remove = |seen| Write::Remove { parent: shop.id, number: first.number, seen: at(seen) };
    assert!(is_stale(&db.commit(vec![remove(2).into()]).await));
    let found = db.of_request(scope, &[shop.id], first.number).await.unwrap();
    assert_eq!(found, std::slice::from_ref(&first));
    db.commit(vec![remove(1).into()]).await.unwrap();
    assert_eq!(db.of_request(scope, &[shop.id], first.number).await.unwrap(), []);
    delete(&db, scope, &shop).await;
    assert!(is_stale(&put(&db, scope, &first, None, 9).await));
}

async fn no_more_previews_are_stored_than_the_limit(db: Database) {
    let (ada, shop) = shop(&db).await;
    let (scope, other) = (ada.scope(), stored(&db, &ada, "other").await);
    put(&db, scope, &preview_of(&shop, 1, 1), None, 2).await.unwrap();
    put(&db, scope, &preview_of(&shop, 2, 1), None, 2).await.unwrap();
    assert!(is_full(&put(&db, scope, &preview_of(&shop, 3, 1), None, 2).await));
    // Neither its own record counts, nor one in another state or of another application.
    put(&db, scope, &preview_of(&shop, 2, 2), Some(1), 2).await.unwrap();
    put(&db, scope, &preview_of(&other, 3, 1), None, 1).await.unwrap();
    let application = stored(&db, &ada, "pr-3-shop").await;
    put(&db, scope, &running(preview_of(&shop, 3, 1), &application), None, 1).await.unwrap();
    let another = stored(&db, &ada, "pr-4-shop").await;
    assert!(is_full(&put(&db, scope, &running(preview_of(&shop, 4, 1), &another), None, 1).await));
    put(&db, scope, &running(preview_of(&shop, 4, 1), &another), None, 2).await.unwrap();
}

async fn of_two_that_take_the_last_place_one_gets_it(db: Database) {
    let (ada, shop) = shop(&db).await;
    let mut both = JoinSet::new();
    for number in [1, 2] {
        let (db, scope, preview) = (db.clone(), ada.scope(), preview_of(&shop, number, 1));
        both.spawn(async move { put(&db, scope, &preview, None, 1).await });
    }
    let outcomes = both.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| is_full(outcome)).count(), 1, "{outcomes:?}");
}

async fn the_record_goes_with_its_application(db: Database) {
    let (ada, shop) = shop(&db).await;
    let (scope, application) = (ada.scope(), stored(&db, &ada, "pr-7-shop").await);
    let active = running(preview_of(&shop, 7, 1), &application);
    put(&db, scope, &active, None, 1).await.unwrap();
    // In one unit, as for a request that is closed.
    let closed = Preview { application: None, state: PreviewState::Closed, updated_at: at(2), ..active };
    let writes = vec![
        ApplicationWrite::Delete { scope, id: application.id, at: at(2) }.into(),
        Write::Put { scope, preview: closed.clone(), seen: None, most: 1 }.into(),
    ];
    db.commit(audited(writes)).await.unwrap();
    assert_eq!(db.of_request(scope, &[shop.id], closed.number).await.unwrap(), [closed]);
}

async fn expired_previews_and_those_of_deleted_applications_are_found(db: Database) {
    let (ada, shop) = shop(&db).await;
    let (scope, gone) = (ada.scope(), stored(&db, &ada, "gone").await);
    let first = preview_of(&shop, 1, 1);
    let later = Preview { expires_at: at(1001), ..preview_of(&shop, 2, 1) };
    for preview in [&first, &later, &preview_of(&gone, 1, 1)] {
        put(&db, scope, preview, None, 9).await.unwrap();
    }
    assert_eq!(db.expired(at(999)).await.unwrap(), []);
    let expired =
        |preview: &Preview| ExpiredPreview { organization: ada.organization.id, preview: preview.clone() };
    assert_eq!(db.expired(at(1000)).await.unwrap().len(), 2);
    delete(&db, scope, &gone).await;
    assert_eq!(db.expired(at(0)).await.unwrap(), [expired(&preview_of(&gone, 1, 1))]);
    let mut all = db.expired(at(1001)).await.unwrap();
    all.sort_by_key(|one| (one.preview.parent, one.preview.number));
    let mut expected = [expired(&first), expired(&later), expired(&preview_of(&gone, 1, 1))];
    expected.sort_by_key(|one| (one.preview.parent, one.preview.number));
    assert_eq!(all, expected);
}

async fn sealed_variables_are_known_to_the_rotation_of_keys(fresh: &Fresh) {
    let (ada, shop) = shop(&fresh.database).await;
    set(&fresh.database, ada.scope(), &settings_of(&shop, 1), None).await.unwrap();
    let mut tables = Tables::to_change(&fresh.url()).unwrap();
    let mut places = Vec::new();
    for column in SEALED.iter().filter(|column| column.table == "preview_settings") {
        let changed = tables.change_sealed(column, |place, _| {
            places.push(place.to_owned());
            Ok(None)
        });
        assert_eq!(changed.unwrap(), (1, 0));
    }
    let place = |column| PreviewSettings::associated_data(shop.id, column);
    assert_eq!(places, ["build_variables", "environment_variables"].map(place));
}
