//! The verbs, by what they are about.

pub(crate) mod apps;
pub(crate) mod context;
pub(crate) mod login;

pub(crate) mod audit;
pub(crate) mod domains;
pub(crate) mod env;
pub(crate) mod extensions;
pub(crate) mod keys;
pub(crate) mod members;
pub(crate) mod notifications;
pub(crate) mod org;
pub(crate) mod password;
pub(crate) mod register;
pub(crate) mod tokens;
pub(crate) mod two_factor;
