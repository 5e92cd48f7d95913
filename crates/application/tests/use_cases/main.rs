//! What the use cases decide, and exactly what they write.
//!
//! Every port is a mock that refuses any call that the test did not foresee; time, ids and
//! randomness are counted. No commit passes that changes something without telling the audit trail.

mod api_tokens;
mod audit;
mod authentication;
mod authenticator;
mod errors;
mod guesses;
mod keys;
mod logins;
mod organizations;
mod passwords;
mod ports;
mod refusals;
mod registration;
mod sealing;
mod trail;
mod two_factor;
mod users;
