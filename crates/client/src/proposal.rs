//! Detects the application in a folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use launchway_domain::sources::{SourceFile, detect, is_read};

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
    let files: Vec<SourceFile> =
        fs::read_dir(root.join(folder)).ok()?.flatten().filter_map(|entry| source_file(&entry)).collect();
    let found = detect(&files)?;
    Some(Proposal {
        build_pack: found.build_pack.as_str(),
        port: found.port.get(),
        base_path: format!("/{}", folder.display()),
    })
}

/// Returns a file with its name, and its text if that says how the source is built.
fn source_file(entry: &fs::DirEntry) -> Option<SourceFile> {
    let (name, path) = (entry.file_name().into_string().ok()?, entry.path());
    if !path.is_file() {
        return None;
    }
    let text = if is_read(&name) { Some(fs::read_to_string(path).ok()?) } else { None };
    Some(SourceFile { name, text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::folder;

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
}
