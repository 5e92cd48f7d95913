//! Paths inside a repository, and on an application.

use crate::value::{InvalidValue, text_value};

text_value!(
    /// The folder of a repository that an application is built from; `/` is the whole repository.
    ///
    /// ```
    /// use launchway_domain::applications::BasePath;
    ///
    /// assert_eq!("./apps//web/".parse::<BasePath>().unwrap().as_str(), "/apps/web");
    /// assert!("../etc".parse::<BasePath>().is_err());
    /// ```
    BasePath,
    |raw| {
        let inside = inside(raw.trim(), "a folder of the repository, such as `/` or `/apps/web`, without `..`")?;
        Ok(format!("/{inside}"))
    }
);

impl BasePath {
    /// Returns the path relative to the root of the checkout.
    #[must_use]
    pub fn relative(&self) -> &str {
        self.as_str().trim_start_matches('/')
    }
}

impl Default for BasePath {
    /// Returns `/`, the whole repository.
    fn default() -> Self {
        Self("/".to_owned())
    }
}

text_value!(
    /// The path of the Dockerfile, relative to the [`BasePath`].
    DockerfilePath,
    |raw| {
        let allowed = "a file of the repository, such as `Dockerfile` or `docker/web.Dockerfile`, without `..`";
        match inside(raw.trim(), allowed)? {
            path if path.is_empty() => Err(InvalidValue::text(allowed, &raw)),
            path => Ok(path),
        }
    }
);

impl Default for DockerfilePath {
    fn default() -> Self {
        Self("Dockerfile".to_owned())
    }
}

/// Returns the path without leading slashes and `.`.
fn inside(raw: &str, allowed: &'static str) -> Result<String, InvalidValue> {
    let refused = || InvalidValue::text(allowed, raw);
    if raw.contains(|c: char| c.is_control() || c == '\\') {
        return Err(refused());
    }
    let parts: Vec<&str> = raw.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let is_plain = |part: &&str| *part != ".." && part.trim() == *part;
    let path = parts.join("/");
    // The length of the stored form counts, because it is parsed again.
    if path.len() <= 1024 && parts.iter().all(is_plain) { Ok(path) } else { Err(refused()) }
}

text_value!(
    /// The path of an application's HTTP health check.
    ///
    /// ```
    /// use launchway_domain::applications::HealthCheckPath;
    ///
    /// assert!("/health?deep=1".parse::<HealthCheckPath>().is_ok());
    /// assert!("health".parse::<HealthCheckPath>().is_err());
    /// ```
    HealthCheckPath,
    |raw| {
        let path = raw.trim();
        let is_harmless = path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        if path.starts_with('/') && path.len() <= 1024 && is_harmless {
            Ok(path.to_owned())
        } else {
            Err(InvalidValue::text(
                "a path that starts with `/`, at most 1,024 characters of a URL, such as `/health`",
                path,
            ))
        }
    }
);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_base_path_starts_with_a_slash() {
        for (raw, kept) in [("", "/"), ("/", "/"), ("web", "/web"), ("./a//b/", "/a/b"), ("/a b", "/a b")] {
            assert_eq!(raw.parse::<BasePath>().unwrap().as_str(), kept, "{raw:?}");
        }
        assert_eq!("/apps/web".parse::<BasePath>().unwrap().relative(), "apps/web");
    }

    #[test]
    fn a_dockerfile_path_is_relative() {
        for (raw, kept) in [("Dockerfile", "Dockerfile"), ("/x", "x"), ("./a/b", "a/b")] {
            assert_eq!(raw.parse::<DockerfilePath>().unwrap().as_str(), kept);
        }
        assert!("/".parse::<DockerfilePath>().is_err());
    }

    #[test]
    fn no_path_leads_out() {
        for raw in ["..", "/../etc", "a/../../b", "a\0b", "a\nb", "a\\..\\b", &"x".repeat(1025)] {
            assert!(raw.parse::<BasePath>().is_err(), "{raw:?}");
            assert!(raw.parse::<DockerfilePath>().is_err(), "{raw:?}");
        }
        assert!("a/..b/c..".parse::<BasePath>().is_ok());
    }

    #[test]
    fn the_longest_path_reads_back_to_itself() {
        let longest = "x".repeat(1024).parse::<BasePath>().unwrap();
        assert_eq!(longest.as_str().parse(), Ok(longest.clone()));
        assert!(format!("/{}", "x".repeat(1025)).parse::<BasePath>().is_err());
    }

    #[test]
    fn a_health_check_path_is_one_of_a_url() {
        for path in ["/", "/health?deep=1", "/a%20b"] {
            assert_eq!(path.parse::<HealthCheckPath>().unwrap().as_str(), path);
        }
        for path in ["", "health", "/a b", "/a\r\nHost: x", "/ä", "/#a", "http://x/"] {
            assert!(path.parse::<HealthCheckPath>().is_err(), "{path:?}");
        }
        assert!(format!("/{}", "x".repeat(1023)).parse::<HealthCheckPath>().is_ok());
        assert!(format!("/{}", "x".repeat(1024)).parse::<HealthCheckPath>().is_err());
    }

    proptest! {
        #[test]
        fn accepted_paths_stay_inside_and_parse_again(text in "[./a-c\\\\ ]{0,20}") {
            if let Ok(path) = text.parse::<BasePath>() {
                prop_assert!(path.relative().split('/').all(|part| part != ".."));
                prop_assert!(!path.relative().starts_with('/'));
                prop_assert_eq!(path.as_str().parse::<BasePath>(), Ok(path.clone()));
            }
        }
    }
}
