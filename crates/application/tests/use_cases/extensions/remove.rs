//! Deleting forks and uninstalling extensions.

use launchway_application::Error;
use launchway_domain::{
    extensions::{Extension, Write},
    jobs::{JobKind, Write as JobWrite},
    store,
};

use super::{DATABASE, an_admin, an_entry, key, scope};
use crate::ports::MockedPorts;

async fn a_fork() -> Extension {
    let entry = an_entry(DATABASE).await;
    let key = key("database-fork-12345678");
    Extension {
        organization_id: Some(scope().id()),
        parent: Some(entry.key),
        key,
        ..an_entry(DATABASE).await
    }
}

#[tokio::test]
async fn a_fork_goes_with_everything_that_it_made() {
    let (fork, mut ports) = (a_fork().await, MockedPorts::default());
    let (key, found) = (fork.key.clone(), fork.clone());
    ports.extensions.expect_by_key().return_once(|_, _| Ok(Some(found)));
    ports.expect_commit_seen_by(|writes| {
        let [
            _,
            store::Write::Extension(Write::Delete { key, .. }),
            store::Write::Job(JobWrite::Enqueue(job)),
            _,
            store::Write::Audit(_),
        ] = writes
        else {
            panic!("{writes:?}")
        };
        assert_eq!(key.as_str(), "database-fork-12345678");
        assert_eq!(job.kind, JobKind::UninstallExtension);
        assert_eq!(job.payload, r#"{"deleted":true,"extension":"database-fork-12345678","volumes":true}"#);
    });
    let deleted = ports.services().extensions.delete(&an_admin(), &key, true).await.unwrap();
    assert!(deleted.deleted_at.is_some());
}

#[tokio::test]
async fn an_entry_of_the_catalog_stays() {
    let (entry, mut ports) = (an_entry(DATABASE).await, MockedPorts::default());
    ports.extensions.expect_by_key().return_once(|_, _| Ok(Some(entry)));
    let refused = ports.services().extensions.delete(&an_admin(), &key("database"), false).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused:?}");
}

#[tokio::test]
async fn what_an_entry_of_the_catalog_made_can_be_removed() {
    let (entry, mut ports) = (an_entry(DATABASE).await, MockedPorts::default());
    ports.extensions.expect_by_key().return_once(|_, _| Ok(Some(entry)));
    ports.expect_commit_seen_by(|writes| {
        let [
            store::Write::Job(JobWrite::RequestCancelAll { subject, .. }),
            store::Write::Job(JobWrite::Enqueue(job)),
            ..,
        ] = writes
        else {
            panic!("{writes:?}")
        };
        assert_eq!(*subject, job.subject);
        assert_eq!(job.payload, r#"{"deleted":false,"extension":"database","volumes":false}"#);
    });
    ports.services().extensions.uninstall(&an_admin(), &key("database"), false).await.unwrap();
}
