//! The JSON of users and settings.

use launchway_application::users::SettingsDetail;
use launchway_domain::{
    organizations::Member,
    users::{Profile, User},
};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::organizations::{MembershipView, OrganizationView};
use crate::timestamp::Moment;

/// A user. Organizations and memberships are omitted unless they are attached.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = User)]
pub(crate) struct UserView {
    id: Uuid,
    username: String,
    email: String,
    avatar: String,
    #[schema(example = "admin")]
    r#type: &'static str,
    is_verified: bool,
    two_factor_enabled: bool,
    /// Always empty, for compatibility: the secret is shown once, by its setup.
    two_factor_secret: &'static str,
    idp_user_id: String,
    #[schema(no_recursion)]
    organizations: Vec<OrganizationView>,
    #[schema(no_recursion)]
    organization_users: Vec<MembershipView>,
    created_at: Moment,
    updated_at: Moment,
    deleted_at: Option<Moment>,
}

impl From<&User> for UserView {
    fn from(user: &User) -> Self {
        Self {
            id: user.id.into(),
            username: user.username.as_str().to_owned(),
            email: user.email.as_str().to_owned(),
            avatar: user.avatar.clone(),
            r#type: user.kind.as_str(),
            is_verified: user.is_verified,
            two_factor_enabled: user.two_factor_enabled,
            two_factor_secret: "",
            idp_user_id: user.idp_user_id.clone(),
            organizations: Vec::new(),
            organization_users: Vec::new(),
            created_at: user.created_at.into(),
            updated_at: user.updated_at.into(),
            deleted_at: user.deleted_at.map(Into::into),
        }
    }
}

impl UserView {
    /// Returns the user with one membership of an organization.
    pub(crate) fn of_member(member: &Member) -> Self {
        Self { organization_users: vec![(&member.membership).into()], ..Self::from(&member.user) }
    }

    /// Returns the user with organizations and memberships.
    pub(crate) fn with_memberships(profile: &Profile) -> Self {
        let memberships = &profile.memberships;
        Self {
            organizations: memberships.iter().map(|detail| (&detail.organization).into()).collect(),
            organization_users: memberships.iter().map(|detail| (&detail.membership).into()).collect(),
            ..Self::from(&profile.user)
        }
    }
}

/// The settings of a user, with the user.
#[derive(Serialize, ToSchema)]
#[schema(as = UserSettings)]
pub(crate) struct SettingsView {
    id: Uuid,
    user_id: Uuid,
    user: UserView,
    auto_update: bool,
    #[schema(example = "light")]
    theme: String,
    #[schema(example = "outfit")]
    font_family: String,
    #[schema(example = 16)]
    font_size: u8,
    #[schema(example = "en")]
    language: String,
    created_at: Moment,
    updated_at: Moment,
    deleted_at: Option<Moment>,
}

impl From<SettingsDetail> for SettingsView {
    fn from(SettingsDetail { settings, profile }: SettingsDetail) -> Self {
        Self {
            id: settings.id.into(),
            user_id: settings.user_id.into(),
            user: UserView::with_memberships(&profile),
            auto_update: settings.auto_update,
            theme: settings.theme.into(),
            font_family: settings.font_family.into(),
            font_size: settings.font_size.get(),
            language: settings.language.into(),
            created_at: settings.created_at.into(),
            updated_at: settings.updated_at.into(),
            deleted_at: settings.deleted_at.map(Into::into),
        }
    }
}
