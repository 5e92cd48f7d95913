//! The domains of applications, and the check for certificates.

use actix_web::{HttpRequest, HttpResponse, web::Data};
use launchway_application::Error;
use launchway_domain::{applications::Hostname, ids::ApplicationId};
use utoipa::ToSchema;

use super::ApplicationView;
use crate::{
    Api,
    body::{Body, Input},
    caller::Caller,
    client::is_local,
    envelope::{Envelope, Reply, success},
    error::ApiError,
    fields::Fields,
    query::Query,
    routes::Routes,
};

pub(super) fn routes(routes: &mut Routes) {
    routes
        .post("/api/v1/deploy/application/domains", add_domain)
        .delete("/api/v1/deploy/application/domains", remove_domain)
        .get("/api/v1/proxy/ask", ask);
}

#[derive(ToSchema)]
pub(crate) struct DomainOfApplication {
    #[schema(value_type = String)]
    id: ApplicationId,
    #[schema(value_type = String, example = "www.example.com")]
    domain: Hostname,
}

impl Input for DomainOfApplication {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let id = fields.required_id("id");
        let domain = fields.required("domain");
        fields.finish()?;
        Ok(Self { id: id?, domain: domain? })
    }
}

/// Add a domain to an application
#[utoipa::path(post, path = "/api/v1/deploy/application/domains", tag = "applications", security(("bearer" = [])),
    request_body = DomainOfApplication, responses((status = 200, body = Envelope<ApplicationView>)))]
pub(crate) async fn add_domain(
    api: Data<Api>,
    caller: Caller,
    body: Body<DomainOfApplication>,
) -> Reply<ApplicationView> {
    let DomainOfApplication { id, domain } = body.read().await?;
    let detail = api.services.applications.add_domain(&caller, id, domain).await?;
    Ok(success("Domain added successfully", detail.into()))
}

/// Remove a domain from an application
#[utoipa::path(delete, path = "/api/v1/deploy/application/domains", tag = "applications", security(("bearer" = [])),
    request_body = DomainOfApplication, responses((status = 200, body = Envelope<ApplicationView>)))]
pub(crate) async fn remove_domain(
    api: Data<Api>,
    caller: Caller,
    body: Body<DomainOfApplication>,
) -> Reply<ApplicationView> {
    let DomainOfApplication { id, domain } = body.read().await?;
    let detail = api.services.applications.remove_domain(&caller, id, domain).await?;
    Ok(success("Domain removed successfully", detail.into()))
}

/// Check that a domain belongs to an application, and so may have a certificate
///
/// For a Caddy on the machine of the server; for every other caller no domain does.
#[utoipa::path(get, path = "/api/v1/proxy/ask", tag = "operations",
    params(("domain" = String, Query, description = "A host name")),
    responses((status = 200, content_type = "text/plain", body = String)))]
pub(crate) async fn ask(
    api: Data<Api>,
    request: HttpRequest,
    query: Query,
) -> Result<HttpResponse, ApiError> {
    let mut query = query.read()?;
    let domain = query.required::<String>("domain");
    query.finish_query()?;
    let host = domain?.trim_end_matches('.').to_ascii_lowercase();
    if is_local(&request) && api.services.applications.is_served(&host).await? {
        return Ok(HttpResponse::Ok().content_type("text/plain; charset=utf-8").body("served\n"));
    }
    Err(Error::NotFound("an application with this name").into())
}
