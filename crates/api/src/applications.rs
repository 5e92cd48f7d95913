//! The endpoints of `/api/v1/deploy/application`.

mod certificates;
pub(crate) mod domains;
mod requests;
mod source;

use actix_web::web::Data;
use launchway_domain::{
    applications::{ApplicationFilter, ApplicationState, Environment},
    auth::{Action, Permission, Resource},
    clock::Timestamp,
    ids::ApplicationId,
};

pub(crate) use self::source::describe;
use self::{
    certificates::with_certificates,
    requests::{CreateApplication, UpdateApplication, WhichApplication},
};
use crate::{
    Api,
    body::Body,
    caller::Caller,
    endpoint::Endpoint,
    envelope::{Envelope, Nothing, Reply, success},
    error::{ApiError, Code},
    fields::{Choice, SearchTerm},
    idempotent::{Idempotent, Stored},
    input::input,
    pages::Paged,
    query::Query,
    views::applications::{ApplicationView, ApplicationsView},
};

const CREATE: Permission = Permission::new(Resource::Deploy, Action::Create);
const READ: Permission = Permission::new(Resource::Deploy, Action::Read);
const UPDATE: Permission = Permission::new(Resource::Deploy, Action::Update);
const DELETE: Permission = Permission::new(Resource::Deploy, Action::Delete);

pub(crate) fn endpoints() -> Vec<Endpoint> {
    let mut endpoints = vec![
        Endpoint::post("/api/v1/deploy/application", "create_application", create_application)
            .summary("Create and deploy an application")
            .cli("launchway deploy")
            .requires(CREATE)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::get("/api/v1/deploy/application", "application", application)
            .summary("Get an application with its deployments and newest log lines")
            .cli("launchway app show <APP>")
            .requires(READ)
            .fails(&[Code::NotFound]),
        Endpoint::put("/api/v1/deploy/application", "update_application", update_application)
            .summary("Update an application, and deploy it again unless `redeploy` is false")
            .cli("launchway app edit <APP>")
            .about(
                "Absent fields keep their values. 400 if nothing would change, unless `redeploy` is true. If only `replicas` \
                 changes, copies are started or stopped, and nothing is deployed unless `redeploy` is true.",
            )
            .requires(UPDATE)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::delete("/api/v1/deploy/application", "delete_application", delete_application)
            .summary("Delete an application and all of its resources")
            .cli("launchway app delete <APP>")
            .requires(DELETE)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::get("/api/v1/deploy/applications", "list_applications", list_applications)
            .summary("List the applications of this organization, newest first")
            .cli("launchway apps")
            .requires(READ),
        Endpoint::post("/api/v1/deploy/application/restart", "restart_application", restart_application)
            .summary("Restart an application")
            .cli("launchway restart <APP>")
            .requires(UPDATE)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::post("/api/v1/deploy/application/stop", "stop_application", stop_application)
            .summary("Stop an application")
            .cli("launchway stop <APP>")
            .requires(UPDATE)
            .fails(&[Code::Conflict, Code::NotFound]),
    ];
    endpoints.extend(certificates::endpoints());
    endpoints.extend(domains::endpoints());
    endpoints.extend(source::endpoints());
    endpoints
}

input! {
    struct ApplicationQuery {
        /// Id of an application of this organization
        id: ApplicationId,
    }
}

input! {
    struct UpdateApplicationQuery {
        /// Id of an application of this organization
        id: ApplicationId,
        /// False to deploy it later; true to deploy it even if nothing changes
        redeploy: Option<Choice>,
        /// Expected `updated_at`: 409 if it has changed
        unchanged_since: Option<Timestamp>,
    }
}

input! {
    struct ListApplications {
        page: Paged<10, 100>,
        /// Text in name, repository or domain, ignoring case
        search: Option<SearchTerm>,
        /// Only those of this environment
        environment: Option<Environment>,
        /// Only those with this status
        status: Option<ApplicationState>,
    }
}

async fn create_application(
    api: Data<Api>,
    caller: Caller,
    body: Idempotent<CreateApplication>,
) -> Result<Stored<Envelope<ApplicationView>>, ApiError> {
    let applications = &api.services.applications;
    let (request, once) = body.read(&caller, CREATE).await?;
    once.answer(
        &api,
        "Deployment created successfully",
        async |key| {
            with_certificates(&api, &caller, applications.create(&caller, request.into(), key).await?).await
        },
        async |id| with_certificates(&api, &caller, applications.written(&caller, id.into()).await?).await,
        std::convert::identity,
    )
    .await
}

async fn application(
    api: Data<Api>,
    caller: Caller,
    query: Query<ApplicationQuery>,
) -> Reply<ApplicationView> {
    let ApplicationQuery { id } = query.read()?;
    let detail = api.services.applications.detail(&caller, id).await?;
    Ok(success("Application retrieved successfully", with_certificates(&api, &caller, detail).await?))
}

async fn update_application(
    api: Data<Api>,
    caller: Caller,
    query: Query<UpdateApplicationQuery>,
    body: Body<UpdateApplication>,
) -> Reply<ApplicationView> {
    let UpdateApplicationQuery { id, redeploy, unchanged_since } = query.read()?;
    let redeploy = redeploy.map(|choice| choice.0);
    let change = body.read().await?.into();
    let applications = &api.services.applications;
    let detail = applications.update(&caller, id, change, redeploy, unchanged_since).await?;
    Ok(success("Application updated successfully", with_certificates(&api, &caller, detail).await?))
}

async fn delete_application(
    api: Data<Api>,
    caller: Caller,
    query: Query<ApplicationQuery>,
) -> Reply<Nothing> {
    let ApplicationQuery { id } = query.read()?;
    api.services.applications.delete(&caller, id).await?;
    Ok(success("Application deleted successfully", Nothing))
}

async fn list_applications(
    api: Data<Api>,
    caller: Caller,
    query: Query<ListApplications>,
) -> Reply<ApplicationsView> {
    let ListApplications { page, search, environment, status } = query.read()?;
    let filter = ApplicationFilter { search: search.map(Into::into), environment, state: status };
    let found = api.services.applications.list(&caller, &filter, page.0).await?;
    let ids: Vec<ApplicationId> = found.items.iter().map(|(summary, _)| summary.application.id).collect();
    let certificates = api.services.certificates.of_applications(&caller, &ids).await?;
    let policies = api.services.certificates.hsts_of(&caller, &ids).await?;
    Ok(success("Applications retrieved successfully", ApplicationsView::new(found, &certificates, &policies)))
}

async fn restart_application(
    api: Data<Api>,
    caller: Caller,
    body: Body<WhichApplication>,
) -> Reply<ApplicationView> {
    let WhichApplication { id } = body.read().await?;
    let detail = api.services.applications.restart(&caller, id).await?;
    Ok(success("Application restart requested successfully", with_certificates(&api, &caller, detail).await?))
}

async fn stop_application(
    api: Data<Api>,
    caller: Caller,
    body: Body<WhichApplication>,
) -> Reply<ApplicationView> {
    let WhichApplication { id } = body.read().await?;
    let detail = api.services.applications.stop(&caller, id).await?;
    Ok(success("Application stopped successfully", with_certificates(&api, &caller, detail).await?))
}
