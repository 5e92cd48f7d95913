//! What the use cases decide, and exactly what they write.
//!
//! Every port is a mock that refuses any call that the test did not foresee; time, ids and
//! randomness are counted. No commit passes that changes something without telling the audit trail.

mod actors;
mod announcements;
mod api_tokens;
mod applications;
mod audit;
mod authentication;
mod authenticator;
mod deploy_keys;
mod deployments;
mod embedding;
mod errors;
mod extensions;
mod guesses;
mod idempotency;
mod keys;
mod logins;
mod logs;
mod maintenance;
mod notifications;
mod organizations;
mod passwords;
mod pipeline;
mod ports;
mod quotas;
mod reconciler;
mod refusals;
mod registration;
mod routes;
mod sealing;
mod trail;
mod two_factor;
mod users;
mod webhooks;
mod worker;
mod world;
