//! Liveness and readiness.

use actix_web::web::Data;
use launchway_application::Error;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    Api,
    envelope::{Envelope, Reply, success},
    error::ApiError,
    routes::Routes,
};

pub(crate) fn routes(routes: &mut Routes) {
    routes.get("/health", health).get("/api/v1/health", health).get("/ready", ready);
}

#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`, or `degraded` while a dependency of some operations is unavailable.
    #[schema(example = "ok")]
    status: &'static str,
    /// The reason why it is degraded.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Health {
    const OK: Self = Self { status: "ok", reason: None };
}

/// Check liveness
#[utoipa::path(get, path = "/health", tag = "operations", responses((status = 200, body = Envelope<Health>)))]
pub(crate) async fn health() -> Reply<Health> {
    Ok(success("Launchway is alive", Health::OK))
}

/// Check liveness, under the prefix of the API
#[utoipa::path(get, path = "/api/v1/health", operation_id = "api_health", tag = "operations",
    responses((status = 200, body = Envelope<Health>)))]
#[expect(dead_code, reason = "documents the second path of the same handler")]
pub(crate) async fn api_health() -> Reply<Health> {
    health().await
}

/// Check readiness
///
/// 503 while it stops, without its database, or while the disk of the database is full; `degraded` while
/// the engine does not respond.
#[utoipa::path(get, path = "/ready", tag = "operations", responses((status = 200, body = Envelope<Health>)))]
pub(crate) async fn ready(api: Data<Api>) -> Reply<Health> {
    if api.is_stopping() {
        return Err(ApiError::unavailable("the server is stopping"));
    }
    // Any read shows that the database responds.
    api.services.registration.admin_registered().await?;
    if let Some(store) = &api.store {
        store.check_writes().await.map_err(Error::from)?;
    }
    // Sites, reads and other operations work without the engine.
    Ok(match api.services.engine.outage() {
        None => success("Launchway is ready", Health::OK),
        Some(outage) => {
            let reason = format!(
                "the Docker engine does not answer since {}: {}",
                outage.since.to_rfc3339(),
                outage.reason
            );
            success("Launchway is degraded", Health { status: "degraded", reason: Some(reason) })
        }
    })
}
