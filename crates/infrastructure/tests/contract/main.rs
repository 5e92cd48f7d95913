//! Contract tests of backups, on both databases, and of sites that servers share by a database.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[macro_use]
#[path = "../../../database/tests/contract/fresh.rs"]
mod fresh;

mod backups;
#[path = "../../../database/tests/contract/builders.rs"]
#[expect(dead_code, reason = "the tests of the database need more of it")]
mod builders;
mod sites_on_postgres;
