use std::{fs, io::Write as _};

use launchway_domain::{
    auth::Actor,
    organizations::{Organization, Role},
    users::User,
};
use tempfile::TempDir;
use uuid::Uuid;

use super::*;

fn somebody(number: u128) -> Actor {
    let (id, now) = (Uuid::from_u128(number), chrono::DateTime::UNIX_EPOCH);
    let name = format!("Engines {number}").parse().unwrap();
    let organization = Organization::new(id.into(), name, "".parse().unwrap(), now);
    let (username, email) = ("ada".parse().unwrap(), format!("ada{number}@example.com").parse().unwrap());
    Actor::vouched_for(User::invited(id.into(), username, email, now), organization, Role::Admin)
}

async fn know(store: &FileStore, number: u128) -> Result<(), StoreError> {
    store
        .change(Box::new(move |records| {
            records.know(&somebody(number));
            Ok(())
        }))
        .await
}

async fn known(store: &FileStore, numbers: std::ops::RangeInclusive<u128>) -> Vec<u128> {
    let mut found = Vec::new();
    let into = &mut found;
    let query: Query<'_> =
        Box::new(move |records| into.extend(numbers.filter(|number| records.is_known(&somebody(*number)))));
    store.read(query).await.unwrap();
    found
}

fn path(folder: &TempDir) -> PathBuf {
    folder.path().join("records")
}

#[tokio::test]
async fn records_survive_and_a_transaction_costs_what_it_changes() {
    let folder = TempDir::new().unwrap();
    let store = FileStore::open(path(&folder)).await.unwrap();
    know(&store, 1).await.unwrap();
    let length = fs::metadata(path(&folder)).unwrap().len();
    know(&store, 2).await.unwrap();
    let grown = fs::metadata(path(&folder)).unwrap().len();
    know(&store, 2).await.unwrap();
    assert_eq!(fs::metadata(path(&folder)).unwrap().len(), grown, "nothing changed, nothing is written");
    assert!(grown - length < length + 10);
    drop(store);
    let store = FileStore::open(path(&folder)).await.unwrap();
    assert_eq!(known(&store, 1..=3).await, [1, 2]);
}

#[tokio::test]
async fn a_second_process_is_refused() {
    let folder = TempDir::new().unwrap();
    let store = FileStore::open(path(&folder)).await.unwrap();
    let second = FileStore::open(path(&folder)).await.unwrap_err();
    assert_eq!(second.to_string(), format!("{} is used by another process", path(&folder).display()));
    drop(store);
    FileStore::open(path(&folder)).await.unwrap();
}

#[tokio::test]
async fn a_line_that_was_cut_by_a_crash_is_dropped() {
    let folder = TempDir::new().unwrap();
    let store = FileStore::open(path(&folder)).await.unwrap();
    know(&store, 1).await.unwrap();
    let whole = fs::read(path(&folder)).unwrap();
    know(&store, 2).await.unwrap();
    drop(store);
    let both = fs::read(path(&folder)).unwrap();
    for length in whole.len()..both.len() {
        fs::write(path(&folder), &both[..length]).unwrap();
        let store = FileStore::open(path(&folder)).await.unwrap();
        assert_eq!(known(&store, 1..=2).await, [1], "{length}");
        know(&store, 3).await.unwrap();
        drop(store);
        let store = FileStore::open(path(&folder)).await.unwrap();
        assert_eq!(known(&store, 1..=3).await, [1, 3], "{length}");
    }
}

#[tokio::test]
async fn damage_before_the_end_is_reported_and_nothing_is_changed() {
    let folder = TempDir::new().unwrap();
    let store = FileStore::open(path(&folder)).await.unwrap();
    know(&store, 1).await.unwrap();
    know(&store, 2).await.unwrap();
    drop(store);
    let mut bytes = fs::read(path(&folder)).unwrap();
    bytes[30] ^= 1;
    fs::write(path(&folder), &bytes).unwrap();
    let damaged = FileStore::open(path(&folder)).await.unwrap_err();
    assert!(matches!(damaged, OpenError::Damaged { line: 1, .. }), "{damaged}");
    assert_eq!(fs::read(path(&folder)).unwrap(), bytes);
}

#[tokio::test]
async fn a_failed_write_changes_nothing_and_the_next_one_succeeds() {
    let folder = TempDir::new().unwrap();
    let store = FileStore::open(path(&folder)).await.unwrap();
    know(&store, 1).await.unwrap();
    // Writing to a file that is open for reading fails; then the file is whole again.
    let readable = fs::File::open(path(&folder)).unwrap();
    let file = store.0.with_medium(|journal| journal.swap_file(readable)).await;
    assert!(matches!(know(&store, 2).await, Err(StoreError::Unavailable(_))));
    assert_eq!(known(&store, 1..=2).await, [1]);
    store.0.with_medium(|journal| journal.swap_file(file)).await.flush().unwrap();
    know(&store, 3).await.unwrap();
    drop(store);
    let store = FileStore::open(path(&folder)).await.unwrap();
    assert_eq!(known(&store, 1..=3).await, [1, 3]);
}

#[tokio::test]
async fn a_long_journal_is_replaced_by_the_records() {
    let folder = TempDir::new().unwrap();
    let store = FileStore::open(path(&folder)).await.unwrap();
    let mut longest = 0;
    for round in 0..40 {
        let change: Change<'_> = Box::new(move |records| {
            let everybody = (1..=200).map(somebody);
            everybody.for_each(|actor| records.know(&if round % 2 == 0 { actor } else { renamed(&actor) }));
            Ok(())
        });
        store.change(change).await.unwrap();
        longest = longest.max(fs::metadata(path(&folder)).unwrap().len());
    }
    assert!(longest < 2 * 1024 * 1024, "{longest}");
    drop(store);
    let store = FileStore::open(path(&folder)).await.unwrap();
    assert_eq!(known(&store, 1..=200).await.len(), 0, "they were renamed");
}

fn renamed(actor: &Actor) -> Actor {
    let membership = actor.membership().unwrap();
    let mut user = actor.user().clone();
    user.avatar = "x".repeat(300);
    Actor::vouched_for(user, membership.organization.clone(), Role::Admin)
}

#[tokio::test]
async fn a_dropped_transaction_is_settled_by_the_next_call() {
    let folder = TempDir::new().unwrap();
    let store = FileStore::open(path(&folder)).await.unwrap();
    for number in 1..=20 {
        // Polled once: the write runs, and nobody waits for it.
        let mut change = Box::pin(know(&store, number));
        let polled =
            std::future::poll_fn(|context| std::task::Poll::Ready(change.as_mut().poll(context).is_ready()));
        polled.await;
        drop(change);
        assert_eq!(known(&store, number..=number).await, [number]);
    }
    drop(store);
    let store = FileStore::open(path(&folder)).await.unwrap();
    assert_eq!(known(&store, 1..=20).await.len(), 20);
}
