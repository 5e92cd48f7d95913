//! The OpenAPI document, generated from the endpoints.

use std::sync::LazyLock;

use actix_web::{
    HttpResponse,
    http::header::{CACHE_CONTROL, ContentType},
};
use serde_json::{Map, Value, json};

use crate::{
    endpoint::Endpoint,
    envelope::add_error_schema,
    router,
    schema::Schemas,
    views::{
        applications::{ApplicationStatusView, ApplicationView},
        deployments::{DeploymentStatusView, DeploymentView},
        executions::{ExecutionStepView, ExecutionView},
        extensions::{ExtensionVariableView, ExtensionView},
        logs::LogView,
        organizations::{MembershipView, OrganizationView},
        users::UserView,
    },
};

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/api/v1/openapi.json", "openapi_document", openapi_document)
            .summary("Get the OpenAPI 3.1 document")
            .cli("launchway openapi")
            .responds("application/json", |_| json!({"type": "object"})),
    ]
}

/// Returns the OpenAPI document of every mounted operation.
#[must_use]
pub fn document() -> Value {
    let mut schemas = Schemas::default();
    add_error_schema(&mut schemas);
    add_recursive_views(&mut schemas);
    let mut paths = Map::new();
    for endpoint in router::endpoints() {
        let item = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        item[endpoint.method.as_str().to_lowercase()] = endpoint.document(&mut schemas);
    }
    let tags: Vec<_> =
        router::nouns().iter().map(|(name, about, _)| json!({"name": name, "description": about})).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Launchway",
            "description": "Deploys applications from a git repository.",
            "version": env!("CARGO_PKG_VERSION"),
            "contact": {"name": "Launchway"},
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This server"}],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas.into_json(),
            "securitySchemes": {"bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "A session token from /api/v1/auth/login, or an API token",
            }},
        },
    })
}

/// Adds the views that contain each other, which are found only by name.
fn add_recursive_views(schemas: &mut Schemas) {
    schemas.add_view::<ApplicationStatusView>();
    schemas.add_view::<ApplicationView>();
    schemas.add_view::<DeploymentStatusView>();
    schemas.add_view::<DeploymentView>();
    schemas.add_view::<ExecutionStepView>();
    schemas.add_view::<ExecutionView>();
    schemas.add_view::<ExtensionVariableView>();
    schemas.add_view::<ExtensionView>();
    schemas.add_view::<LogView>();
    schemas.add_view::<MembershipView>();
    schemas.add_view::<OrganizationView>();
    schemas.add_view::<UserView>();
}

async fn openapi_document() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header(ContentType::json())
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(JSON.as_str())
}

/// Serialized once: the document never changes while the server runs.
static JSON: LazyLock<String> = LazyLock::new(|| document().to_string());
