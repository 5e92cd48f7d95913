//! Environment variables and build arguments of applications.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::value::InvalidValue;

/// Names and values. The values are secret: no log and no error shows them.
///
/// ```
/// use std::collections::BTreeMap;
/// use launchway_domain::applications::Variables;
///
/// let named = |name: &str| BTreeMap::from([(name.to_owned(), "hunter2".to_owned())]);
/// let variables = Variables::try_from(named("PASSWORD")).unwrap();
/// assert_eq!(format!("{variables:?}"), r#"{"PASSWORD"}"#);
/// assert!(Variables::try_from(named("PASS WORD")).is_err());
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Variables(BTreeMap<String, String>);

/// The reason why variables were refused: names the variable and the rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidVariables(String);

impl Variables {
    /// The maximum number of variables.
    pub const MOST: usize = 512;
    /// The length limit of a value, in bytes.
    pub const LONGEST_VALUE: usize = 64 * 1024;

    /// Returns each name with its value, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Returns these variables and those of `others` whose names are in `shared`. Where both have a name, these count.
    #[must_use]
    pub fn with_shared(&self, others: &Self, shared: &VariableNames) -> Self {
        let others = others.0.iter().filter(|(name, _)| shared.contains(name));
        let mut all: BTreeMap<_, _> = others.map(|(name, value)| (name.clone(), value.clone())).collect();
        all.extend(self.0.clone());
        Self(all)
    }

    /// Returns whether there are no variables.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl TryFrom<BTreeMap<String, String>> for Variables {
    type Error = InvalidVariables;

    fn try_from(raw: BTreeMap<String, String>) -> Result<Self, InvalidVariables> {
        if raw.len() > Self::MOST {
            return Err(InvalidVariables(format!("must be at most 512 variables, got {}", raw.len())));
        }
        for (name, value) in &raw {
            if !is_name(name) {
                let refused = InvalidValue::text(
                    "1 to 255 letters, digits or `_`, the first no digit, as the name of a variable",
                    name,
                );
                return Err(InvalidVariables(refused.to_string()));
            }
            if value.len() > Self::LONGEST_VALUE || value.contains('\0') {
                return Err(InvalidVariables(format!(
                    "must have values of at most 65536 bytes without a NUL byte: `{name}` has not"
                )));
            }
        }
        Ok(Self(raw))
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= 255
        && name.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Names of variables.
///
/// ```
/// use launchway_domain::applications::VariableNames;
///
/// let names = VariableNames::try_from(vec!["LOG_LEVEL".to_owned()]).unwrap();
/// assert!(names.contains("LOG_LEVEL"));
/// assert!(VariableNames::try_from(vec!["LOG LEVEL".to_owned()]).is_err());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VariableNames(BTreeSet<String>);

impl VariableNames {
    /// Returns the names, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns whether `name` is one of them.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

impl TryFrom<Vec<String>> for VariableNames {
    type Error = InvalidValue;

    fn try_from(raw: Vec<String>) -> Result<Self, InvalidValue> {
        if raw.len() > Variables::MOST {
            return Err(InvalidValue::number("at most 512 names", raw.len()));
        }
        match raw.iter().find(|name| !is_name(name)) {
            Some(name) => {
                Err(InvalidValue::text("names of 1 to 255 letters, digits or `_`, the first no digit", name))
            }
            None => Ok(Self(raw.into_iter().collect())),
        }
    }
}

impl fmt::Debug for Variables {
    /// Formats the names only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, value: &str) -> Result<Variables, InvalidVariables> {
        BTreeMap::from([(name.to_owned(), value.to_owned())]).try_into()
    }

    #[test]
    fn values_are_kept_as_they_came() {
        let value = " a=b \"q\" 'q' $X `id`\nsecond\tline\u{1f680} ";
        let variables = one("_A9", value).unwrap();
        assert_eq!(variables.iter().collect::<Vec<_>>(), [("_A9", value)]);
    }

    #[test]
    fn names_are_those_of_a_shell() {
        assert!(one(&"A".repeat(255), "").is_ok());
        for name in ["", "9A", "A-B", "A B", "A=B", "Ä", "A\n", &"A".repeat(256)] {
            let refused = one(name, "hunter2").unwrap_err().to_string();
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn a_value_has_at_most_64_kib_and_no_nul() {
        assert!(one("A", &"x".repeat(65_536)).is_ok());
        assert!(one("A", &"x".repeat(65_537)).is_err());
        let refused = one("A", "hunter2\0").unwrap_err().to_string();
        assert!(refused.contains("`A`") && !refused.contains("hunter2"), "{refused}");
    }

    #[test]
    fn there_are_at_most_512() {
        let many = |count: usize| -> BTreeMap<String, String> {
            (0..count).map(|number| (format!("V{number}"), String::new())).collect()
        };
        assert!(Variables::try_from(many(512)).is_ok());
        assert!(Variables::try_from(many(513)).is_err());
    }

    #[test]
    fn only_shared_variables_of_others_are_added() {
        let named = |pairs: &[(&str, &str)]| -> Variables {
            let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            pairs.collect::<BTreeMap<_, _>>().try_into().unwrap()
        };
        let own = named(&[("A", "own"), ("B", "own")]);
        let others = named(&[("B", "other"), ("C", "other"), ("D", "other")]);
        let shared = ["B", "C", "E"].map(str::to_owned).to_vec().try_into().unwrap();
        let all = named(&[("A", "own"), ("B", "own"), ("C", "other")]);
        assert_eq!(own.with_shared(&others, &shared), all);
        assert_eq!(own.with_shared(&others, &VariableNames::default()), own);
    }

    #[test]
    fn there_are_at_most_512_names() {
        let many = |count: usize| (0..count).map(|number| format!("V{number}")).collect::<Vec<_>>();
        assert!(VariableNames::try_from(many(512)).is_ok());
        assert!(VariableNames::try_from(many(513)).is_err());
        for name in ["", "9A", "A-B", &"A".repeat(256)] {
            assert!(VariableNames::try_from(vec![name.to_owned()]).is_err(), "{name}");
        }
    }

    #[test]
    fn debug_output_shows_no_value() {
        assert_eq!(format!("{:?}", one("TOKEN", "hunter2").unwrap()), r#"{"TOKEN"}"#);
    }
}
