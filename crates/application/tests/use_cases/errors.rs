//! Conversion of port errors that no use case expects.

use std::{error::Error as _, time::Duration};

use launchway_application::Error;
use launchway_domain::{
    auth::HasherError,
    secret::SecretBoxError,
    store::{Rule, StoreError, Unique},
};

use crate::ports::unavailable;

#[test]
fn a_database_that_cannot_be_reached_is_unavailable() {
    assert!(matches!(Error::from(unavailable()), Error::Unavailable(_)));
}

#[test]
fn a_full_disk_is_named() {
    let error = Error::from(StoreError::StorageFull("database or disk is full".into()));
    assert!(matches!(error, Error::StorageFull(_)));
    assert!(error.to_string().contains("the disk of the database is full"), "{error}");
    assert_eq!(error.source().unwrap().to_string(), "database or disk is full");
}

#[test]
fn what_no_use_case_expects_of_the_store_is_internal() {
    for error in [
        StoreError::Taken(Unique::UserEmail),
        StoreError::Stale,
        StoreError::Refused(Rule::LastAdmin),
        StoreError::Unaudited,
        StoreError::Internal("no such table".into()),
    ] {
        assert!(matches!(Error::from(error), Error::Internal(_)));
    }
}

#[test]
fn a_flood_of_passwords_asks_for_a_second() {
    let error = Error::from(HasherError::Busy);
    assert!(matches!(error, Error::RateLimited { retry_after } if retry_after == Duration::from_secs(1)));
    assert_eq!(error.to_string(), "too many attempts; try again in 1 seconds");
}

#[test]
fn a_hash_that_cannot_be_read_is_internal() {
    assert!(matches!(Error::from(HasherError::Broken("not PHC".into())), Error::Internal(_)));
}

#[test]
fn a_secret_that_cannot_be_opened_or_sealed_is_internal() {
    for error in [SecretBoxError::CannotOpen, SecretBoxError::CannotSeal] {
        assert!(matches!(Error::from(error), Error::Internal(_)));
    }
}

#[test]
fn a_cause_is_for_the_log_and_not_in_the_message() {
    let unavailable = Error::from(unavailable());
    assert_eq!(unavailable.to_string(), "a required service is unavailable");
    assert_eq!(
        unavailable.source().map(ToString::to_string),
        Some("the database is not available".to_owned())
    );

    let internal = Error::from(StoreError::Internal("no such table: users".into()));
    assert_eq!(internal.to_string(), "internal error");
    assert_eq!(
        internal.source().map(ToString::to_string),
        Some("the database refused a statement".to_owned())
    );
}
