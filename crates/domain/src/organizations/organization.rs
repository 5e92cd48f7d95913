//! The organization.

use crate::{
    clock::Timestamp,
    ids::OrganizationId,
    users::Username,
    value::{plain_text, text_value},
};

/// A tenant: a group of users who share applications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Organization {
    /// The id of the organization.
    pub id: OrganizationId,
    /// The name of the organization.
    pub name: OrganizationName,
    /// The description; may be empty.
    pub description: Description,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it was deleted; readers never see such a record.
    pub deleted_at: Option<Timestamp>,
}

impl Organization {
    /// Creates an organization.
    #[must_use]
    pub fn new(id: OrganizationId, name: OrganizationName, description: Description, now: Timestamp) -> Self {
        Self { id, name, description, created_at: now, updated_at: now, deleted_at: None }
    }
}

text_value!(
    /// The name of an organization, unique in the installation ignoring case.
    ///
    /// ```
    /// use launchway_domain::organizations::OrganizationName;
    ///
    /// assert_eq!("Engines".parse::<OrganizationName>().unwrap().key(), "engines");
    /// ```
    OrganizationName,
    |raw| plain_text(&raw, 1, 50, "1 to 50 characters, none of them a control character")
);

impl OrganizationName {
    /// Returns the key that makes the name unique: the name in lower case.
    #[must_use]
    pub fn key(&self) -> String {
        self.as_str().to_lowercase()
    }

    /// Returns the default name of a user's own organization: "Ada's Team".
    #[must_use]
    pub fn team_of(username: &Username) -> Self {
        const SUFFIX: &str = "'s Team";
        let short: String = username.as_str().chars().take(50 - SUFFIX.len()).collect();
        Self(format!("{}{SUFFIX}", short.trim_end()))
    }
}

text_value!(
    /// The description of an organization.
    Description,
    |raw| plain_text(&raw, 0, 100, "at most 100 characters, none of them a control character")
);

impl Default for Description {
    /// Returns an empty description.
    fn default() -> Self {
        Self(String::new())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_has_1_to_50_characters() {
        assert!(" ".parse::<OrganizationName>().is_err());
        assert!("ü".repeat(50).parse::<OrganizationName>().is_ok());
        assert!("ü".repeat(51).parse::<OrganizationName>().is_err());
    }

    #[test]
    fn a_description_has_at_most_100_characters_and_may_be_empty() {
        assert!("".parse::<Description>().is_ok());
        assert!("ü".repeat(100).parse::<Description>().is_ok());
        assert!("ü".repeat(101).parse::<Description>().is_err());
    }

    #[test]
    fn names_that_differ_in_case_have_one_key() {
        let [one, other] =
            ["Müller & Co", "MÜLLER & CO"].map(|name| name.parse::<OrganizationName>().unwrap());
        assert_eq!(one.key(), other.key());
    }

    proptest! {
        #[test]
        fn the_team_of_any_user_has_a_valid_name(text in "\\PC{1,50}") {
            if let Ok(username) = text.parse::<Username>() {
                let team = OrganizationName::team_of(&username);
                prop_assert_eq!(team.as_str().parse::<OrganizationName>(), Ok(team.clone()));
            }
        }

        #[test]
        fn an_accepted_description_is_trimmed_and_in_bounds(text in "\\PC{0,130}") {
            if let Ok(description) = text.parse::<Description>() {
                prop_assert_eq!(description.as_str(), text.trim());
                prop_assert!(description.as_str().chars().count() <= 100);
            }
        }

        #[test]
        fn an_accepted_name_survives_being_parsed_again(text in "\\PC{0,70}") {
            if let Ok(name) = text.parse::<OrganizationName>() {
                prop_assert_eq!(name.as_str().parse::<OrganizationName>(), Ok(name.clone()));
            }
        }
    }
}
