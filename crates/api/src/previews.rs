//! The endpoints of previews.

use actix_web::web::Data;
use launchway_application::previews::PreviewChange;
use launchway_domain::{
    applications::{VariableNames, Variables},
    auth::{Action, Permission, Resource},
    deployments::CommitHash,
    ids::ApplicationId,
    previews::{PreviewLifetime, PreviewLimit},
    webhooks::RequestNumber,
};

use crate::{
    Api,
    body::Body,
    caller::Caller,
    endpoint::Endpoint,
    envelope::{Reply, success},
    error::Code,
    input::input,
    query::Query,
    views::previews::{PreviewSettingsView, PreviewView, PreviewsView},
};

const CREATE: Permission = Permission::new(Resource::Deploy, Action::Create);
const READ: Permission = Permission::new(Resource::Deploy, Action::Read);
const UPDATE: Permission = Permission::new(Resource::Deploy, Action::Update);

const LIST: &str = "/api/v1/deploy/application/previews";
const SETTINGS: &str = "/api/v1/deploy/application/previews/settings";
const APPROVE: &str = "/api/v1/deploy/application/previews/approve";

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get(LIST, "list_previews", list_previews)
            .summary("List the previews of an application")
            .about("Those that run, and those of requests from forks that wait for an approval.")
            .cli("launchway previews list <APP>")
            .requires(READ)
            .fails(&[Code::NotFound]),
        Endpoint::post(APPROVE, "approve_preview", approve_preview)
            .summary("Approve the preview of a request from a fork")
            .about("The commit is deployed. Another commit of the request needs another approval.")
            .cli("launchway previews approve <APP> <NUMBER>")
            .requires(CREATE)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::get(SETTINGS, "preview_settings", preview_settings)
            .summary("Get the preview settings of an application")
            .cli("launchway previews settings <APP>")
            .requires(READ)
            .fails(&[Code::NotFound]),
        Endpoint::put(SETTINGS, "update_preview_settings", update_preview_settings)
            .summary("Update the preview settings of an application")
            .about("Absent fields keep their values.")
            .cli("launchway previews set <APP>")
            .requires(UPDATE)
            .fails(&[Code::Conflict, Code::NotFound]),
    ]
}

input! {
    struct PreviewsQuery {
        /// Id of an application of this organization
        id: ApplicationId,
    }
}

input! {
    struct ApprovePreview {
        /// An application of this organization.
        id: ApplicationId,
        /// The number of the pull or merge request.
        number: RequestNumber,
        /// The head of the request that you looked at: 409 if it has moved since.
        commit: CommitHash,
    }
}

input! {
    /// Absent fields keep their values.
    struct UpdatePreviewSettings {
        /// True if pull and merge requests get previews.
        enabled: Option<bool>,
        /// The most previews at once.
        limit: Option<PreviewLimit>,
        /// The hours after which a preview is removed, counted from the last change of its request.
        lifetime_hours: Option<PreviewLifetime>,
        /// The names of those variables of the application that its previews get too; an empty array for none.
        shared_variables: Option<VariableNames>,
        /// True if previews run the commands of the application before and after a deployment.
        run_commands: Option<bool>,
        /// The build variables of previews.
        build_variables: Option<Variables>,
        /// The environment variables of previews.
        environment_variables: Option<Variables>,
    }
}

impl From<UpdatePreviewSettings> for PreviewChange {
    fn from(body: UpdatePreviewSettings) -> Self {
        Self {
            enabled: body.enabled,
            limit: body.limit,
            lifetime: body.lifetime_hours,
            shared: body.shared_variables,
            run_commands: body.run_commands,
            build_variables: body.build_variables,
            environment_variables: body.environment_variables,
        }
    }
}

async fn list_previews(api: Data<Api>, caller: Caller, query: Query<PreviewsQuery>) -> Reply<PreviewsView> {
    let PreviewsQuery { id } = query.read()?;
    let found = api.services.previews.list(&caller, id).await?;
    Ok(success("Previews retrieved successfully", found.into()))
}

async fn approve_preview(api: Data<Api>, caller: Caller, body: Body<ApprovePreview>) -> Reply<PreviewView> {
    let ApprovePreview { id, number, commit } = body.read().await?;
    let approved = api.services.previews.approve(&caller, id, number, &commit).await?;
    Ok(success("Preview approved successfully", approved.into()))
}

async fn preview_settings(
    api: Data<Api>,
    caller: Caller,
    query: Query<PreviewsQuery>,
) -> Reply<PreviewSettingsView> {
    let PreviewsQuery { id } = query.read()?;
    let settings = api.services.previews.settings(&caller, id).await?;
    Ok(success("Preview settings retrieved successfully", settings.into()))
}

async fn update_preview_settings(
    api: Data<Api>,
    caller: Caller,
    query: Query<PreviewsQuery>,
    body: Body<UpdatePreviewSettings>,
) -> Reply<PreviewSettingsView> {
    let PreviewsQuery { id } = query.read()?;
    let change = body.read().await?.into();
    let settings = api.services.previews.change(&caller, id, change).await?;
    Ok(success("Preview settings updated successfully", settings.into()))
}
