//! The commands, by subject.

pub(crate) mod app;
pub(crate) mod apps;
pub(crate) mod audit;
pub(crate) mod cluster;
pub(crate) mod context;
pub(crate) mod deploy;
pub(crate) mod deployments;
pub(crate) mod domains;
pub(crate) mod env;
pub(crate) mod extensions;
pub(crate) mod git_remote;
pub(crate) mod init;
pub(crate) mod invitations;
pub(crate) mod keys;
pub(crate) mod login;
pub(crate) mod logs;
pub(crate) mod members;
pub(crate) mod notifications;
pub(crate) mod org;
pub(crate) mod password;
pub(crate) mod previews;
pub(crate) mod register;
pub(crate) mod run;
pub(crate) mod tokens;
pub(crate) mod two_factor;
