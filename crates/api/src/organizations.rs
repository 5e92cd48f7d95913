//! The endpoints of organizations and their members.

mod requests;

use actix_web::web::Data;
use launchway_application::organizations::Added;
use launchway_domain::auth::{Action, Permission, Resource};

use self::requests::{
    AddMember, AnOrganization, ChangeMember, CreateOrganization, RemoveMember, TheOrganization,
    UpdateOrganization,
};
use crate::{
    Api,
    body::Body,
    caller::Caller,
    endpoint::Endpoint,
    envelope::{Envelope, List, Nothing, Reply, success},
    error::{ApiError, Code},
    idempotent::{Idempotent, Stored},
    input::NoFields,
    query::Query,
    views::organizations::{AddedMemberView, DeployKeyView, MembershipView, OrganizationView, UsageView},
};

const CREATE: Permission = Permission::new(Resource::Organization, Action::Create);
const READ: Permission = Permission::new(Resource::Organization, Action::Read);
const UPDATE: Permission = Permission::new(Resource::Organization, Action::Update);
const DELETE: Permission = Permission::new(Resource::Organization, Action::Delete);

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/api/v1/organizations", "organization", organization)
            .summary("Get an organization with its users: this one, or that of `id`")
            .cli("launchway org show")
            .requires(READ)
            .fails(&[Code::NotFound]),
        Endpoint::post("/api/v1/organizations", "create_organization", create_organization)
            .summary("Create an organization, with the caller as its admin")
            .cli("launchway org create <NAME>")
            .requires(CREATE)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::put("/api/v1/organizations", "update_organization", update_organization)
            .summary("Update this organization")
            .cli("launchway org rename <NAME>")
            .requires(UPDATE)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::delete("/api/v1/organizations", "delete_organization", delete_organization)
            .summary("Delete an organization")
            .cli("launchway org delete <NAME>")
            .about("Its API tokens become invalid. 409 while it has applications, or objects that extensions created.")
            .requires(DELETE)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::get("/api/v1/organizations/deploy-key", "deploy_key", deploy_key)
            .summary("Get the public deploy key of this organization")
            .cli("launchway deploy-key")
            .about("Add it to private repositories. Created on first use.")
            .requires(READ)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::post("/api/v1/organizations/deploy-key", "rotate_deploy_key", rotate_deploy_key)
            .summary("Rotate the deploy key of this organization")
            .cli("launchway deploy-key --rotate")
            .about("Repositories that have only the old one reject Launchway from then on.")
            .requires(UPDATE)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::get("/api/v1/organizations/usage", "organization_usage", organization_usage)
            .summary("Get usage and limit of each quota of an organization")
            .cli("launchway org usage")
            .about("A limit of 0 means no limit. `log_streams` and `user_log_streams` are those of the responding server, the latter your own.")
            .requires(READ)
            .fails(&[Code::NotFound]),
        Endpoint::get("/api/v1/organizations/users", "organization_users", organization_users)
            .summary("List the members of an organization")
            .cli("launchway members list")
            .about("The organization is that of `id` in the body, else in the query, else this one.")
            .requires(READ)
            .fails(&[Code::NotFound]),
        Endpoint::post("/api/v1/organizations/users", "add_organization_user", add_organization_user)
            .summary("Add a member to this organization, or invite them")
            .cli("launchway members add --role <ROLE> <EMAIL>")
            .about("A user without an account gets one, and sets the first password with `setup_token`, once, within 24 hours. A user with an account is invited and has no role before they accept; while their e-mail address is not verified, they need `setup_token` for that, within 7 days.")
            .requires(UPDATE)
            .fails(&[Code::Conflict, Code::NotFound, Code::RateLimited]),
        Endpoint::patch("/api/v1/organizations/users", "change_organization_user", change_organization_user)
            .summary("Change a member's role")
            .cli("launchway members role <WHO> <ROLE>")
            .requires(UPDATE)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::delete("/api/v1/organizations/users", "remove_organization_user", remove_organization_user)
            .summary("Remove a member from this organization, withdraw an invitation, or leave")
            .cli("launchway members remove <WHO>")
            .about("Requires the permission `organization:update`, except to leave, which every member may with a session.")
            .fails(&[Code::Conflict, Code::NotFound]),
    ]
}

