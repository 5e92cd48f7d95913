//! Contract of `users::Write::ChangeSettings`.

use launchway_database::Database;
use launchway_domain::{
    ids::{SettingsId, UserId},
    store::StoreError,
    users::{Settings, SettingsChange, UserRepository as _, Write},
};
use tokio::task::JoinSet;

use crate::builders::{Resident, at, commit, id};

contract!(
    the_first_change_makes_the_row_with_defaults,
    a_change_leaves_alone_what_it_does_not_name,
    no_change_only_makes_the_row,
    of_two_changes_to_the_same_setting_the_last_counts,
    changes_at_the_same_time_lose_nothing,
    settings_need_a_user,
);

fn change(user_id: UserId, new_id: SettingsId, seconds: i64, changes: Vec<SettingsChange>) -> Write {
    Write::ChangeSettings { user_id, new_id, changes, at: at(seconds) }
}

fn theme(name: &str) -> SettingsChange {
    SettingsChange::Theme(name.parse().unwrap())
}

async fn stored(db: &Database, user_id: UserId) -> Option<Settings> {
    db.profile(user_id).await.unwrap().unwrap().settings
}

async fn the_first_change_makes_the_row_with_defaults(db: Database) {
    let ada = Resident::of(&db, "ada").await.user.id;
    let new_id = id();
    commit(&db, change(ada, new_id, 3, vec![theme("dark")])).await.unwrap();
    assert_eq!(stored(&db, ada).await, Some(Settings::defaults(new_id, ada, at(3)).with(theme("dark"))));
}

async fn a_change_leaves_alone_what_it_does_not_name(db: Database) {
    let ada = Resident::of(&db, "ada").await.user.id;
    let new_id = id();
    let all = vec![
        theme("dark"),
        SettingsChange::AutoUpdate(false),
        SettingsChange::FontFamily("IBM Plex".parse().unwrap()),
        SettingsChange::FontSize(20.try_into().unwrap()),
        SettingsChange::Language("pt-BR".parse().unwrap()),
    ];
    commit(&db, change(ada, new_id, 3, all.clone())).await.unwrap();
    let mut expected = all.into_iter().fold(Settings::defaults(new_id, ada, at(3)), Settings::with);
    assert_eq!(stored(&db, ada).await.as_ref(), Some(&expected));

    commit(&db, change(ada, id(), 4, vec![SettingsChange::AutoUpdate(true)])).await.unwrap();
    expected = Settings { auto_update: true, updated_at: at(4), ..expected };
    assert_eq!(stored(&db, ada).await, Some(expected));
}

async fn no_change_only_makes_the_row(db: Database) {
    let ada = Resident::of(&db, "ada").await.user.id;
    let new_id = id();
    commit(&db, change(ada, new_id, 3, vec![])).await.unwrap();
    commit(&db, change(ada, id(), 4, vec![])).await.unwrap();
    assert_eq!(stored(&db, ada).await, Some(Settings::defaults(new_id, ada, at(3))));
}

async fn of_two_changes_to_the_same_setting_the_last_counts(db: Database) {
    let ada = Resident::of(&db, "ada").await.user.id;
    commit(&db, change(ada, id(), 3, vec![theme("dark"), theme("sepia")])).await.unwrap();
    assert_eq!(stored(&db, ada).await.unwrap().theme.as_str(), "sepia");
}

async fn changes_at_the_same_time_lose_nothing(db: Database) {
    let ada = Resident::of(&db, "ada").await.user.id;
    let mut tasks = JoinSet::new();
    for single in [
        theme("dark"),
        SettingsChange::AutoUpdate(false),
        SettingsChange::FontFamily("mono".parse().unwrap()),
        SettingsChange::FontSize(9.try_into().unwrap()),
        SettingsChange::Language("de".parse().unwrap()),
    ] {
        let db = db.clone();
        tasks.spawn(async move { commit(&db, change(ada, id(), 1, vec![single])).await });
    }
    for outcome in tasks.join_all().await {
        outcome.unwrap();
    }
    let stored = stored(&db, ada).await.unwrap();
    let texts = [stored.theme.as_str(), stored.font_family.as_str(), stored.language.as_str()];
    assert_eq!((texts, stored.auto_update, stored.font_size.get()), (["dark", "mono", "de"], false, 9));
}

async fn settings_need_a_user(db: Database) {
    let outcome = commit(&db, change(id(), id(), 1, vec![theme("dark")])).await;
    assert!(matches!(outcome, Err(StoreError::Internal(_))), "{outcome:?}");
}
