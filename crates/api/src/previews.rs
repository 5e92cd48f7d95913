//! The endpoints of previews.

use actix_web::web::Data;
use launchway_application::previews::PreviewChange;
use launchway_domain::{
    applications::{VariableNames, Variables},
    auth::{Action, Permission, Resource},
    deployments::CommitHash,
    ids::ApplicationId,
    previews::{CodeHostApi, CodeHostName, PreviewLifetime, PreviewLimit},
    secret::Secret,
    webhooks::RequestNumber,
};

use crate::{
    Api,
    body::Body,
    caller::Caller,
    endpoint::Endpoint,
    envelope::{Done, Reply, done, success},
    error::{ApiError, Code},
    input::input,
    query::Query,
    views::previews::{
        CodeHostTokenView, CodeHostTokensView, PreviewSettingsView, PreviewView, PreviewsView,
    },
};

const CREATE: Permission = Permission::new(Resource::Deploy, Action::Create);
const READ: Permission = Permission::new(Resource::Deploy, Action::Read);
const UPDATE: Permission = Permission::new(Resource::Deploy, Action::Update);
const READ_TOKENS: Permission = Permission::new(Resource::Organization, Action::Read);
const UPDATE_TOKENS: Permission = Permission::new(Resource::Organization, Action::Update);

const LIST: &str = "/api/v1/deploy/application/previews";
const SETTINGS: &str = "/api/v1/deploy/application/previews/settings";
const APPROVE: &str = "/api/v1/deploy/application/previews/approve";
const TOKENS: &str = "/api/v1/organizations/code-host-tokens";

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
        Endpoint::get(TOKENS, "list_code_host_tokens", list_code_host_tokens)
            .summary("List the tokens for commit statuses")
            .about("Without their values, and with the reason why the last report failed.")
            .cli("launchway previews tokens")
            .requires(READ_TOKENS),
        Endpoint::put(TOKENS, "set_code_host_token", set_code_host_token)
            .summary("Set the token for commit statuses at a code host")
            .about(
                "The progress and the address of each preview are shown beside its request. The token needs the permission to \
                 write commit statuses only.",
            )
            .cli("launchway previews set-token <HOST>")
            .requires(UPDATE_TOKENS)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::delete(TOKENS, "delete_code_host_token", delete_code_host_token)
            .summary("Delete the token for commit statuses at a code host")
            .cli("launchway previews remove-token <HOST>")
            .requires(UPDATE_TOKENS)
            .fails(&[Code::NotFound]),
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

input! {
    struct SetCodeHostToken {
        /// The code host, as in the addresses of repositories.
        host: CodeHostName,
        /// An access token of the code host.
        token: Secret<String>,
        /// The address of its API, if it is not the default of the kind of code host.
        api_url: Option<CodeHostApi>,
    }
}

input! {
    struct CodeHostTokenQuery {
        /// The code host
        host: CodeHostName,
    }
}

async fn list_code_host_tokens(api: Data<Api>, caller: Caller) -> Reply<CodeHostTokensView> {
    let tokens = api.services.previews.tokens(&caller).await?;
    Ok(success("Tokens retrieved successfully", tokens.into()))
}

async fn set_code_host_token(
    api: Data<Api>,
    caller: Caller,
    body: Body<SetCodeHostToken>,
) -> Reply<CodeHostTokenView> {
    let SetCodeHostToken { host, token, api_url } = body.read().await?;
    let stored = api.services.previews.set_token(&caller, host, api_url, &token).await?;
    Ok(success("Token stored successfully", stored.into()))
}

async fn delete_code_host_token(
    api: Data<Api>,
    caller: Caller,
    query: Query<CodeHostTokenQuery>,
) -> Result<Done, ApiError> {
    api.services.previews.remove_token(&caller, query.read()?.host).await?;
    Ok(done("Token deleted successfully"))
}
