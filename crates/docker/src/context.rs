//! The build context within a checkout, whatever the repository's symbolic links point to.
//!
//! **Invariant:** nothing outside the checkout is opened or even looked up, so that an error does not
//! reveal what exists there. Docker itself follows links, so it gets a folder that is no link and the text
//! of the Dockerfile instead of its path. The checkout does not change meanwhile.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use launchway_domain::{
    applications::{BasePath, DockerfilePath},
    deployments::StepError,
};

use crate::links::{Lost, beneath};

const LARGEST_DOCKERFILE: u64 = 1024 * 1024;

/// The inputs of a build.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BuildContext {
    /// The folder whose files the build may copy.
    pub(super) folder: PathBuf,
    /// The text of the Dockerfile.
    pub(super) dockerfile: Vec<u8>,
}

impl BuildContext {
    /// Finds the inputs below `root`. Blocks.
    pub(super) fn find(
        root: &Path,
        base_path: &BasePath,
        dockerfile: &DockerfilePath,
        largest: u64,
    ) -> Result<Self, StepError> {
        let root = fs::canonicalize(root)
            .map_err(|error| StepError::failed("the checkout cannot be read", error))?;
        let base = base_path.as_str();
        let folder = beneath(&root, &root, base_path.relative()).map_err(|lost| {
            lost.into_step_error(&format!("there is no folder `{base}`"), &format!("the folder `{base}`"))
        })?;
        if !folder.is_dir() {
            return Err(StepError::Rejected(format!("`{base}` is not a folder")));
        }
        let path = dockerfile.as_str();
        let file = beneath(&root, &folder, path).map_err(|lost| {
            lost.into_step_error(
                &format!("there is no Dockerfile at `{path}`"),
                &format!("the Dockerfile `{path}`"),
            )
        })?;
        let dockerfile = text_of(&file, path)?;
        // The client reads this file itself.
        beneath(&root, &folder, ".dockerignore")
            .map(drop)
            .or_else(|lost| if matches!(lost, Lost::NotThere) { Ok(()) } else { Err(lost) })
            .map_err(|lost| {
                lost.into_step_error("there is no `.dockerignore`", "the file `.dockerignore`")
            })?;
        let mut left = largest;
        measure(&folder, &mut left).map_err(|error| match error {
            None => StepError::Rejected(format!(
                "the folder `{base}` has more than {} MiB of files",
                largest / 1024 / 1024
            )),
            Some(error) => StepError::failed("the checkout cannot be read", error),
        })?;
        Ok(Self { folder, dockerfile })
    }
}

/// Returns the bytes of the file at `path` from `folder` of the checkout; `None` if it does not exist.
/// Blocks.
pub(super) fn file_beneath(
    root: &Path,
    folder: &str,
    path: &str,
    largest: u64,
) -> Result<Option<Vec<u8>>, StepError> {
    let broken = |error| StepError::failed("the checkout cannot be read", error);
    let root = fs::canonicalize(root).map_err(broken)?;
    let subject = format!("the file `{path}`");
    let found = beneath(&root, &root, folder).and_then(|folder| beneath(&root, &folder, path));
    let file = match found {
        Err(Lost::NotThere) => return Ok(None),
        found => found.map_err(|lost| lost.into_step_error("", &subject))?,
    };
    let metadata = fs::symlink_metadata(&file).map_err(broken)?;
    if !metadata.is_file() {
        return Err(StepError::Rejected(format!("{subject} is not a file")));
    }
    if metadata.len() > largest {
        return Err(StepError::Rejected(format!("{subject} has more than {} KiB", largest / 1024)));
    }
    fs::read(&file).map(Some).map_err(broken)
}

fn text_of(file: &Path, path: &str) -> Result<Vec<u8>, StepError> {
    let broken = |error| StepError::failed("the checkout cannot be read", error);
    let metadata = fs::symlink_metadata(file).map_err(broken)?;
    if !metadata.is_file() {
        return Err(StepError::Rejected(format!("the Dockerfile `{path}` is not a file")));
    }
    if metadata.len() > LARGEST_DOCKERFILE {
        return Err(StepError::Rejected(format!("the Dockerfile `{path}` has more than 1 MiB")));
    }
    fs::read(file).map_err(broken)
}

