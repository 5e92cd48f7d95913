//! The router: each feature is registered here once.

use actix_web::{
    HttpRequest,
    web::{self, ServiceConfig},
};

use crate::{
    applications, audit, auth, deployments, docs,
    error::{ApiError, Code},
    extensions, health, invitations, logs, metrics, notifications, openapi, organizations,
    routes::{Operation, Routes},
    users, webhooks,
};

/// Mounts every endpoint, and the responses for unknown paths and methods.
pub fn configure(config: &mut ServiceConfig) {
    all().mount(config);
    config.default_service(web::to(route_not_found));
}

/// Returns the operations that [`configure`] mounts.
#[must_use]
pub fn operations() -> Vec<Operation> {
    all().operations()
}

fn all() -> Routes {
    let mut routes = Routes::default();
    auth::routes(&mut routes);
    users::routes(&mut routes);
    organizations::routes(&mut routes);
    invitations::routes(&mut routes);
    applications::routes(&mut routes);
    deployments::routes(&mut routes);
    extensions::routes(&mut routes);
    logs::routes(&mut routes);
    webhooks::routes(&mut routes);
    notifications::routes(&mut routes);
    audit::routes(&mut routes);
    health::routes(&mut routes);
    metrics::routes(&mut routes);
    openapi::routes(&mut routes);
    docs::routes(&mut routes);
    routes
}

async fn route_not_found(request: HttpRequest) -> Result<&'static str, ApiError> {
    let path: String = request.path().chars().take(100).flat_map(char::escape_debug).collect();
    Err(ApiError::new(
        Code::RouteNotFound,
        format!("there is nothing at `{path}`; /docs lists what there is"),
    ))
}
