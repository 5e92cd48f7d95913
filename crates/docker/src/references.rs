//! Docker's form of image references by users.

use launchway_domain::{
    applications::{ImageRef, Reference},
    ids::ApplicationId,
};

/// Returns the reference as docker lists it: without the default registry, with the default tag. `None` as
/// for [`parse`].
pub(super) fn familiar(image: &ImageRef) -> Option<String> {
    parse(image).map(|reference| reference.to_string())
}

/// Parses a reference.
///
/// `None` for a name of our own making, and for one that the engine would take for the beginning of an id.
/// Those are images of deployments, perhaps of another organization, and must not be accessible by
/// guessing.
pub(super) fn parse(image: &ImageRef) -> Option<Reference> {
    if is_ours(image.as_str()) {
        return None;
    }
    Reference::parse(image).filter(|reference| !reference.to_string().starts_with("sha256:"))
}

/// Returns whether the name is of our own making, however docker's registry is spelled before it, or in any other registry:
/// images may have been pushed there.
fn is_ours(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_id =
        |part: &str| part.split([':', '@']).next().is_some_and(|id| id.parse::<ApplicationId>().is_ok());
    let segments: Vec<&str> = name.split('/').collect();
    if segments.windows(2).any(|pair| matches!(pair, ["launchway", id] if is_id(id))) {
        return true;
    }
    let is_dockers = |registry: &str| {
        let host = registry.split_once(':').map_or(registry, |(host, _)| host);
        host == "docker.io" || host.ends_with(".docker.io")
    };
    let mut parts = name.split('/').skip_while(|part| is_dockers(part) || *part == "library");
    parts.next() == Some("launchway") && parts.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_as_docker_lists_them() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (reference, listed) in [
            ("nginx", "nginx:latest"),
            ("docker.io/library/nginx:1.27", "nginx:1.27"),
            ("index.docker.io/team/web", "team/web:latest"),
            ("localhost:5000/web", "localhost:5000/web:latest"),
            ("localhost:5000/web:1", "localhost:5000/web:1"),
            (&format!("web:1@{digest}"), &format!("web@{digest}")),
        ] {
            assert_eq!(familiar(&reference.parse().unwrap()).as_deref(), Some(listed));
        }
    }

    #[test]
    fn nobody_gets_the_image_of_a_deployment_by_its_name() {
        for reference in [
            "launchway/a:b",
            "docker.io/launchway/a",
            "index.docker.io/launchway/a:b",
            "registry-1.docker.io/launchway/a:b",
            "DOCKER.IO/launchway/a:b",
            "docker.io:443/launchway/a:b",
            "docker.io/index.docker.io/launchway/a",
            "library/launchway/a",
            "10.0.0.5:5000/launchway/00000000-0000-0000-0000-000000000001:b",
            "registry.example.com/team/launchway/00000000-0000-0000-0000-000000000001:b",
        ] {
            assert_eq!(familiar(&reference.parse().unwrap()), None);
        }
    }

    #[test]
    fn nobody_gets_an_image_by_the_beginning_of_its_id() {
        for reference in
            ["sha256:0", "library/sha256:0a", "docker.io/library/sha256:0a1b", "docker.io/sha256:0"]
        {
            assert_eq!(familiar(&reference.parse().unwrap()), None);
        }
        // Without a registry before it, this would be an id as well; so it has its tag.
        assert_eq!(familiar(&"0a1b".parse().unwrap()).as_deref(), Some("0a1b:latest"));
    }
}
