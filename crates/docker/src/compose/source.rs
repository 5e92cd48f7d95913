//! Finds a compose file and the files that it refers to, in the checkout only.

use std::collections::BTreeMap;

use launchway_domain::{
    applications::DockerfilePath,
    deployments::{ComposeSource, StepError},
};
use tokio::task::spawn_blocking;

use super::file::ComposeFile;
use crate::context::file_beneath;

/// The file names that compose looks for, in its order.
const USUAL_NAMES: [&str; 4] = ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"];
/// The largest compose file, and the largest of the files that it refers to.
pub(super) const LARGEST: u64 = 256 * 1024;
/// The size of all env files together. One that is written in two ways, such as `a.env` and `./a.env`,
/// counts twice.
pub(super) const LARGEST_TOGETHER: usize = 1024 * 1024;
/// The most env files.
const MOST_ENV_FILES: usize = 100;

/// A compose file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FoundFile {
    /// Its path, relative to the base path.
    pub(super) path: String,
    /// The folder of the checkout that paths in it are relative to.
    pub(super) folder: String,
    pub(super) text: String,
}

/// Finds the compose file.
pub(super) async fn find(source: &ComposeSource) -> Result<FoundFile, StepError> {
    let base = source.base_path.relative().to_owned();
    let names: Vec<String> = match &source.file {
        usual if *usual == DockerfilePath::default() => USUAL_NAMES.map(str::to_owned).to_vec(),
        named => vec![named.to_string()],
    };
    for path in &names {
        let Some(text) = read(source, &base, path).await? else { continue };
        let inner = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        return Ok(FoundFile { path: path.clone(), folder: format!("{base}/{inner}"), text });
    }
    let names = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    Err(StepError::Rejected(format!(
        "there is no compose file in `{}`: looked for {names}",
        source.base_path
    )))
}

/// Returns the texts of all env files that services refer to.
pub(super) async fn env_files(
    source: &ComposeSource,
    found: &FoundFile,
    file: &ComposeFile,
) -> Result<BTreeMap<String, String>, StepError> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    let mut left = LARGEST_TOGETHER;
    for (name, service) in &file.services {
        for wanted in &service.env_files {
            if texts.contains_key(&wanted.path) {
                continue;
            }
            match read(source, &found.folder, &wanted.path).await? {
                Some(text) => {
                    let too_much = || {
                        StepError::Rejected(format!(
                            "the files that `env_file` names are more than {MOST_ENV_FILES}, or have more than {} \
                             KiB together",
                            LARGEST_TOGETHER / 1024
                        ))
                    };
                    left = left.checked_sub(text.len()).ok_or_else(too_much)?;
                    texts.insert(wanted.path.clone(), text);
                    if texts.len() > MOST_ENV_FILES {
                        return Err(too_much());
                    }
                }
                None if wanted.is_required => {
                    let path = &wanted.path;
                    return Err(StepError::Rejected(format!(
                        "`env_file` of the service `{name}`: there is no file `{path}` in the repository"
                    )));
                }
                None => {}
            }
        }
    }
    Ok(texts)
}

async fn read(source: &ComposeSource, folder: &str, path: &str) -> Result<Option<String>, StepError> {
    let (root, folder, file) =
        (source.checkout.root.clone(), folder.trim_matches('/').to_owned(), path.to_owned());
    let read = spawn_blocking(move || file_beneath(&root, &folder, &file, LARGEST)).await;
    let bytes = read.map_err(|error| StepError::failed("the checkout cannot be read", error))??;
    let no_text = || StepError::Rejected(format!("the file `{path}` is not UTF-8 text"));
    bytes.map(|bytes| String::from_utf8(bytes).map_err(|_not_text| no_text())).transpose()
}
