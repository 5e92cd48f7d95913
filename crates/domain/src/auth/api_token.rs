//! API tokens for programs.

use super::{Permissions, TokenHash};
use crate::{
    clock::Timestamp,
    ids::{ApiTokenId, OrganizationId, UserId},
    value::{plain_text, text_value},
};

/// An API token: access to one organization, on behalf of its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiToken {
    /// The id of the API token.
    pub id: ApiTokenId,
    /// The only organization that it works in.
    pub organization_id: OrganizationId,
    /// Its owner.
    pub user_id: UserId,
    /// The name that its owner chose.
    pub name: ApiTokenName,
    /// The hash that identifies the token.
    pub token_hash: TokenHash,
    /// The upper limit of its permissions; its owner's role still limits it.
    pub permissions: Permissions,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
    /// When it was issued.
    pub created_at: Timestamp,
}

text_value!(
    /// The name of an API token, chosen by its owner.
    ApiTokenName,
    |raw| plain_text(&raw, 1, 50, "1 to 50 characters, none of them a control character")
);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_has_1_to_50_characters() {
        assert!(" ".parse::<ApiTokenName>().is_err());
        assert!("é".repeat(50).parse::<ApiTokenName>().is_ok());
        assert!("é".repeat(51).parse::<ApiTokenName>().is_err());
    }

    proptest! {
        #[test]
        fn an_accepted_name_survives_being_parsed_again(text in "\\PC{0,70}") {
            if let Ok(name) = text.parse::<ApiTokenName>() {
                prop_assert_eq!(name.as_str().parse::<ApiTokenName>(), Ok(name.clone()));
            }
        }
    }
}
