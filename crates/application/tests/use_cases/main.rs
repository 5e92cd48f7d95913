//! What the use cases decide, and exactly what they write.
//!
//! Every port is a mock that refuses any call that the test did not foresee; time, ids and
//! randomness are counted.

mod api_tokens;
mod authentication;
mod authenticator;
mod errors;
mod guesses;
mod logins;
mod passwords;
mod ports;
mod refusals;
mod registration;
mod two_factor;
mod users;
