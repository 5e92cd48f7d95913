//! The domains of applications, and the check for certificates.

use actix_web::{HttpRequest, HttpResponse, web::Data};
use launchway_application::Error;
use launchway_domain::{
    applications::Hostname,
    auth::{Action, Permission, Resource},
    ids::ApplicationId,
};
use serde_json::json;

use super::certificates::with_certificates;
use crate::{
    Api,
    body::Body,
    caller::Caller,
    client::is_local,
    endpoint::Endpoint,
    envelope::{Reply, success},
    error::{ApiError, Code},
    input::input,
    query::Query,
    views::applications::ApplicationView,
};

const UPDATE: Permission = Permission::new(Resource::Deploy, Action::Update);

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post("/api/v1/deploy/application/domains", "add_domain", add_domain)
            .summary("Add a domain to an application")
            .cli("launchway domains add <APP> <DOMAIN>")
            .requires(UPDATE)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::delete("/api/v1/deploy/application/domains", "remove_domain", remove_domain)
            .summary("Remove a domain from an application")
            .cli("launchway domains remove <APP> <DOMAIN>")
            .requires(UPDATE)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::get("/api/v1/proxy/ask", "ask", ask)
            .summary("Check that a domain belongs to an application, and so may have a certificate")
            .about("")
            .responds("text/plain", |_| json!({"type": "string"}))
            .about("For a Caddy on the machine of the server; for every other caller no domain does.")
            .fails(&[Code::NotFound]),
    ]
}

input! {
    pub(crate) struct DomainOfApplication {
        pub(super) id: ApplicationId,
        pub(super) domain: Hostname,
    }
}

async fn add_domain(
    api: Data<Api>,
    caller: Caller,
    body: Body<DomainOfApplication>,
) -> Reply<ApplicationView> {
    let DomainOfApplication { id, domain } = body.read().await?;
    let detail = api.services.applications.add_domain(&caller, id, domain).await?;
    Ok(success("Domain added successfully", with_certificates(&api, &caller, detail).await?))
}

async fn remove_domain(
    api: Data<Api>,
    caller: Caller,
    body: Body<DomainOfApplication>,
) -> Reply<ApplicationView> {
    let DomainOfApplication { id, domain } = body.read().await?;
    let detail = api.services.applications.remove_domain(&caller, id, domain).await?;
    Ok(success("Domain removed successfully", with_certificates(&api, &caller, detail).await?))
}

input! {
    struct AskQuery {
        /// A host name
        domain: String,
    }
}

async fn ask(api: Data<Api>, request: HttpRequest, query: Query<AskQuery>) -> Result<HttpResponse, ApiError> {
    let host = query.read()?.domain.trim_end_matches('.').to_ascii_lowercase();
    if is_local(&request) && api.services.applications.is_served(&host).await? {
        return Ok(HttpResponse::Ok().content_type("text/plain; charset=utf-8").body("served\n"));
    }
    Err(Error::NotFound("an application with this name").into())
}
