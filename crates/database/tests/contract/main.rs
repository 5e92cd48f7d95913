//! Contract tests of the domain's ports, on both databases.
//!
//! Each test is an async function of a [`Database`] with empty tables; `contract!` runs it on both.
//!
//! [`Database`]: launchway_infrastructure::database::Database
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

/// Makes each function a test on SQLite and one on PostgreSQL.
macro_rules! contract {
    ($($promise:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test]
            async fn $promise() {
                let fresh = crate::fresh::Fresh::on_sqlite().await;
                super::$promise((&fresh).into()).await;
            })*
        }

        mod on_postgres {
            $(#[tokio::test]
            async fn $promise() {
                let fresh = crate::fresh::Fresh::on_postgres().await;
                super::$promise((&fresh).into()).await;
            })*
        }
    };
}

mod api_tokens;
mod applications;
mod audit;
mod availability;
mod backups;
mod builders;
mod credentials;
mod deploy_keys;
mod deployments;
mod extensions;
mod fresh;
mod group_commit;
mod idempotency;
mod identities;
mod image_records;
mod installation;
mod installation_id;
mod invitations;
mod jobs;
mod key_check;
mod logs;
mod notifications;
mod organizations;
mod password_setups;
mod quotas;
mod schema;
mod sessions;
mod settings;
mod tables;
mod throttle;
mod two_factor;
mod unit_of_work;
mod users;
mod webhooks;
