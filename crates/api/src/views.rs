//! The JSON of responses. The views of one noun contain those of another; endpoints import them from here.

pub(crate) mod applications;
pub(crate) mod auth;
pub(crate) mod certificates;
pub(crate) mod cluster;
pub(crate) mod deployments;
pub(crate) mod executions;
pub(crate) mod extensions;
pub(crate) mod logs;
pub(crate) mod notifications;
pub(crate) mod organizations;
pub(crate) mod previews;
pub(crate) mod users;
