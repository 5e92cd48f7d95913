//! Detects the application in a folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The compose files that the server supports, in its order of preference.
const COMPOSE_FILES: &[&str] = &["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"];
/// A file that identifies a language, and the default port of servers written in it.
const LANGUAGES: &[(&str, u16)] = &[
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

/// The detected build pack and port of a folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Proposal {
    pub(crate) build_pack: &'static str,
    pub(crate) port: u16,
    /// The folder inside the repository, with a leading slash.
    pub(crate) base_path: String,
}

/// Detects the application in the current folder, or else in the whole repository.
pub(crate) fn of(root: &Path, place: &Path) -> Option<Proposal> {
    let inside = place.canonicalize().ok().and_then(|place| {
        let root = root.canonicalize().ok()?;
        Some(place.strip_prefix(root).ok()?.to_owned())
    });
    let mut folders: Vec<PathBuf> = inside.into_iter().collect();
    folders.push(PathBuf::new());
    folders.into_iter().find_map(|folder| in_folder(root, &folder))
}

fn in_folder(root: &Path, folder: &Path) -> Option<Proposal> {
    let here = root.join(folder);
    let base_path = format!("/{}", folder.display());
    let proposal = |build_pack, port| Some(Proposal { build_pack, port, base_path: base_path.clone() });
    if let Ok(text) = fs::read_to_string(here.join("Dockerfile")) {
        return proposal("dockerfile", exposed(&text).unwrap_or(USUAL_PORT));
    }
    for name in COMPOSE_FILES {
        if let Ok(text) = fs::read_to_string(here.join(name)) {
            return proposal("docker-compose", published(&text).unwrap_or(USUAL_PORT));
        }
    }
    if let Some((_, port)) = LANGUAGES.iter().find(|(file, _)| here.join(file).is_file()) {
        return proposal("nixpacks", *port);
    }
    // No process listens; the API requires a port all the same.
    here.join("index.html").is_file().then(|| proposal("static", 80))?
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

/// Returns the first container port that a compose file publishes or exposes. This is only a proposal, so
/// no YAML parser is needed.
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

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn proposed(files: &[(&str, &str)]) -> Option<(&'static str, u16)> {
        let folder = folder(files);
        of(folder.path(), folder.path()).map(|proposal| (proposal.build_pack, proposal.port))
    }

    #[test]
    fn a_folder_is_known_by_its_files() {
        assert_eq!(proposed(&[("Dockerfile", "FROM x\nEXPOSE 9000")]), Some(("dockerfile", 9000)));
        assert_eq!(proposed(&[("Dockerfile", "FROM x")]), Some(("dockerfile", 8080)));
        assert_eq!(
            proposed(&[("compose.yml", "services:\n  web:\n    ports:\n      - \"8000:80\"\n")]),
            Some(("docker-compose", 80))
        );
        assert_eq!(proposed(&[("index.html", "")]), Some(("static", 80)));
        assert_eq!(proposed(&[("index.html", ""), ("package.json", "{}")]), Some(("nixpacks", 3000)));
        for (file, port) in LANGUAGES {
            assert_eq!(proposed(&[(file, "")]), Some(("nixpacks", *port)), "{file}");
        }
        assert_eq!(proposed(&[("README.md", "")]), None);
        // A container definition takes precedence over the language.
        assert_eq!(
            proposed(&[("Dockerfile", "FROM x"), ("compose.yaml", ""), ("go.mod", ""), ("index.html", "")]),
            Some(("dockerfile", 8080))
        );
    }

    #[test]
    fn the_folder_that_somebody_stands_in_comes_first() {
        let folder = folder(&[("Dockerfile", "FROM x"), ("apps/web/index.html", ""), ("apps/README.md", "")]);
        let of = |place: &str| of(folder.path(), &folder.path().join(place)).unwrap();
        assert_eq!(of("apps/web").base_path, "/apps/web");
        assert_eq!(of("apps/web").build_pack, "static");
        assert_eq!((of("apps").base_path, of("apps").build_pack), ("/".to_owned(), "dockerfile"));
        assert_eq!(of("").base_path, "/");
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
