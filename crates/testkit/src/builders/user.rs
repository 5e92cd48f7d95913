//! Users and their profiles.

use launchway_domain::{
    clock::Timestamp,
    organizations::{MembershipDetail, Organization, Role},
    users::{Profile, Settings, User, UserKind},
};

use super::{a_membership, parsed};
use crate::{
    clock::{NEW_YEAR, moment},
    ids::id_of,
};

/// The user ada, `ada@example.com`, created at [`NEW_YEAR`], not an administrator.
pub fn a_user() -> UserBuilder {
    UserBuilder {
        name: "ada".to_owned(),
        email: None,
        kind: UserKind::AppUser,
        is_verified: true,
        two_factor_enabled: false,
        created_at: moment(NEW_YEAR),
    }
}

/// Builds a [`User`].
#[derive(Debug, Clone)]
#[must_use]
pub struct UserBuilder {
    name: String,
    email: Option<String>,
    kind: UserKind,
    is_verified: bool,
    two_factor_enabled: bool,
    created_at: Timestamp,
}

impl UserBuilder {
    /// Sets the name, and with it the id and the address.
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Sets an address that does not follow from the name.
    pub fn with_email(mut self, email: &str) -> Self {
        self.email = Some(email.to_owned());
        self
    }

    /// Sets the kind of the user.
    pub fn of_kind(mut self, kind: UserKind) -> Self {
        self.kind = kind;
        self
    }

    /// Makes the address unverified.
    pub fn unverified(mut self) -> Self {
        self.is_verified = false;
        self
    }

    /// Enables two-factor login.
    pub fn with_two_factor(mut self) -> Self {
        self.two_factor_enabled = true;
        self
    }

    /// Sets the time of creation.
    pub fn created_at(mut self, at: Timestamp) -> Self {
        self.created_at = at;
        self
    }

    /// Returns the user.
    ///
    /// # Panics
    ///
    /// If the name or the address is invalid.
    #[must_use]
    #[track_caller]
    pub fn build(self) -> User {
        let Self { name, email, kind, is_verified, two_factor_enabled, created_at } = self;
        let id = id_of(&format!("user {name}")).into();
        let email = email.unwrap_or_else(|| format!("{}@example.com", name.to_lowercase().replace(' ', ".")));
        let user = User::new(id, parsed(&name), parsed(&email), kind, created_at);
        User { is_verified, two_factor_enabled, ..user }
    }
}

/// The profile of [`a_user`] without settings, in no organization.
pub fn a_profile() -> ProfileBuilder {
    ProfileBuilder { user: a_user().build(), settings: None, places: Vec::new() }
}

/// Builds a [`Profile`].
#[derive(Debug, Clone)]
#[must_use]
pub struct ProfileBuilder {
    user: User,
    settings: Option<Settings>,
    places: Vec<(Organization, Role)>,
}

impl ProfileBuilder {
    /// Sets the user.
    pub fn of(mut self, user: &User) -> Self {
        self.user = user.clone();
        self
    }

    /// Sets the settings.
    pub fn with_settings(mut self, settings: Settings) -> Self {
        self.settings = Some(settings);
        self
    }

    /// Adds a membership, newer than those before.
    pub fn member_of(mut self, organization: &Organization, role: Role) -> Self {
        self.places.push((organization.clone(), role));
        self
    }

    /// Returns the profile.
    #[must_use]
    pub fn build(self) -> Profile {
        let Self { user, settings, places } = self;
        let memberships =
            places.into_iter().map(|(organization, role)| membership(&user, &organization, role));
        Profile { memberships: memberships.collect(), user, settings }
    }
}

fn membership(user: &User, organization: &Organization, role: Role) -> MembershipDetail {
    a_membership().of(user).in_organization(organization).with_role(role).detail()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders::an_organization;

    #[test]
    fn two_names_are_two_people() {
        let [ada, grace] = ["ada", "Grace Hopper"].map(|name| a_user().named(name).build());
        assert_ne!(ada.id, grace.id);
        assert_eq!(ada, a_user().build());
        assert_eq!(grace.email, parsed("grace.hopper@example.com"));
    }

    #[test]
    fn a_profile_lists_memberships_in_the_order_of_their_making() {
        let [first, second] = ["First", "Second"].map(|name| an_organization().named(name).build());
        let profile = a_profile().member_of(&first, Role::Viewer).member_of(&second, Role::Admin).build();
        let places: Vec<_> =
            profile.memberships.iter().map(|detail| (&detail.organization, detail.membership.role)).collect();
        assert_eq!(places, [(&first, Role::Viewer), (&second, Role::Admin)]);
    }
}
