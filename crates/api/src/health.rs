//! Liveness and readiness.

use actix_web::web::Data;
use launchway_application::Error;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    Api,
    endpoint::Endpoint,
    envelope::{Reply, success},
    error::ApiError,
};

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/health", "health", health)
            .summary("Check liveness"),
        Endpoint::get("/api/v1/health", "api_health", health).summary("Check liveness, under the prefix of the API"),
        Endpoint::get("/ready", "ready", ready)
            .summary("Check readiness")
            .about("503 while it stops, without its database, while the disk of the database is full, or while its clock is more than ten seconds off that of the database; `degraded` while the engine does not respond."),
    ]
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

async fn health() -> Reply<Health> {
    Ok(success("Launchway is alive", Health::OK))
}

async fn ready(api: Data<Api>) -> Reply<Health> {
    if api.is_stopping() {
        return Err(ApiError::unavailable("the server is stopping"));
    }
    // Any read shows that the database responds.
    api.services.registration.admin_registered().await?;
    if let Some(store) = &api.store {
        store.check_writes().await.map_err(Error::from)?;
    }
    if let Some(problem) = api.services.replica.clock_problem() {
        return Err(ApiError::unavailable(problem));
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
