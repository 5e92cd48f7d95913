//! Values for unit tests: builders of entities, a clock that is stopped, counting ids and randomness.
//!
//! Each builder starts with valid defaults, and a test sets what matters to it. Ids are derived from names and
//! owners, so that the same arrangement has the same ids.
//!
//! ```
//! use launchway_domain::{deployments::DeploymentState, fixtures::{a_deployment, an_application}};
//!
//! let web = an_application().named("web").from_image("nginx:1").build();
//! let first = a_deployment().of(&web).in_state(DeploymentState::Deployed).build();
//! assert_eq!(first.application_id, web.id);
//! assert_eq!(web, an_application().named("web").from_image("nginx:1").build());
//! ```
#![expect(clippy::unwrap_used, reason = "a test that cannot be arranged must stop")]

mod application;
pub mod clock;
mod deployment;
pub mod entropy;
pub mod ids;
mod log;
mod organization;
mod page;
mod user;

use std::{fmt::Debug, str::FromStr};

pub use self::{
    application::{ApplicationBuilder, a_blueprint, an_application},
    clock::FixedClock,
    deployment::{DeploymentBuilder, a_container, a_deployment},
    entropy::CountingEntropy,
    ids::CountingIds,
    log::{LogLineBuilder, a_log_line},
    organization::{MembershipBuilder, OrganizationBuilder, a_membership, an_organization},
    page::a_page,
    user::{ProfileBuilder, UserBuilder, a_profile, a_user},
};
use crate::{auth::Actor, organizations::Role};

/// Returns [`a_user`] with a role in [`an_organization`], as a service that authenticates its users itself does.
#[must_use]
pub fn a_vouched_actor(role: Role) -> Actor {
    Actor::vouched_for(a_user().build(), an_organization().build(), role)
}

/// Parses `raw`.
///
/// # Panics
/// If `raw` is refused.
#[must_use]
#[track_caller]
pub fn parsed<T: FromStr<Err: Debug>>(raw: &str) -> T {
    raw.parse().unwrap()
}
