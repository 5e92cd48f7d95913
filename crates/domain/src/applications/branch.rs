//! A branch of a repository.

use crate::value::{InvalidValue, text_value};

text_value!(
    /// The name of a branch, by the rules of `git check-ref-format --branch`.
    ///
    /// ```
    /// use launchway_domain::applications::Branch;
    ///
    /// assert!("feature/login".parse::<Branch>().is_ok());
    /// assert!("--upload-pack=x".parse::<Branch>().is_err());
    /// ```
    Branch,
    |raw| {
        let name = raw.trim();
        if is_branch(name) {
            Ok(name.to_owned())
        } else {
            Err(InvalidValue::text("a branch name that git accepts, without a leading `-`", name))
        }
    }
);

fn is_branch(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    let is_forbidden =
        |c: char| c.is_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\');
    (1..=255).contains(&name.len())
        && !name.starts_with('-')
        && !name.ends_with('.')
        && name.split('/').all(is_part)
        && !name.contains("..")
        && !name.contains("@{")
        && !matches!(name, "@" | "HEAD")
        && !name.contains(is_forbidden)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_git_calls_a_branch_is_accepted() {
        for name in ["main", "feature/a.b", "a;b", "$(id)", "release-1", "ä", "a@b", &"x".repeat(255)] {
            assert_eq!(name.parse::<Branch>().unwrap().as_str(), name);
        }
    }

    #[test]
    fn what_git_refuses_is_refused() {
        for name in [
            "",
            "-x",
            "--upload-pack=touch x",
            "a..b",
            "a b",
            "@{-1}",
            "a~1",
            "x.lock",
            "x.lock/y",
            "HEAD",
            "@",
            "/a",
            "a/",
            "a//b",
            ".a",
            "a/.b",
            "a.",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[b",
            "a\\b",
            "a\nb",
            "a\0b",
            &"x".repeat(256),
        ] {
            assert!(name.parse::<Branch>().is_err(), "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn accepted_branches_are_no_options_and_parse_again(text in "\\PC{0,40}") {
            if let Ok(branch) = text.parse::<Branch>() {
                prop_assert!(!branch.as_str().starts_with('-'));
                prop_assert_eq!(branch.as_str().parse::<Branch>(), Ok(branch.clone()));
            }
        }
    }
}
