//! The user.
//!
//! **Invariant:** the password and the second factor of a user are not part of `User`, so that no response
//! can contain them by accident.

use super::EmailAddress;
use crate::{
    clock::Timestamp,
    ids::UserId,
    value::{plain_text, text_value},
};

/// A user with an account.
///
/// The password and the second factor are not part of it: they are in tables of their own, so that no
/// response can include them by accident.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The id of the user.
    pub id: UserId,
    /// The display name.
    pub username: Username,
    /// The e-mail address, which is also the login.
    pub email: EmailAddress,
    /// The URL of their picture; empty without one.
    pub avatar: String,
    /// The role in the installation.
    pub kind: UserKind,
    /// True once a token that was sent to the address came back. Nothing else verifies an address.
    pub is_verified: bool,
    /// True if a login also needs a code.
    pub two_factor_enabled: bool,
    /// The id at an identity provider; empty without one.
    pub idp_user_id: String,
    /// When the account was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it was deleted; readers never see such a record.
    pub deleted_at: Option<Timestamp>,
}

impl User {
    /// Creates a user.
    #[must_use]
    pub fn new(id: UserId, username: Username, email: EmailAddress, kind: UserKind, now: Timestamp) -> Self {
        Self {
            id,
            username,
            email,
            avatar: String::new(),
            kind,
            is_verified: false,
            two_factor_enabled: false,
            idp_user_id: String::new(),
            created_at: now,
            updated_at: now,
            deleted_at: None,
        }
    }
}

impl User {
    /// Creates a user who was added by another user, and has not logged in yet.
    #[must_use]
    pub fn invited(id: UserId, username: Username, email: EmailAddress, now: Timestamp) -> Self {
        Self::new(id, username, email, UserKind::AppUser, now)
    }
}

/// The role of a user in the installation, whatever the organization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserKind {
    /// Administers the installation.
    Admin,
    /// Uses the installation, without administering it.
    AppUser,
}

impl UserKind {
    /// Returns the name used in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::AppUser => "app_user",
        }
    }
}

impl std::str::FromStr for UserKind {
    type Err = crate::value::InvalidValue;

    fn from_str(raw: &str) -> Result<Self, Self::Err> {
        match raw {
            "admin" => Ok(Self::Admin),
            "app_user" => Ok(Self::AppUser),
            other => Err(crate::value::InvalidValue::text("`admin` or `app_user`", other)),
        }
    }
}

text_value!(
    /// The display name of a user.
    ///
    /// ```
    /// use launchway_domain::users::Username;
    ///
    /// assert_eq!(" Ada Lovelace ".parse::<Username>().unwrap().as_str(), "Ada Lovelace");
    /// ```
    Username,
    |raw| plain_text(&raw, 1, 50, "1 to 50 characters, none of them a control character")
);

impl Username {
    /// Returns the beginning of `text`, shortened to the length limit and without characters that are not
    /// allowed.
    pub(super) fn shortened(text: &str) -> Self {
        Self(text.chars().take(50).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_username_has_1_to_50_characters() {
        assert!("".parse::<Username>().is_err());
        assert!("   ".parse::<Username>().is_err());
        assert!("é".repeat(50).parse::<Username>().is_ok());
        assert!("é".repeat(51).parse::<Username>().is_err());
    }

    #[test]
    fn a_username_cannot_hold_a_control_character() {
        assert!("ada\u{0}".parse::<Username>().is_err());
        assert!("a\u{1b}[31mda".parse::<Username>().is_err());
    }

    #[test]
    fn kinds_are_read_as_they_are_written() {
        for kind in [UserKind::Admin, UserKind::AppUser] {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert!("root".parse::<UserKind>().is_err());
    }

    proptest! {
        #[test]
        fn an_accepted_username_is_trimmed_and_in_bounds(text in "\\PC{0,70}") {
            if let Ok(name) = text.parse::<Username>() {
                prop_assert_eq!(name.as_str(), text.trim());
                prop_assert!((1..=50).contains(&name.as_str().chars().count()));
            }
        }
    }
}
