//! The verbs, by what they are about.

pub(crate) mod app;
pub(crate) mod apps;
pub(crate) mod context;
pub(crate) mod deploy;
pub(crate) mod deployments;
pub(crate) mod init;
pub(crate) mod login;
pub(crate) mod logs;
pub(crate) mod running;
