//! The running binary, tested from outside: one server, one data directory, one database for each test.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

/// Generates a test of each function on each database: `on_sqlite::name` and `on_postgres::name`.
macro_rules! on_both_databases {
    ($($name:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[test] fn $name() { super::$name(launchway_testkit::server::TestServer::on_sqlite()); })*
        }
        mod on_postgres {
            $(#[test] fn $name() { super::$name(launchway_testkit::server::TestServer::on_postgres()); })*
        }
    };
}
use launchway_testkit::wait;
use on_both_databases;

mod administration;
mod audit;
mod auth;
mod authorization;
mod backups;
mod bodies;
mod body_limits;
mod certificates;
mod changes;
mod configuration;
mod docker;
mod documented_answers;
mod durability;
mod envelope;
mod extensions;
mod full_disk;
mod idempotency;
mod invitations;
mod isolation;
mod key_rotation;
mod mass_assignment;
mod members;
mod metrics;
mod notifications;
mod openapi;
mod operations;
mod organizations;
mod origins;
mod passwords;
mod postgres;
mod quotas;
mod reference_page;
mod registration;
mod request_ids;
mod secrets;
mod settings;
mod setup_token;
mod shapes;
mod shutdown;
mod sources;
mod throttle;
mod tokens;
mod two_factor;
mod upgrades;
mod users;
mod webhooks;
