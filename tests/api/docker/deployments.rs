//! Deployments on a real engine: from a repository to a running application, and the failures on the way.

/// Generates a test of each function on each database: `on_sqlite::name` and `on_postgres::name`.
macro_rules! on_both_engines {
    ($($name:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[test] fn $name() { super::$name(crate::docker::deployments::harness::Harness::on_sqlite(&[])); })*
        }
        mod on_postgres {
            $(#[test] fn $name() { super::$name(crate::docker::deployments::harness::Harness::on_postgres(&[])); })*
        }
    };
}
pub(crate) use launchway_testkit::repository;
use on_both_engines;

mod breakage;
mod build_cache;
mod cancellation;
mod compositions;
mod desired_state;
mod dockerfiles;
pub(crate) mod harness;
mod image_quota;
mod kills;
mod lifecycle;
mod log_floods;
mod logs;
mod other_tenants;
mod packs;
mod repeats;
mod resource_limits;
mod retention;
pub(crate) mod scenarios;
mod story;
mod trap;
mod variables;
mod write_only_tokens;
