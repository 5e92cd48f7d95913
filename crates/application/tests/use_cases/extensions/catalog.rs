//! Updating the catalog.

use launchway_application::extensions::CatalogFile;
use launchway_domain::{
    extensions::{ExtensionKey, Validation, Write, content_hash},
    replicas::ReleaseVersion,
    store::{self, StoreError},
};

use super::{DATABASE, HELLO, key};
use crate::ports::MockedPorts;

const HELLO_FILE: CatalogFile<'_> = CatalogFile { name: "hello-note", yaml: HELLO };
const DATABASE_FILE: CatalogFile<'_> = CatalogFile { name: "database", yaml: DATABASE };

/// Returns the writes when the catalog has `known` and is updated to `files`: published keys, and kept
/// ones.
async fn written(
    known: Vec<(ExtensionKey, Validation, String)>,
    files: &[CatalogFile<'_>],
) -> (Vec<String>, Vec<String>) {
    let mut ports = MockedPorts::default();
    let (sender, channel) = std::sync::mpsc::channel();
    ports.extensions.expect_catalog().return_once(|| Ok(known));
    ports.expect_commit_seen_by(move |writes| {
        let (mut published, mut kept) = (Vec::new(), Vec::new());
        for write in writes {
            match write {
                store::Write::Extension(Write::Publish(entry)) => {
                    published.push(format!("{} {}", entry.key, entry.validation.as_str()))
                }
                store::Write::Extension(Write::Withdraw { keep, .. }) => {
                    kept = keep.iter().map(ToString::to_string).collect()
                }
                store::Write::Extension(Write::ClaimCatalog(version)) => assert_eq!(*version, release()),
                other => panic!("{other:?}"),
            }
        }
        sender.send((published, kept)).unwrap();
    });
    ports.services().catalog.load(files, release()).await.unwrap();
    channel.recv().unwrap()
}

fn release() -> ReleaseVersion {
    "1.2.3".parse().unwrap()
}

fn valid(name: &str, hash: String) -> (ExtensionKey, Validation, String) {
    (key(name), Validation::Valid, hash)
}

#[tokio::test]
async fn publishes_changed_entries_and_withdraws_removed_ones() {
    let known = vec![valid("hello-note", "other".to_owned()), valid("gone", "x".to_owned())];
    let (published, kept) = written(known, &[HELLO_FILE, DATABASE_FILE]).await;
    assert_eq!(published, ["hello-note valid", "database valid"]);
    assert_eq!(kept, ["hello-note", "database"]);
}

#[tokio::test]
async fn what_is_the_same_is_not_written_again() {
    let mut ports = MockedPorts::default();
    let known = vec![valid("hello-note", content_hash(HELLO))];
    ports.extensions.expect_catalog().return_once(|| Ok(known));
    assert_eq!(ports.services().catalog.load(&[HELLO_FILE], release()).await.unwrap(), 0);
}

#[tokio::test]
async fn invalid_file_affects_no_other_and_replaces_no_valid_one() {
    let broken = CatalogFile { name: "broken", yaml: "metadata: {}" };
    let (published, kept) = written(Vec::new(), &[broken, DATABASE_FILE]).await;
    assert_eq!(
        (published, kept),
        (
            vec!["broken invalid".to_owned(), "database valid".to_owned()],
            vec!["broken".to_owned(), "database".to_owned()]
        )
    );

    let (published, kept) = written(vec![valid("broken", "x".to_owned())], &[broken, DATABASE_FILE]).await;
    assert_eq!(
        (published, kept),
        (vec!["database valid".to_owned()], vec!["broken".to_owned(), "database".to_owned()])
    );

    let misnamed = CatalogFile { name: "other", yaml: HELLO };
    let (published, _) = written(Vec::new(), &[misnamed, DATABASE_FILE]).await;
    assert_eq!(published, ["database valid"]);
}

#[tokio::test]
async fn the_catalog_of_a_newer_version_is_kept() {
    let mut ports = MockedPorts::default();
    ports.extensions.expect_catalog().return_once(|| Ok(Vec::new()));
    ports.expect_failing_commit(StoreError::Stale);
    assert_eq!(ports.services().catalog.load(&[HELLO_FILE], release()).await.unwrap(), 0);
}
