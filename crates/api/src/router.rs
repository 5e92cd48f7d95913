//! The router: each feature is registered here once.

use actix_web::{
    HttpRequest,
    web::{self, ServiceConfig},
};

use crate::{
    applications, audit, auth, cluster, deployments, docs,
    endpoint::{Endpoint, Operation},
    error::{ApiError, Code},
    extensions, git, health, invitations, logs, metrics, notifications, openapi, organizations, previews,
    routes::mount,
    users, webhooks,
};

/// Mounts every endpoint, and the responses for unknown paths and methods.
pub fn configure(config: &mut ServiceConfig) {
    mount(endpoints(), config);
    git::configure(config);
    config.default_service(web::to(route_not_found));
}

/// Returns the operations that [`configure`] mounts.
#[must_use]
pub fn operations() -> Vec<Operation> {
    endpoints().iter().map(Endpoint::operation).collect()
}

/// A noun of the API: its name, its description, and its endpoints.
type Noun = (&'static str, &'static str, Vec<Endpoint>);

/// Returns the nouns of the API, in the order of the document.
pub(crate) fn nouns() -> Vec<Noun> {
    vec![
        ("auth", "Registration, login, API tokens and two-factor login", auth::endpoints()),
        ("users", "The account and the settings of the caller", users::endpoints()),
        ("organizations", "Organizations, their members and their quotas", organizations::endpoints()),
        ("invitations", "Invitations to an organization", invitations::endpoints()),
        ("applications", "Applications and their domains", applications::endpoints()),
        ("deployments", "Deployments, rollbacks and cancellations", deployments::endpoints()),
        ("previews", "Previews of pull and merge requests", previews::endpoints()),
        ("extensions", "The catalog of extensions, forks and runs", extensions::endpoints()),
        ("logs", "The logs of applications and deployments", logs::endpoints()),
        ("webhooks", "Pushes and requests of code hosts", webhooks::endpoints()),
        ("notifications", "Channels, their configuration and their deliveries", notifications::endpoints()),
        ("audit", "The audit log", audit::endpoints()),
        ("cluster", "The servers of the installation", cluster::endpoints()),
        ("operations", "Health, metrics and this document", operations_endpoints()),
    ]
}

fn operations_endpoints() -> Vec<Endpoint> {
    [health::endpoints(), metrics::endpoints(), openapi::endpoints(), docs::endpoints()]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns every endpoint; those that others replace come last.
pub(crate) fn endpoints() -> Vec<Endpoint> {
    let tagged = |(tag, _, endpoints): Noun| endpoints.into_iter().map(move |endpoint| endpoint.tagged(tag));
    let mut all: Vec<_> = nouns().into_iter().flat_map(tagged).collect();
    all.sort_by_key(Endpoint::is_deprecated);
    all
}

async fn route_not_found(request: HttpRequest) -> Result<&'static str, ApiError> {
    let path: String = request.path().chars().take(100).flat_map(char::escape_debug).collect();
    Err(ApiError::new(
        Code::RouteNotFound,
        format!("there is nothing at `{path}`; /docs lists what there is"),
    ))
}