/// Subtracts the size of every file from `left`; `Err(None)` when nothing is left.
fn measure(folder: &Path, left: &mut u64) -> Result<(), Option<io::Error>> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                folders.push(entry.path());
            } else if metadata.is_file() {
                *left = left.checked_sub(metadata.len()).ok_or(None)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Repository(tempfile::TempDir);

    impl Repository {
        fn new() -> Self {
            let repository = Self(tempfile::tempdir().unwrap());
            fs::create_dir_all(repository.0.path().join("repo/app")).unwrap();
            fs::write(repository.0.path().join("secret"), "hunter2").unwrap();
            repository
        }

        fn write(self, path: &str, text: &str) -> Self {
            fs::write(self.0.path().join("repo").join(path), text).unwrap();
            self
        }

        fn link(self, path: &str, target: &str) -> Self {
            symlink(target, self.0.path().join("repo").join(path)).unwrap();
            self
        }

        fn find(&self, base_path: &str, dockerfile: &str) -> Result<BuildContext, StepError> {
            let root = self.0.path().join("repo");
            BuildContext::find(&root, &base_path.parse().unwrap(), &dockerfile.parse().unwrap(), 1000)
        }

        fn refusal(&self, base_path: &str, dockerfile: &str) -> String {
            match self.find(base_path, dockerfile) {
                Err(StepError::Rejected(sentence)) => sentence,
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_dockerfile_is_found_in_the_base_path() {
        let context = Repository::new().write("app/Dockerfile", "FROM x").find("/app", "Dockerfile").unwrap();
        assert_eq!(context.dockerfile, b"FROM x");
        assert!(context.folder.ends_with("repo/app"));
    }

    #[test]
    fn links_inside_the_repository_are_followed() {
        let repository =
            Repository::new().write("real", "FROM x").link("app/Dockerfile", "../real").link("web", "app/.");
        assert_eq!(repository.find("/web", "Dockerfile").unwrap().dockerfile, b"FROM x");
    }

    #[test]
    fn links_out_of_the_repository_show_nothing_of_the_target() {
        for target in [
            "/etc/passwd",
            "/no/such/file",
            "../secret",
            "../nothing",
            "app/../../secret",
            "/proc/self/environ",
        ] {
            let told = Repository::new().link("Dockerfile", target).refusal("/", "Dockerfile");
            assert_eq!(told, "the Dockerfile `Dockerfile` is a link to a path outside the repository");
        }
        for target in ["/etc", "/nothing", "..", "../.."] {
            let told = Repository::new().link("out", target).refusal("/out", "Dockerfile");
            assert_eq!(told, "the folder `/out` is a link to a path outside the repository");
            let told = Repository::new().link("out", target).refusal("/", "out/passwd");
            assert_eq!(told, "the Dockerfile `out/passwd` is a link to a path outside the repository");
        }
        let repository = Repository::new().write("Dockerfile", "FROM x").link(".dockerignore", "/etc/passwd");
        let told = repository.refusal("/", "Dockerfile");
        assert_eq!(told, "the file `.dockerignore` is a link to a path outside the repository");
    }

    #[test]
    fn what_is_missing_or_no_file_is_reported() {
        let repository = Repository::new().link("round", "round").write("file", "");
        assert_eq!(repository.refusal("/", "Dockerfile"), "there is no Dockerfile at `Dockerfile`");
        assert_eq!(repository.refusal("/", "round"), "there is no Dockerfile at `round`");
        assert_eq!(repository.refusal("/", "app"), "the Dockerfile `app` is not a file");
        assert_eq!(repository.refusal("/nothing", "Dockerfile"), "there is no folder `/nothing`");
        assert_eq!(repository.refusal("/file", "Dockerfile"), "`/file` is not a folder");
        assert_eq!(repository.refusal("/", "file/x"), "there is no Dockerfile at `file/x`");
    }

    #[test]
    fn a_file_is_read_from_within_the_repository_only() {
        let repository = Repository::new()
            .write("app/a.env", "A=1")
            .link("app/inside", "../app/a.env")
            .link("app/out", "../../secret")
            .link("app/root", "/etc/passwd");
        let read = |folder: &str, path: &str| {
            file_beneath(&repository.0.path().join("repo"), folder, path, 10)
                .map(|bytes| bytes.map(|bytes| String::from_utf8(bytes).unwrap()))
        };
        for path in ["a.env", "./a.env", "../app/a.env", "inside"] {
            assert_eq!(read("app", path), Ok(Some("A=1".to_owned())), "{path}");
        }
        assert_eq!(read("app", "b.env"), Ok(None));
        assert_eq!(read("nothing", "b.env"), Ok(None));
        for path in ["/etc/passwd", "../../secret", "out", "root", "/proc/self/environ", ".."] {
            let told = read("app", path).unwrap_err().to_string();
            let is_told = told.contains("outside the repository") || told.contains("is not a file");
            assert!(is_told && !told.contains("hunter2"), "{path}: {told}");
        }
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let repository = Repository::new().write("Dockerfile", "FROM x").write("app/a", &"x".repeat(994));
        assert!(repository.find("/", "Dockerfile").is_ok());
        let told = repository.write("app/b", "x").refusal("/", "Dockerfile");
        assert_eq!(told, "the folder `/` has more than 0 MiB of files");
        let large = Repository::new().write("Dockerfile", &"#".repeat(1024 * 1024 + 1));
        assert_eq!(large.refusal("/", "Dockerfile"), "the Dockerfile `Dockerfile` has more than 1 MiB");
    }
}
