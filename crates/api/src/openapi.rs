//! The OpenAPI document, generated from the handlers.

use std::sync::LazyLock;

use actix_web::{
    HttpResponse,
    http::header::{CACHE_CONTROL, ContentType},
};
use utoipa::{
    Modify, OpenApi,
    openapi::{
        Content, KnownFormat, ObjectBuilder, PathItem, RefOr, ResponseBuilder, SchemaFormat, Type,
        path::{Operation, ParameterBuilder, ParameterIn},
        schema,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use crate::{
    applications::{self, ApplicationStatusView, ApplicationView},
    audit, auth,
    deployments::{self, DeploymentStatusView, DeploymentView},
    docs,
    envelope::ErrorEnvelope,
    error::ApiError,
    extensions::{self, ExecutionStepView, ExecutionView, ExtensionVariableView, ExtensionView},
    health, invitations,
    logs::{self, LogView},
    metrics, notifications,
    organizations::{self, MembershipView, OrganizationView},
    routes::Routes,
    users::{self, UserView},
    webhooks,
};

pub(crate) fn routes(routes: &mut Routes) {
    routes.get("/api/v1/openapi.json", openapi_document);
}

#[derive(OpenApi)]
#[openapi(
    info(title = "Launchway", description = "Deploys applications from a git repository."),
    // Recursive types are found only by name.
    components(schemas(
        ApplicationStatusView,
        ApplicationView,
        DeploymentStatusView,
        DeploymentView,
        ErrorEnvelope,
        ExecutionStepView,
        ExecutionView,
        ExtensionVariableView,
        ExtensionView,
        LogView,
        MembershipView,
        OrganizationView,
        UserView,
    )),
    modifiers(&Security, &Organization, &Failures),
    paths(
        auth::is_admin_registered,
        auth::register,
        auth::log_in,
        auth::log_out,
        auth::set_up_password,
        auth::list_tokens,
        auth::issue_token,
        auth::revoke_token,
        auth::set_up_two_factor,
        auth::enable_two_factor,
        auth::disable_two_factor,
        users::user,
        users::rename,
        users::change_password,
        users::user_organizations,
        users::settings,
        users::change_auto_update,
        users::change_font,
        users::change_language,
        users::change_theme,
        organizations::create_organization,
        organizations::organization,
        organizations::update_organization,
        organizations::delete_organization,
        organizations::deploy_key,
        organizations::rotate_deploy_key,
        organizations::organization_usage,
        organizations::organization_users,
        organizations::add_organization_user,
        organizations::change_organization_user,
        organizations::remove_organization_user,
        invitations::list_invitations,
        invitations::list_own_invitations,
        invitations::accept_invitation,
        invitations::decline_invitation,
        applications::create_application,
        applications::application,
        applications::update_application,
        applications::delete_application,
        applications::list_applications,
        applications::restart_application,
        applications::stop_application,
        applications::domains::add_domain,
        applications::domains::remove_domain,
        applications::domains::ask,
        deployments::redeploy_application,
        deployments::roll_back,
        deployments::cancel_deployment,
        deployments::list_deployments,
        deployments::deployment,
        logs::application_logs,
        logs::deployment_logs,
        logs::stream_deployment_logs,
        extensions::list_extensions,
        extensions::extension_categories,
        extensions::extension,
        extensions::run_extension,
        extensions::fork_extension,
        extensions::uninstall_extension,
        extensions::delete_extension,
        extensions::executions::extension_executions,
        extensions::executions::execution,
        extensions::executions::execution_logs,
        extensions::executions::cancel_execution,
        webhooks::receive,
        webhooks::receive_by_doubled_prefix,
        webhooks::webhook_secret,
        webhooks::rotate_webhook_secret,
        notifications::create_webhook,
        notifications::create_webhook_by_doubled_prefix,
        notifications::update_webhook,
        notifications::webhook,
        notifications::delete_webhook,
        notifications::rotate_signing_secret,
        notifications::smtp,
        notifications::create_smtp,
        notifications::update_smtp,
        notifications::delete_smtp,
        notifications::delete_smtp_by_doubled_prefix,
        notifications::try_channel,
        notifications::list_deliveries,
        notifications::replay_delivery,
        audit::audit_logs,
        health::health,
        health::api_health,
        health::ready,
        metrics::metrics,
        docs::docs_page,
        openapi_document,
    )
)]
struct Document;

/// Returns the OpenAPI document of every mounted operation.
#[must_use]
pub fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// Get the OpenAPI 3.1 document
#[utoipa::path(get, path = "/api/v1/openapi.json", tag = "operations",
    responses((status = 200, content_type = "application/json")))]
pub(crate) async fn openapi_document() -> Result<HttpResponse, ApiError> {
    let json = JSON.as_ref().map_err(|error| ApiError::internal(error.as_str()))?;
    Ok(HttpResponse::Ok()
        .insert_header(ContentType::json())
        .insert_header((CACHE_CONTROL, "no-store"))
        .body(json.as_str()))
}

/// Serialized once: the document never changes while the server runs.
static JSON: LazyLock<Result<String, String>> =
    LazyLock::new(|| document().to_json().map_err(|error| error.to_string()));

/// Adds the security scheme.
struct Security;

impl Modify for Security {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("A session token from /api/v1/auth/login, or an API token"))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    }
}

/// Adds the header of the organization to every authenticated operation.
struct Organization;

impl Modify for Organization {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let id = ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)))
            .build();
        let header = ParameterBuilder::new()
            .name("X-Organization-Id")
            .parameter_in(ParameterIn::Header)
            .description(Some(
                "The organization to act in; without it that of the oldest membership. An API token acts in its own",
            ))
            .schema(Some(id))
            .build();
        let guarded = operations(document).filter(|operation| operation.security.is_some());
        for operation in guarded {
            operation.parameters.get_or_insert_default().push(header.clone());
        }
    }
}

/// Adds the error envelope to every operation.
struct Failures;

impl Modify for Failures {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let failure = ResponseBuilder::new()
            .description("Error; `error` is one of the codes of docs/errors.md")
            .content(
                "application/json",
                Content::new(Some(RefOr::Ref(schema::Ref::from_schema_name("ErrorEnvelope")))),
            )
            .build();
        for operation in operations(document) {
            operation.responses.responses.insert("default".to_owned(), RefOr::T(failure.clone()));
        }
    }
}

fn operations(document: &mut utoipa::openapi::OpenApi) -> impl Iterator<Item = &mut Operation> {
    document.paths.paths.values_mut().flat_map(|item| {
        let PathItem { get, post, put, patch, delete, .. } = item;
        [get, post, put, patch, delete].into_iter().flatten()
    })
}
