//! The endpoints of organizations and their members.

mod requests;
mod views;

use actix_web::{HttpResponse, web::Data};
use launchway_application::organizations::Added;
use launchway_domain::auth::{Action, Permission, Resource};

pub(crate) use self::views::{MembershipView, OrganizationView};
use self::{
    requests::{
        AddMember, ChangeMember, CreateOrganization, OrganizationUsers, RemoveMember, UpdateOrganization,
    },
    views::{AddedMemberView, DeployKeyView, UsageView},
};
use crate::{
    Api,
    body::{Body, NoFields},
    caller::Caller,
    envelope::{Envelope, Nothing, Reply, success},
    error::ApiError,
    idempotent::Idempotent,
    query::Query,
    routes::Routes,
};

/// The permission of requests with an `Idempotency-Key`, also when they are repeated.
const CREATE: Permission = Permission::new(Resource::Organization, Action::Create);

pub(crate) fn routes(routes: &mut Routes) {
    routes
        .get("/api/v1/organizations", organization)
        .post("/api/v1/organizations", create_organization)
        .put("/api/v1/organizations", update_organization)
        .delete("/api/v1/organizations", delete_organization)
        .get("/api/v1/organizations/deploy-key", deploy_key)
        .post("/api/v1/organizations/deploy-key", rotate_deploy_key)
        .get("/api/v1/organizations/usage", organization_usage)
        .get("/api/v1/organizations/users", organization_users)
        .post("/api/v1/organizations/users", add_organization_user)
        .patch("/api/v1/organizations/users", change_organization_user)
        .delete("/api/v1/organizations/users", remove_organization_user);
}

/// Get an organization with its users: this one, or that of `id`
#[utoipa::path(get, path = "/api/v1/organizations", tag = "organizations", security(("bearer" = [])),
    params(("id" = Option<String>, Query, description = "Id of one of your organizations; default: the current one")),
    responses((status = 200, body = Envelope<OrganizationView>)))]
pub(crate) async fn organization(api: Data<Api>, caller: Caller, query: Query) -> Reply<OrganizationView> {
    let mut query = query.read()?;
    let id = query.id("id");
    query.finish_query()?;
    let detail = api.services.organizations.detail(&caller, id?).await?;
    Ok(success("Organization fetched successfully", (&detail).into()))
}

/// Create an organization, with the caller as its admin
#[utoipa::path(post, path = "/api/v1/organizations", tag = "organizations", security(("bearer" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated key returns the first response")),
    request_body = CreateOrganization, responses((status = 200, body = Envelope<OrganizationView>)))]
pub(crate) async fn create_organization(
    api: Data<Api>,
    caller: Caller,
    body: Idempotent<CreateOrganization>,
) -> Result<HttpResponse, ApiError> {
    let organizations = &api.services.organizations;
    let (wish, once) = body.read(&caller, CREATE).await?;
    // The role in the new organization decides, and not the one in this organization.
    once.showing_current()
        .answer(
            &api,
            "Organization created successfully",
            async |key| organizations.create(&caller, wish.into(), key).await,
            async |id| organizations.detail(&caller, Some(id.into())).await,
            |detail| OrganizationView::from(&detail),
        )
        .await
}

/// Update this organization
#[utoipa::path(put, path = "/api/v1/organizations", tag = "organizations", security(("bearer" = [])),
    request_body = UpdateOrganization, responses((status = 200, body = Envelope<OrganizationView>)))]
pub(crate) async fn update_organization(
    api: Data<Api>,
    caller: Caller,
    body: Body<UpdateOrganization>,
) -> Reply<OrganizationView> {
    let change = body.read().await?.into();
    let detail = api.services.organizations.update(&caller, change).await?;
    Ok(success("Organization updated successfully", (&detail).into()))
}

/// Delete an organization
#[utoipa::path(delete, path = "/api/v1/organizations", tag = "organizations", security(("bearer" = [])),
    params(("id" = String, Query, description = "Id of one of your organizations")),
    responses((status = 200, body = Envelope<Nothing>)))]
pub(crate) async fn delete_organization(api: Data<Api>, caller: Caller, query: Query) -> Reply<Nothing> {
    let mut query = query.read()?;
    let id = query.required_id("id");
    query.finish_query()?;
    api.services.organizations.delete(&caller, id?).await?;
    Ok(success("Organization deleted successfully", Nothing))
}

/// Get the public deploy key of this organization
#[utoipa::path(get, path = "/api/v1/organizations/deploy-key", tag = "organizations", security(("bearer" = [])),
    responses((status = 200, body = Envelope<DeployKeyView>)))]
pub(crate) async fn deploy_key(api: Data<Api>, caller: Caller) -> Reply<DeployKeyView> {
    let public_key = api.services.deploy_keys.public_key(&caller).await?;
    Ok(success("Deploy key retrieved successfully", DeployKeyView { public_key }))
}

