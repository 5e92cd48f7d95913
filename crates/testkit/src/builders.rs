//! Builders of domain values: each starts with valid defaults, and a test sets what matters to it.
//!
//! Ids are derived from names and owners, so that the same arrangement has the same ids and two
//! users, organizations or tokens never share one.

mod actor;
mod application;
mod audit;
mod client;
mod deployment;
mod extension;
mod log;
mod organization;
mod page;
mod passwords;
mod tokens;
mod user;

use std::{fmt::Debug, str::FromStr};

pub use self::{
    actor::{ActorBuilder, an_actor, scope_of},
    application::{ApplicationBuilder, a_blueprint, an_application},
    audit::{EntryBuilder, an_entry, chained, head_of},
    client::{a_client, an_origin},
    deployment::{DeploymentBuilder, a_container, a_deployment},
    extension::{ExecutionBuilder, ExtensionBuilder, an_execution, an_extension},
    log::{LogLineBuilder, a_log_line},
    organization::{MembershipBuilder, OrganizationBuilder, a_membership, an_organization},
    page::a_page,
    passwords::a_password,
    tokens::{ApiTokenBuilder, SessionBuilder, a_session, an_api_token, permissions},
    user::{ProfileBuilder, UserBuilder, a_profile, a_user},
};

/// Parses `raw`.
///
/// # Panics
/// If `raw` is refused.
#[must_use]
#[track_caller]
pub fn parsed<T: FromStr<Err: Debug>>(raw: &str) -> T {
    raw.parse().unwrap()
}
