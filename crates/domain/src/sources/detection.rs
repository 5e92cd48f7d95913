//! Detects how source is built, by the names of its files.

use crate::applications::{BuildPack, Port};

/// The configuration of an application in its repository.
pub const MANIFEST: &str = "launchway.toml";

/// The compose files that are supported, in the order of preference.
const COMPOSE_FILES: [&str; 4] = ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"];
/// A file that identifies a language, and the default port of servers written in it.
const LANGUAGES: [(&str, u16); 13] = [
    ("package.json", 3000),
    ("requirements.txt", 8000),
    ("pyproject.toml", 8000),
    ("Pipfile", 8000),
    ("go.mod", 8080),
    ("Cargo.toml", 8080),
    ("Gemfile", 3000),
    ("composer.json", 80),
    ("mix.exs", 4000),
    ("deno.json", 8000),
    ("pom.xml", 8080),
    ("build.gradle", 8080),
    ("build.gradle.kts", 8080),
];
/// The default port of most servers.
const USUAL_PORT: u16 = 8080;

/// A file in the top folder of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// The name.
    pub name: String,
    /// The text, if it is a file that [says how the source is built](is_read).
    pub text: Option<String>,
}

/// The detected build pack and port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detected {
    /// The build pack.
    pub build_pack: BuildPack,
    /// The port that the application probably listens on.
    pub port: Port,
}

/// Returns whether the text of a file says how the source is built.
#[must_use]
pub fn is_read(name: &str) -> bool {
    name == MANIFEST || name == "Dockerfile" || COMPOSE_FILES.contains(&name)
}

/// Detects the build pack and the port; `None` if no file is known.
#[must_use]
pub fn detect(files: &[SourceFile]) -> Option<Detected> {
    let find = |name: &str| files.iter().find(|file| file.name == name);
    let text = |file: &SourceFile| file.text.clone().unwrap_or_default();
    let (build_pack, port) = if let Some(file) = find("Dockerfile") {
        (BuildPack::Dockerfile, exposed(&text(file)).unwrap_or(USUAL_PORT))
    } else if let Some(file) = COMPOSE_FILES.iter().find_map(|name| find(name)) {
        (BuildPack::DockerCompose, published(&text(file)).unwrap_or(USUAL_PORT))
    } else if let Some((_, port)) = LANGUAGES.iter().find(|(name, _)| find(name).is_some()) {
        (BuildPack::Nixpacks, *port)
    } else {
        // No process listens on it.
        find("index.html").map(|_| (BuildPack::Static, 80))?
    };
    Some(Detected { build_pack, port: Port::try_from(i64::from(port)).ok()? })
}

/// Returns the first port that the last stage of a Dockerfile exposes, or else any stage.
fn exposed(dockerfile: &str) -> Option<u16> {
    let (mut found, mut of_stage) = (None, None);
    for line in dockerfile.lines() {
        let mut words = line.split_whitespace();
        match words.next().map(str::to_ascii_uppercase).as_deref() {
            Some("FROM") => of_stage = None,
            Some("EXPOSE") => of_stage = of_stage.or_else(|| words.find_map(port)),
            _ => {}
        }
        found = of_stage.or(found);
    }
    found
}

/// Returns the first container port that a compose file publishes or exposes. Users can change it, so no YAML parser
/// is needed.
fn published(compose: &str) -> Option<u16> {
    let mut is_inside = false;
    for line in compose.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("- ") {
            Some(item) if is_inside => {
                let item = item.split(" #").next().unwrap_or(item).trim().trim_matches(['"', '\'']);
                let inner = item.rsplit(':').next().unwrap_or(item);
                if let Some(port) = port(inner.trim()) {
                    return Some(port);
                }
            }
            Some(_) => {}
            None => is_inside = matches!(line, "ports:" | "expose:"),
        }
    }
    None
}

/// Parses a port, with or without a protocol.
fn port(word: &str) -> Option<u16> {
    let number = word.split('/').next().unwrap_or(word);
    number.parse().ok().filter(|port| *port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(files: &[(&str, &str)]) -> Option<(BuildPack, u16)> {
        let files: Vec<_> = files
            .iter()
            .map(|(name, text)| SourceFile {
                name: (*name).to_owned(),
                text: is_read(name).then(|| (*text).to_owned()),
            })
            .collect();
        detect(&files).map(|found| (found.build_pack, found.port.get()))
    }

    #[test]
    fn source_is_known_by_its_files() {
        for (files, expected) in [
            (vec![("Dockerfile", "FROM x\nEXPOSE 9000")], Some((BuildPack::Dockerfile, 9000))),
            (vec![("Dockerfile", "FROM x")], Some((BuildPack::Dockerfile, 8080))),
            (
                vec![("compose.yml", "services:\n  web:\n    ports:\n      - \"8000:80\"\n")],
                Some((BuildPack::DockerCompose, 80)),
            ),
            (vec![("index.html", "")], Some((BuildPack::Static, 80))),
            (vec![("index.html", ""), ("package.json", "{}")], Some((BuildPack::Nixpacks, 3000))),
            (vec![("README.md", "")], None),
            // A container definition takes precedence over the language.
            (
                vec![("go.mod", ""), ("compose.yaml", ""), ("Dockerfile", "FROM x")],
                Some((BuildPack::Dockerfile, 8080)),
            ),
        ] {
            assert_eq!(detected(&files), expected, "{files:?}");
        }
        for (file, port) in LANGUAGES {
            assert_eq!(detected(&[(file, "")]), Some((BuildPack::Nixpacks, port)), "{file}");
        }
    }

    #[test]
    fn ports_are_those_of_the_last_stage() {
        assert_eq!(exposed("FROM a\nEXPOSE 1\nFROM b\nexpose 80/tcp 443"), Some(80));
        assert_eq!(exposed("FROM a\nEXPOSE 3000\nFROM b\n"), Some(3000));
        assert_eq!(exposed("EXPOSE $PORT 8080"), Some(8080));
        assert_eq!(exposed("# EXPOSE 1\nEXPOSE 0 70000"), None);
    }

    #[test]
    fn ports_of_a_compose_file_are_those_inside_the_container() {
        let service = |list: &str| published(&format!("services:\n  web:\n{list}"));
        assert_eq!(service("    ports:\n      - 127.0.0.1:8080:3000/tcp # web\n"), Some(3000));
        assert_eq!(service("    volumes:\n      - data:/5000\n    expose:\n      - '5000'\n"), Some(5000));
        assert_eq!(service("    volumes:\n      - \"1:2\"\n"), None);
    }
}
