//! The JSON of organizations and memberships.

use launchway_application::organizations::{Added, AddedMember, SentInvitation};
use launchway_domain::{
    organizations::{InvitationDetail, Member, Membership, Organization, OrganizationDetail},
    quotas::Usage,
};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::users::UserView;
use crate::timestamp::Moment;

/// An organization. Its users are omitted unless they are attached.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = Organization)]
pub(crate) struct OrganizationView {
    id: Uuid,
    name: String,
    description: String,
    #[schema(no_recursion)]
    users: Vec<UserView>,
    created_at: Moment,
    updated_at: Moment,
    deleted_at: Option<Moment>,
}

impl From<&Organization> for OrganizationView {
    fn from(organization: &Organization) -> Self {
        Self {
            id: organization.id.into(),
            name: organization.name.as_str().to_owned(),
            description: organization.description.as_str().to_owned(),
            users: Vec::new(),
            created_at: organization.created_at.into(),
            updated_at: organization.updated_at.into(),
            deleted_at: organization.deleted_at.map(Into::into),
        }
    }
}

impl From<&OrganizationDetail> for OrganizationView {
    /// Includes its users, each with the membership of this organization.
    fn from(OrganizationDetail { organization, members }: &OrganizationDetail) -> Self {
        Self { users: members.iter().map(UserView::of_member).collect(), ..Self::from(organization) }
    }
}

/// A membership. Its organization and its user are omitted unless they are attached.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = OrganizationUser)]
pub(crate) struct MembershipView {
    id: Uuid,
    organization_id: Uuid,
    user_id: Uuid,
    #[schema(no_recursion)]
    organization: Option<Box<OrganizationView>>,
    #[schema(no_recursion)]
    user: Option<Box<UserView>>,
    roles: [&'static str; 1],
    permissions: Vec<&'static str>,
    created_at: Moment,
    updated_at: Moment,
    deleted_at: Option<Moment>,
}

impl From<&Membership> for MembershipView {
    fn from(membership: &Membership) -> Self {
        Self {
            id: membership.id.into(),
            organization_id: membership.organization_id.into(),
            user_id: membership.user_id.into(),
            organization: None,
            user: None,
            roles: [membership.role.as_str()],
            permissions: membership.role.permissions().names(),
            created_at: membership.created_at.into(),
            updated_at: membership.updated_at.into(),
            deleted_at: membership.deleted_at.map(Into::into),
        }
    }
}

impl MembershipView {
    pub(crate) fn with_organization(mut self, organization: &Organization) -> Self {
        self.organization = Some(Box::new(organization.into()));
        self
    }

    /// Returns the membership that an invitation offers, without permissions.
    fn offered(InvitationDetail { invitation, organization, user, .. }: &InvitationDetail) -> Self {
        Self {
            id: invitation.id.into(),
            organization_id: invitation.organization_id.into(),
            user_id: invitation.user_id.into(),
            organization: Some(Box::new(organization.into())),
            user: Some(Box::new(user.into())),
            roles: [invitation.role.as_str()],
            permissions: Vec::new(),
            created_at: invitation.created_at.into(),
            updated_at: invitation.created_at.into(),
            deleted_at: None,
        }
    }

    /// Returns the membership with its organization and its user.
    pub(crate) fn whole(organization: &Organization, member: &Member) -> Self {
        let user = Some(Box::new(UserView::from(&member.user)));
        Self { user, ..Self::from(&member.membership).with_organization(organization) }
    }
}

/// A member who was just added, or a user who was invited. An invited user has no permissions yet, and `id`
/// is that of the invitation.
#[derive(Serialize, ToSchema)]
#[schema(as = AddedOrganizationUser)]
pub(crate) struct AddedMemberView {
    #[serde(flatten)]
    membership: MembershipView,
    /// `member` or `invited`.
    #[schema(example = "member")]
    status: &'static str,
    /// The expiry of an invitation; null for a member.
    expires_at: Option<Moment>,
    /// The token with which a new user sets the first password, or a user with an unverified address
    /// accepts the invitation. It is shown only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    setup_token: Option<String>,
}

impl From<Added> for AddedMemberView {
    fn from(added: Added) -> Self {
        match added {
            Added::Member(AddedMember { organization, member, setup_token }) => Self {
                membership: MembershipView::whole(&organization, &member),
                status: "member",
                expires_at: None,
                setup_token: Some(setup_token.expose().to_owned()),
            },
            Added::Invited(SentInvitation { detail, token }) => Self {
                membership: MembershipView::offered(&detail),
                status: "invited",
                expires_at: Some(detail.invitation.expires_at.into()),
                setup_token: token.map(|token| token.expose().to_owned()),
            },
        }
    }
}

/// The public half of a deploy key.
#[derive(Serialize, ToSchema)]
#[schema(as = DeployKey)]
pub(crate) struct DeployKeyView {
    /// One line in the format of code hosts.
    #[schema(example = "ssh-ed25519 AAAA… launchway")]
    pub(crate) public_key: String,
}

/// Usage and limit of each quota of an organization.
#[derive(Serialize, ToSchema)]
#[schema(as = OrganizationUsage)]
pub(crate) struct UsageView {
    quotas: Vec<QuotaView>,
}

impl From<&[Usage]> for UsageView {
    fn from(usage: &[Usage]) -> Self {
        Self { quotas: usage.iter().map(QuotaView::from).collect() }
    }
}

/// Usage and limit of one quota.
#[derive(Serialize, ToSchema)]
#[schema(as = Quota)]
pub(crate) struct QuotaView {
    name: &'static str,
    used: u64,
    /// 0 means no limit.
    limit: u64,
    /// `count`, or `bytes`.
    unit: &'static str,
}

impl From<&Usage> for QuotaView {
    fn from(Usage { quota, used }: &Usage) -> Self {
        let (name, unit) = (quota.resource.as_str(), quota.resource.unit().as_str());
        Self { name, used: *used, limit: quota.limit, unit }
    }
}
