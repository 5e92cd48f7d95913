//! Invitations to organizations.

use actix_web::web::{Data, Path};
use launchway_domain::{organizations::InvitationDetail, secret::Secret};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    Api,
    body::{Body, Input, NoFields},
    caller::{Caller, SessionCaller},
    envelope::{Envelope, Nothing, Reply, success},
    error::{ApiError, path_id},
    fields::Fields,
    organizations::{MembershipView, OrganizationView},
    routes::Routes,
    timestamp::Moment,
    users::UserView,
};

pub(crate) fn routes(routes: &mut Routes) {
    routes
        .get("/api/v1/organizations/invitations", list_invitations)
        .get("/api/v1/user/invitations", list_own_invitations)
        .post("/api/v1/user/invitations/{id}/accept", accept_invitation)
        .post("/api/v1/user/invitations/{id}/decline", decline_invitation);
}

#[derive(ToSchema)]
pub(crate) struct AcceptInvitation {
    /// The token that the admin who invited you got. Required unless your e-mail address is verified.
    #[schema(value_type = Option<String>)]
    token: Option<Secret<String>>,
}

impl Input for AcceptInvitation {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let token = fields.optional("token");
        fields.finish()?;
        Ok(Self { token: token? })
    }
}

/// An invitation with its organization and its user, without their relations.
#[derive(Serialize, ToSchema)]
#[schema(as = Invitation)]
pub(crate) struct InvitationView {
    id: Uuid,
    organization_id: Uuid,
    user_id: Uuid,
    #[schema(no_recursion)]
    organization: OrganizationView,
    #[schema(no_recursion)]
    user: UserView,
    #[schema(example = "member")]
    role: &'static str,
    /// The username of the admin who invited them.
    invited_by: String,
    /// True if it needs its token to be accepted, because the e-mail address of the user is not verified.
    needs_token: bool,
    created_at: Moment,
    expires_at: Moment,
}

impl From<&InvitationDetail> for InvitationView {
    fn from(detail: &InvitationDetail) -> Self {
        let InvitationDetail { invitation, organization, user, invited_by } = detail;
        Self {
            id: invitation.id.into(),
            organization_id: invitation.organization_id.into(),
            user_id: invitation.user_id.into(),
            organization: organization.into(),
            user: user.into(),
            role: invitation.role.as_str(),
            invited_by: invited_by.as_str().to_owned(),
            needs_token: detail.needs_token(),
            created_at: invitation.created_at.into(),
            expires_at: invitation.expires_at.into(),
        }
    }
}

/// List invitations of the organization
///
/// Those that can still be accepted, newest first.
#[utoipa::path(get, path = "/api/v1/organizations/invitations", tag = "organizations", security(("bearer" = [])),
    responses((status = 200, body = Envelope<Vec<InvitationView>>)))]
pub(crate) async fn list_invitations(api: Data<Api>, caller: Caller) -> Reply<Vec<InvitationView>> {
    let found = api.services.organizations.invitations(&caller).await?;
    Ok(success("Invitations retrieved successfully", found.iter().map(InvitationView::from).collect()))
}

/// List invitations of the caller
///
/// Those that can still be accepted, newest first.
#[utoipa::path(get, path = "/api/v1/user/invitations", tag = "users", security(("bearer" = [])),
    responses((status = 200, body = Envelope<Vec<InvitationView>>)))]
pub(crate) async fn list_own_invitations(api: Data<Api>, caller: Caller) -> Reply<Vec<InvitationView>> {
    let found = api.services.organizations.invitations_of(&caller).await?;
    Ok(success("Invitations retrieved successfully", found.iter().map(InvitationView::from).collect()))
}

/// Accept invitation
///
/// The caller is a member of the organization from then on. Needs a session, not an API token.
#[utoipa::path(post, path = "/api/v1/user/invitations/{id}/accept", tag = "users", security(("bearer" = [])),
    params(("id" = String, Path, description = "The invitation's id")),
    request_body = AcceptInvitation, responses((status = 200, body = Envelope<MembershipView>)))]
pub(crate) async fn accept_invitation(
    api: Data<Api>,
    caller: SessionCaller,
    id: Path<String>,
    body: Body<AcceptInvitation>,
) -> Reply<MembershipView> {
    let AcceptInvitation { token } = body.read().await?;
    let (organization, member) =
        api.services.organizations.accept(&caller, path_id("id", &id)?, token).await?;
    Ok(success("Invitation accepted successfully", MembershipView::whole(&organization, &member)))
}

/// Decline invitation
///
/// Needs a session, not an API token.
#[utoipa::path(post, path = "/api/v1/user/invitations/{id}/decline", tag = "users", security(("bearer" = [])),
    params(("id" = String, Path, description = "The invitation's id")),
    responses((status = 200, body = Envelope<Nothing>)))]
pub(crate) async fn decline_invitation(
    api: Data<Api>,
    caller: SessionCaller,
    id: Path<String>,
    body: Body<NoFields>,
) -> Reply<Nothing> {
    body.read().await?;
    api.services.organizations.decline(&caller, path_id("id", &id)?).await?;
    Ok(success("Invitation declined successfully", Nothing))
}