/// Rotate the deploy key of this organization
///
/// Repositories that have only the old one reject Launchway from then on.
#[utoipa::path(post, path = "/api/v1/organizations/deploy-key", tag = "organizations", security(("bearer" = [])),
    responses((status = 200, body = Envelope<DeployKeyView>)))]
pub(crate) async fn rotate_deploy_key(
    api: Data<Api>,
    caller: Caller,
    body: Body<NoFields>,
) -> Reply<DeployKeyView> {
    body.read().await?;
    let public_key = api.services.deploy_keys.rotate(&caller).await?;
    Ok(success("Deploy key replaced successfully", DeployKeyView { public_key }))
}

/// Get usage and limit of each quota of an organization
///
/// A limit of 0 means no limit. `log_streams` and `user_log_streams` are those of the responding server,
/// the latter your own.
#[utoipa::path(get, path = "/api/v1/organizations/usage", tag = "organizations", security(("bearer" = [])),
    params(("id" = Option<String>, Query, description = "Id of one of your organizations; default: the current one")),
    responses((status = 200, body = Envelope<UsageView>)))]
pub(crate) async fn organization_usage(api: Data<Api>, caller: Caller, query: Query) -> Reply<UsageView> {
    let mut query = query.read()?;
    let id = query.id("id");
    query.finish_query()?;
    let usage = api.services.quotas.usage(&caller, id?).await?;
    Ok(success("Usage fetched successfully", UsageView::from(usage.as_slice())))
}

/// List the members of an organization
///
/// The organization is that of `id` in the body, else in the query, else this one.
#[utoipa::path(get, path = "/api/v1/organizations/users", tag = "organizations", security(("bearer" = [])),
    params(("id" = Option<String>, Query, description = "Id of one of your organizations; default: the current one")),
    request_body = Option<OrganizationUsers>,
    responses((status = 200, body = Envelope<Vec<MembershipView>>)))]
pub(crate) async fn organization_users(
    api: Data<Api>,
    caller: Caller,
    query: Query,
    body: Body<OrganizationUsers>,
) -> Reply<Vec<MembershipView>> {
    let mut query = query.read()?;
    let in_query = query.id("id");
    query.finish_query()?;
    let id = body.read().await?.id.or(in_query?);
    let detail = api.services.organizations.detail(&caller, id).await?;
    let members = detail.members.iter().map(|member| MembershipView::whole(&detail.organization, member));
    Ok(success("Users fetched successfully", members.collect()))
}

/// Add a member to this organization, or invite them
///
/// A user without an account gets one, and sets the first password with `setup_token`, once, within 24
/// hours. A user with an account is invited and has no role before they accept; while their e-mail address
/// is not verified, they need `setup_token` for that, within 7 days.
#[utoipa::path(post, path = "/api/v1/organizations/users", tag = "organizations", security(("bearer" = [])),
    request_body = AddMember, responses((status = 200, body = Envelope<AddedMemberView>)))]
pub(crate) async fn add_organization_user(
    api: Data<Api>,
    caller: Caller,
    body: Body<AddMember>,
) -> Reply<AddedMemberView> {
    let wish = body.read().await?.into();
    let added = api.services.organizations.add_member(&caller, wish).await?;
    let message = match added {
        Added::Member(_) => "User added to the organization successfully",
        Added::Invited(_) => "User invited to the organization successfully",
    };
    Ok(success(message, added.into()))
}

/// Change a member's role
#[utoipa::path(patch, path = "/api/v1/organizations/users", tag = "organizations", security(("bearer" = [])),
    request_body = ChangeMember, responses((status = 200, body = Envelope<MembershipView>)))]
pub(crate) async fn change_organization_user(
    api: Data<Api>,
    caller: Caller,
    body: Body<ChangeMember>,
) -> Reply<MembershipView> {
    let ChangeMember { user_id, role } = body.read().await?;
    let (organization, member) = api.services.organizations.change_role(&caller, user_id, role).await?;
    Ok(success("User role updated successfully", MembershipView::whole(&organization, &member)))
}

/// Remove a member from this organization, withdraw an invitation, or leave
#[utoipa::path(delete, path = "/api/v1/organizations/users", tag = "organizations", security(("bearer" = [])),
    request_body = RemoveMember, responses((status = 200, body = Envelope<Nothing>)))]
pub(crate) async fn remove_organization_user(
    api: Data<Api>,
    caller: Caller,
    body: Body<RemoveMember>,
) -> Reply<Nothing> {
    let RemoveMember { user_id } = body.read().await?;
    api.services.organizations.remove_member(&caller, user_id).await?;
    Ok(success("User removed from the organization successfully", Nothing))
}
