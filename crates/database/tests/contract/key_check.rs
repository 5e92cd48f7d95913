//! Contract of `Database::key_check`, by which a wrong secret key is detected.

use launchway_database::Database;
use tokio::task::JoinSet;

use crate::fresh::Fresh;

contract!(
    nothing_is_remembered_at_first,
    what_was_remembered_first_stays,
    of_two_who_begin_at_once_both_read_the_same,
);

async fn nothing_is_remembered_at_first(db: Database) {
    assert_eq!(db.key_check().await.unwrap(), None);
}

async fn what_was_remembered_first_stays(fresh: &Fresh) {
    let db = &fresh.database;
    db.remember_key_check("one".to_owned()).await.unwrap();
    assert_eq!(db.key_check().await.unwrap().as_deref(), Some("one"));
    db.remember_key_check("two".to_owned()).await.unwrap();
    assert_eq!(db.key_check().await.unwrap().as_deref(), Some("one"));
    assert_eq!(fresh.open_again().key_check().await.unwrap().as_deref(), Some("one"));
}

async fn of_two_who_begin_at_once_both_read_the_same(fresh: &Fresh) {
    let mut tasks = JoinSet::new();
    for sealed in ["one", "two"] {
        let db = fresh.open_again();
        tasks.spawn(async move {
            db.remember_key_check(sealed.to_owned()).await.unwrap();
            db.key_check().await.unwrap().unwrap()
        });
    }
    let read = tasks.join_all().await;
    assert!(read[0] == read[1] && ["one", "two"].contains(&read[0].as_str()), "{read:?}");
}
