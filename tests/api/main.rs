//! The running binary, seen from outside: one server, one data directory, one database a test.

/// Makes a test of each function on each database: `on_sqlite::name` and `on_postgres::name`.
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
use on_both_databases;

mod settings;
