//! Contract tests of the domain's ports, on both databases.
//!
//! Each test is an async function of a [`Database`] with empty tables; `contract!` runs it on both.
//!
//! [`Database`]: launchway_database::Database
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[macro_use]
mod fresh;

mod api_tokens;
mod applications;
mod audit;
mod availability;
mod builders;
mod certificates;
mod commit_statuses;
mod compositions;
mod conformance;
mod credentials;
mod deploy_keys;
mod deployments;
mod extensions;
mod group_commit;
mod homes;
mod hsts;
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
mod postgres_tables;
mod previews;
mod quotas;
mod renewals;
mod replicas;
mod schema;
mod search;
mod sessions;
mod settings;
mod setup_token;
mod signals;
mod site_archives;
mod stored_bytes;
mod throttle;
mod two_factor;
mod unit_of_work;
mod users;
mod webhooks;
