//! Invitations to organizations.

use actix_web::web::Data;
use launchway_domain::{
    auth::{Action, Permission, Resource},
    ids::InvitationId,
    organizations::InvitationDetail,
    secret::Secret,
};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    Api,
    body::Body,
    caller::{Caller, SessionCaller},
    endpoint::Endpoint,
    envelope::{List, Nothing, Reply, success},
    error::Code,
    input::{NoFields, input},
    query::Path,
    timestamp::Moment,
    views::{
        organizations::{MembershipView, OrganizationView},
        users::UserView,
    },
};

const UPDATE: Permission = Permission::new(Resource::Organization, Action::Update);

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/api/v1/organizations/invitations", "list_invitations", list_invitations)
            .summary("List invitations of the organization")
            .about("Those that can still be accepted, newest first.")
            .requires(UPDATE),
        Endpoint::get("/api/v1/user/invitations", "list_own_invitations", list_own_invitations)
            .summary("List invitations of the caller")
            .cli("launchway invitations list")
            .about("Those that can still be accepted, newest first."),
        Endpoint::post("/api/v1/user/invitations/{id}/accept", "accept_invitation", accept_invitation)
            .summary("Accept an invitation")
            .cli("launchway invitations accept <INVITATION>")
            .about("The caller is a member of the organization from then on.")
            .fails(&[Code::InvalidCredentials, Code::NotFound, Code::Conflict, Code::RateLimited]),
        Endpoint::post("/api/v1/user/invitations/{id}/decline", "decline_invitation", decline_invitation)
            .summary("Decline an invitation")
            .cli("launchway invitations decline <INVITATION>")
            .fails(&[Code::NotFound, Code::Conflict]),
    ]
}

input! {
    pub(crate) struct AcceptInvitation {
        /// The token that the admin who invited you got. Required unless your e-mail address is verified.
        token: Option<Secret<String>>,
    }
}

input! {
    struct InvitationPath {
        /// The invitation's id
        id: InvitationId,
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

async fn list_invitations(api: Data<Api>, caller: Caller) -> Reply<List<InvitationView>> {
    let found = api.services.organizations.invitations(&caller).await?;
    Ok(success("Invitations retrieved successfully", found.iter().map(InvitationView::from).collect()))
}

async fn list_own_invitations(api: Data<Api>, caller: Caller) -> Reply<List<InvitationView>> {
    let found = api.services.organizations.invitations_of(&caller).await?;
    Ok(success("Invitations retrieved successfully", found.iter().map(InvitationView::from).collect()))
}

async fn accept_invitation(
    api: Data<Api>,
    caller: SessionCaller,
    path: Path<InvitationPath>,
    body: Body<AcceptInvitation>,
) -> Reply<MembershipView> {
    let AcceptInvitation { token } = body.read().await?;
    let (organization, member) = api.services.organizations.accept(&caller, path.read()?.id, token).await?;
    Ok(success("Invitation accepted successfully", MembershipView::whole(&organization, &member)))
}

async fn decline_invitation(
    api: Data<Api>,
    caller: SessionCaller,
    path: Path<InvitationPath>,
    body: Body<NoFields>,
) -> Reply<Nothing> {
    body.read().await?;
    api.services.organizations.decline(&caller, path.read()?.id).await?;
    Ok(success("Invitation declined successfully", Nothing))
}
