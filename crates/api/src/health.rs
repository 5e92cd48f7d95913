//! Alive, and able to serve.

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
    /// `ok`, or `degraded` while something is away that a part of the work needs.
    #[schema(example = "ok")]
    status: &'static str,
    /// The reason why it is degraded.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Health {
    const OK: Self = Self { status: "ok", reason: None };
}

/// Whether the server is alive
#[utoipa::path(get, path = "/health", tag = "operations", responses((status = 200, body = Envelope<Health>)))]
pub(crate) async fn health() -> Reply<Health> {
    Ok(success("Launchway is alive", Health::OK))
}

/// The same, under the API's prefix
#[utoipa::path(get, path = "/api/v1/health", operation_id = "api_health", tag = "operations",
    responses((status = 200, body = Envelope<Health>)))]
#[expect(dead_code, reason = "documents the second path of the same handler")]
pub(crate) async fn api_health() -> Reply<Health> {
    health().await
}

/// Whether the server can serve
///
/// 503 while it stops, without its database, or while the disk of the database is full; `degraded` while the engine does
/// not answer.
#[utoipa::path(get, path = "/ready", tag = "operations", responses((status = 200, body = Envelope<Health>)))]
pub(crate) async fn ready(api: Data<Api>) -> Reply<Health> {
    if api.is_stopping() {
        return Err(ApiError::unavailable("the server is stopping"));
    }
    // Any read tells whether the database answers.
    api.services.registration.admin_registered().await?;
    if let Some(store) = &api.store {
        store.check_writes().await.map_err(Error::from)?;
    }
    // Sites, reads and everything else go on without the engine.
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