async fn organization(
    api: Data<Api>,
    caller: Caller,
    query: Query<AnOrganization>,
) -> Reply<OrganizationView> {
    let AnOrganization { id } = query.read()?;
    let detail = api.services.organizations.detail(&caller, id).await?;
    Ok(success("Organization fetched successfully", (&detail).into()))
}

async fn create_organization(
    api: Data<Api>,
    caller: Caller,
    body: Idempotent<CreateOrganization>,
) -> Result<Stored<Envelope<OrganizationView>>, ApiError> {
    let organizations = &api.services.organizations;
    let (request, once) = body.read(&caller, CREATE).await?;
    // The role in the new organization decides, and not the one in this organization.
    once.showing_current()
        .answer(
            &api,
            "Organization created successfully",
            async |key| organizations.create(&caller, request.into(), key).await,
            async |id| organizations.detail(&caller, Some(id.into())).await,
            |detail| OrganizationView::from(&detail),
        )
        .await
}

async fn update_organization(
    api: Data<Api>,
    caller: Caller,
    body: Body<UpdateOrganization>,
) -> Reply<OrganizationView> {
    let change = body.read().await?.into();
    let detail = api.services.organizations.update(&caller, change).await?;
    Ok(success("Organization updated successfully", (&detail).into()))
}

async fn delete_organization(
    api: Data<Api>,
    caller: Caller,
    query: Query<TheOrganization>,
) -> Reply<Nothing> {
    let TheOrganization { id } = query.read()?;
    api.services.organizations.delete(&caller, id).await?;
    Ok(success("Organization deleted successfully", Nothing))
}

async fn deploy_key(api: Data<Api>, caller: Caller) -> Reply<DeployKeyView> {
    let public_key = api.services.deploy_keys.public_key(&caller).await?;
    Ok(success("Deploy key retrieved successfully", DeployKeyView { public_key }))
}

async fn rotate_deploy_key(api: Data<Api>, caller: Caller, body: Body<NoFields>) -> Reply<DeployKeyView> {
    body.read().await?;
    let public_key = api.services.deploy_keys.rotate(&caller).await?;
    Ok(success("Deploy key replaced successfully", DeployKeyView { public_key }))
}

async fn organization_usage(
    api: Data<Api>,
    caller: Caller,
    query: Query<AnOrganization>,
) -> Reply<UsageView> {
    let AnOrganization { id } = query.read()?;
    let usage = api.services.quotas.usage(&caller, id).await?;
    Ok(success("Usage fetched successfully", UsageView::from(usage.as_slice())))
}

async fn organization_users(
    api: Data<Api>,
    caller: Caller,
    query: Query<AnOrganization>,
    body: Body<AnOrganization>,
) -> Reply<List<MembershipView>> {
    let in_query = query.read()?.id;
    let id = body.read().await?.id.or(in_query);
    let detail = api.services.organizations.detail(&caller, id).await?;
    let members = detail.members.iter().map(|member| MembershipView::whole(&detail.organization, member));
    Ok(success("Users fetched successfully", members.collect()))
}

async fn add_organization_user(
    api: Data<Api>,
    caller: Caller,
    body: Body<AddMember>,
) -> Reply<AddedMemberView> {
    let request = body.read().await?.into();
    let added = api.services.organizations.add_member(&caller, request).await?;
    let message = match added {
        Added::Member(_) => "User added to the organization successfully",
        Added::Invited(_) => "User invited to the organization successfully",
    };
    Ok(success(message, added.into()))
}

async fn change_organization_user(
    api: Data<Api>,
    caller: Caller,
    body: Body<ChangeMember>,
) -> Reply<MembershipView> {
    let ChangeMember { user_id, role } = body.read().await?;
    let (organization, member) = api.services.organizations.change_role(&caller, user_id, role).await?;
    Ok(success("User role updated successfully", MembershipView::whole(&organization, &member)))
}

async fn remove_organization_user(
    api: Data<Api>,
    caller: Caller,
    body: Body<RemoveMember>,
) -> Reply<Nothing> {
    let RemoveMember { user_id } = body.read().await?;
    api.services.organizations.remove_member(&caller, user_id).await?;
    Ok(success("User removed from the organization successfully", Nothing))
}
