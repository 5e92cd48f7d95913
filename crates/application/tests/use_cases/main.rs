//! Tests of the use cases: their decisions, and exactly the writes that they commit.
//!
//! Every port is a mock that rejects calls without an expectation; time, ids and randomness are
//! deterministic. A commit that changes something without an entry in the audit log fails.

mod actors;
mod announcements;
mod api_tokens;
mod applications;
mod audit;
mod audit_log;
mod authentication;
mod authenticator;
mod certificates;
mod deploy_keys;
mod deployments;
mod errors;
mod extensions;
mod idempotency;
mod installation;
mod keys;
mod login_attempts;
mod logins;
mod logs;
mod maintenance;
mod metrics;
mod nodes;
mod notifications;
mod organizations;
mod passwords;
mod pipeline;
mod ports;
mod previews;
mod quotas;
mod reconciler;
mod refusals;
mod registration;
mod routes;
mod sealed_values;
mod snapshots;
mod sources;
mod two_factor;
mod users;
mod webhooks;
mod worker;
mod world;
