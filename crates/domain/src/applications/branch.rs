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

impl Branch {
    /// Returns whether it is not the name of a branch but the reference by which code hosts give out the head of a
    /// pull or merge request, `refs/pull/7/head` or `refs/merge-requests/7/head`.
    #[must_use]
    pub fn is_of_request(&self) -> bool {
        let number = self.as_str().strip_suffix("/head").and_then(|name| {
            name.strip_prefix("refs/pull/").or_else(|| name.strip_prefix("refs/merge-requests/"))
        });
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// Returns the full name of the reference in its repository.
    #[must_use]
    pub fn reference(&self) -> String {
        match self.is_of_request() {
            true => self.as_str().to_owned(),
            false => format!("refs/heads/{self}"),
        }
    }
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

    #[test]
    fn only_heads_of_requests_are_no_branches() {
        for name in ["refs/pull/7/head", "refs/merge-requests/123/head"] {
            let branch: Branch = name.parse().unwrap();
            assert_eq!((branch.is_of_request(), branch.reference()), (true, name.to_owned()));
        }
        for name in
            ["main", "refs/pull/7", "refs/pull//head", "refs/pull/a/head", "pull/7/head", "refs/pull/7/merge"]
        {
            if let Ok(branch) = name.parse::<Branch>() {
                assert_eq!(
                    (branch.is_of_request(), branch.reference()),
                    (false, format!("refs/heads/{name}"))
                );
            }
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
