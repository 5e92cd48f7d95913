//! The names, environments and labels of applications.

use crate::value::{InvalidValue, plain_text, text_value};

text_value!(
    /// The name of an application, unique in its organization and environment.
    ///
    /// ```
    /// use launchway_domain::applications::ApplicationName;
    ///
    /// let name: ApplicationName = " My shop ".parse().unwrap();
    /// assert_eq!(name.as_str(), "My shop");
    /// assert!("-shop".parse::<ApplicationName>().is_err());
    /// ```
    ApplicationName,
    |raw| {
        let name = raw.trim();
        let mut characters = name.chars();
        let starts_well = characters.next().is_some_and(|first| first.is_ascii_alphanumeric());
        let goes_on_well = characters.all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-'));
        if starts_well && goes_on_well && name.len() <= 63 {
            Ok(name.to_owned())
        } else {
            Err(InvalidValue::text(
                "1 to 63 letters, digits, spaces, `_` or `-`, the first a letter or a digit",
                name,
            ))
        }
    }
);

text_value!(
    /// The environment of an application: `production`, `staging`, `development` or a custom name.
    ///
    /// ```
    /// use launchway_domain::applications::Environment;
    ///
    /// assert_eq!("Staging".parse::<Environment>().unwrap().as_str(), "staging");
    /// ```
    Environment,
    |raw| {
        let slug = raw.trim().to_ascii_lowercase();
        let is_part = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric());
        if slug.len() <= 50 && slug.split('-').all(is_part) {
            Ok(slug)
        } else {
            Err(InvalidValue::text(
                "`development`, `staging`, `production`, or at most 50 letters and digits with single `-` between \
                 them",
                &slug,
            ))
        }
    }
);

text_value!(
    /// A label to find an application by.
    Label,
    |raw| plain_text(&raw, 1, 63, "1 to 63 characters, none of them a control character")
);

/// The labels of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels(Vec<Label>);

impl Labels {
    /// The maximum number of labels of an application.
    pub const MOST: usize = 50;

    /// Returns the labels, in the order given.
    #[must_use]
    pub fn as_slice(&self) -> &[Label] {
        &self.0
    }
}

impl TryFrom<Vec<String>> for Labels {
    type Error = InvalidValue;

    fn try_from(raw: Vec<String>) -> Result<Self, InvalidValue> {
        if raw.len() > Self::MOST {
            return Err(InvalidValue::number("at most 50 labels", raw.len()));
        }
        raw.into_iter().map(Label::try_from).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_has_1_to_63_harmless_characters() {
        for name in ["a", "7", "Shop 2_b-c", &"x".repeat(63)] {
            assert_eq!(name.parse::<ApplicationName>().unwrap().as_str(), name);
        }
        for name in ["", " ", "-a", "_a", "ä", "a/b", "a;b", "$(id)", "a\nb", &"x".repeat(64)] {
            assert!(name.parse::<ApplicationName>().is_err(), "{name:?}");
        }
    }

    #[test]
    fn an_environment_is_a_slug_in_lower_case() {
        for (raw, kept) in
            [("Production", "production"), (" qa-2 ", "qa-2"), (&"a".repeat(50), &"a".repeat(50))]
        {
            assert_eq!(raw.parse::<Environment>().unwrap().as_str(), kept);
        }
        for raw in ["", "-a", "a-", "a--b", "a_b", "ä", "a b", &"a".repeat(51)] {
            assert!(raw.parse::<Environment>().is_err(), "{raw:?}");
        }
    }

    #[test]
    fn there_are_at_most_50_labels_of_at_most_63_characters() {
        let labels = |count: usize, length: usize| Labels::try_from(vec!["x".repeat(length); count]);
        assert!(labels(50, 63).is_ok());
        assert!(labels(51, 1).is_err());
        assert!(labels(1, 64).is_err());
        assert!(labels(1, 0).is_err());
    }

    proptest! {
        #[test]
        fn accepted_texts_survive_being_parsed_again(text in "[ -~]{0,70}") {
            if let Ok(name) = text.parse::<ApplicationName>() {
                prop_assert_eq!(name.as_str().parse::<ApplicationName>(), Ok(name.clone()));
            }
            if let Ok(environment) = text.parse::<Environment>() {
                prop_assert_eq!(environment.as_str().parse::<Environment>(), Ok(environment.clone()));
            }
        }
    }
}
