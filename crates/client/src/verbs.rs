//! The verbs, by what they are about.

pub(crate) mod apps;
pub(crate) mod context;
pub(crate) mod login;
