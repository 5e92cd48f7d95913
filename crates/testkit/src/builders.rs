//! Builders of domain values, in addition to the published ones of `launchway_domain::fixtures`.

mod actor;
mod audit;
mod client;
mod extension;
mod passwords;
mod tokens;

pub use launchway_domain::fixtures::{
    ApplicationBuilder, DeploymentBuilder, LogLineBuilder, MembershipBuilder, OrganizationBuilder,
    ProfileBuilder, UserBuilder, a_blueprint, a_container, a_deployment, a_log_line, a_membership, a_page,
    a_profile, a_user, an_application, an_organization, parsed,
};

pub use self::{
    actor::{ActorBuilder, an_actor, scope_of},
    audit::{EntryBuilder, an_entry, chained, head_of},
    client::{a_client, an_origin},
    extension::{ExecutionBuilder, ExtensionBuilder, an_execution, an_extension},
    passwords::a_password,
    tokens::{ApiTokenBuilder, SessionBuilder, a_session, an_api_token, permissions},
};
