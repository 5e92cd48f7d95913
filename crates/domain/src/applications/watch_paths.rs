//! The paths of a repository that an application watches.

use crate::value::{InvalidValue, text_value};

text_value!(
    /// A pattern in the syntax of a line of `.gitignore`, relative to the top folder of the repository.
    ///
    /// ```
    /// use launchway_domain::applications::WatchPath;
    ///
    /// assert!("apps/web/**".parse::<WatchPath>().is_ok());
    /// assert!("# not a pattern".parse::<WatchPath>().is_err());
    /// ```
    WatchPath,
    |raw| {
        let is_line = !raw.chars().any(char::is_control) && !raw.trim().is_empty();
        if !is_line || raw.len() > WatchPath::LONGEST {
            return Err(InvalidValue::text(
                "patterns of 1 to 255 bytes, each one line in the syntax of `.gitignore`",
                &raw,
            ));
        }
        if raw.starts_with('#') {
            return Err(InvalidValue::text("patterns, and one that begins with `#` is a comment: write `\\#`", &raw));
        }
        if raw.trim_start_matches('!').trim_matches('/').trim().is_empty() {
            return Err(InvalidValue::text("patterns that name something", &raw));
        }
        Ok(raw)
    }
);

impl WatchPath {
    /// The length limit, in bytes.
    pub const LONGEST: usize = 255;

    /// Returns whether it takes paths out that earlier patterns include.
    #[must_use]
    pub fn is_exception(&self) -> bool {
        self.as_str().starts_with('!')
    }
}

/// The patterns of the paths that an application watches: a push deploys it only if it changes one of them. The last
/// pattern that matches a path decides, as in `.gitignore`. Without patterns, every push deploys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchPaths(Vec<WatchPath>);

impl WatchPaths {
    /// The maximum number of patterns of an application.
    pub const MOST: usize = 100;

    /// Returns the patterns, in the order given.
    #[must_use]
    pub fn as_slice(&self) -> &[WatchPath] {
        &self.0
    }

    /// Returns whether every path is watched.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the patterns as the text of a `.gitignore` file.
    #[must_use]
    pub fn lines(&self) -> String {
        self.0.iter().map(|pattern| format!("{pattern}\n")).collect()
    }
}

impl TryFrom<Vec<String>> for WatchPaths {
    type Error = InvalidValue;

    fn try_from(raw: Vec<String>) -> Result<Self, InvalidValue> {
        if raw.len() > Self::MOST {
            return Err(InvalidValue::number("at most 100 patterns", raw.len()));
        }
        let patterns = raw.into_iter().map(WatchPath::try_from).collect::<Result<Vec<_>, _>>()?;
        // Such a list would match no path, and no push would ever deploy.
        if let Some(first) = patterns.first().filter(|_| patterns.iter().all(WatchPath::is_exception)) {
            let rule = "patterns of which one does not begin with `!`, such as `/*` as the first";
            return Err(InvalidValue::text(rule, first.as_str()));
        }
        Ok(Self(patterns))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn watched(patterns: &[&str]) -> Result<WatchPaths, InvalidValue> {
        WatchPaths::try_from(patterns.iter().map(|pattern| (*pattern).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn there_are_at_most_100_patterns_of_at_most_255_bytes() {
        let paths = |count: usize, length: usize| WatchPaths::try_from(vec!["x".repeat(length); count]);
        assert!(paths(100, 255).is_ok());
        assert!(paths(101, 1).is_err());
        assert!(paths(1, 256).is_err());
        assert!(paths(1, 0).is_err());
        assert!(paths(0, 0).is_ok_and(|none| none.is_empty()));
    }

    #[test]
    fn a_pattern_is_one_line_that_names_something() {
        for pattern in ["apps/web/", "/Cargo.lock", "*.rs", "!docs", "\\#a", "a b", " a", "ä", "**/x"] {
            assert!(watched(&["*", pattern]).is_ok(), "{pattern:?}");
        }
        for pattern in ["", " ", "a\nb", "a\0", "\t", "a\r", "# a", "#", "!", "/", "!/", "! "] {
            assert!(watched(&["*", pattern]).is_err(), "{pattern:?}");
        }
    }

    #[test]
    fn exceptions_alone_are_refused() {
        let refused = watched(&["!docs/", "!*.md"]).unwrap_err().to_string();
        let rule =
            "must be patterns of which one does not begin with `!`, such as `/*` as the first, got `!docs/`";
        assert_eq!(refused, rule);
        assert!(watched(&["*", "!docs/"]).is_ok());
    }

    #[test]
    fn patterns_become_the_lines_of_a_file() {
        assert_eq!(watched(&["*", "!docs/"]).unwrap().lines(), "*\n!docs/\n");
    }

    proptest! {
        #[test]
        fn every_pattern_stays_one_line(text in ".{0,300}") {
            if let Ok(paths) = WatchPaths::try_from(vec![text.clone()]) {
                let lines = paths.lines();
                prop_assert_eq!(lines.lines().collect::<Vec<_>>(), [text.as_str()]);
            }
        }
    }
}
