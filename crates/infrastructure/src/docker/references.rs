//! How docker calls an image that people named.

use launchway_domain::applications::ImageRef;

/// The reference as docker lists it: without the default registry, with the default tag.
///
/// `None` for a name of our own making, and for one that the engine would take for the beginning of
/// an id. Those are images of deployments, perhaps of another organization, and nobody may get one
/// by guessing.
pub(super) fn familiar(image: &ImageRef) -> Option<String> {
    let mut name = image.as_str();
    if is_ours(name) {
        return None;
    }
    for registry in ["docker.io/", "index.docker.io/"] {
        name = name.strip_prefix(registry).unwrap_or(name);
    }
    name = name.strip_prefix("library/").unwrap_or(name);
    if name.starts_with("sha256:") {
        return None;
    }
    let (path, digest) = name.split_once('@').map_or((name, None), |(path, digest)| (path, Some(digest)));
    let tag = path.rfind(':').filter(|colon| path.get(*colon..).is_some_and(|tag| !tag.contains('/')));
    let untagged = tag.and_then(|colon| path.get(..colon)).unwrap_or(path);
    Some(match (digest, tag) {
        (Some(digest), _) => format!("{untagged}@{digest}"),
        (None, Some(_)) => path.to_owned(),
        (None, None) => format!("{path}:latest"),
    })
}

/// Whether the name is of our own making, however docker's registry is spelled before it.
fn is_ours(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
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
