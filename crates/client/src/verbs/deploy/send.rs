//! Deploys the files of the current folder, which the server cannot fetch.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{
    failure::{Failure, Kind, Outcome},
    manifest::{FILE, Manifest},
    records::{Application, read},
    repository::Repository,
    screen::visible,
    session::Session,
    upload::{Folder, Uploader},
};

/// Files that the server needs even if a `.dockerignore` excludes them.
const NEEDED: [&str; 6] =
    [FILE, "Dockerfile", "compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"];

/// Uploads the files, and returns the application and its deployment. Without an application, `title` is that of a new one.
pub(super) fn send(
    session: &Session<'_>,
    application: Option<Application>,
    manifest: Option<&Manifest>,
    title: &str,
    no_cache: bool,
) -> Outcome<(Application, Value)> {
    if let Some(application) = &application {
        update(session, application, manifest)?;
    }
    let repository = Repository::here()?;
    let root = repository.as_ref().map_or(Path::new("."), Repository::root);
    let own = dockerfile(manifest);
    let own = own.to_string_lossy();
    let needed: Vec<&str> = NEEDED.into_iter().chain([own.as_ref()]).collect();
    let folder = Folder::read(root, &needed)?;
    if folder.count() == 0 {
        return Err(Failure::new(Kind::Failed, "there are no files to upload here"));
    }
    let mut target = match &application {
        Some(application) => json!({"id": application.id}),
        None => {
            let (name, environment) = title.rsplit_once('@').unwrap_or((title, "production"));
            json!({"name": name, "environment": environment})
        }
    };
    if no_cache {
        target["no_cache"] = true.into();
    }
    let deployment = Uploader::new(&session.server, session.screen, &folder).deploy(&target)?;
    let digest = deployment["source_digest"].as_str().unwrap_or_default();
    session.screen.remark(&format!("Source digest {}", visible(digest)));
    if let Some(application) = application {
        return Ok((application, deployment));
    }
    let application: Application = read(deployment["application"].clone())?;
    let (name, environment) = (visible(&application.name), visible(&application.environment));
    session.screen.remark(&format!("Created application {name} ({environment})"));
    Ok((application, deployment))
}

/// Updates an application from the file, and makes its source what is uploaded.
fn update(session: &Session<'_>, application: &Application, manifest: Option<&Manifest>) -> Outcome {
    let there = session.server.get("/deploy/application").with("id", &application.id).send()?;
    let mut differences = manifest.map(|manifest| manifest.differences(&there)).unwrap_or_default();
    differences.retain(|one| !matches!(one.key.as_str(), "repository" | "branch"));
    for one in &differences {
        session.screen.remark(&format!("{}: {} → {}", one.key, one.there, one.here));
    }
    let mut change = manifest.map_or_else(|| json!({}), |manifest| manifest.change(&differences));
    let own = format!("/git/{}.git", application.id);
    if there["repository"] != own.as_str() {
        session.screen.remark(&format!("repository: {} → {own}", visible(&application.repository)));
        change["repository"] = json!(own);
    }
    if change.as_object().is_none_or(serde_json::Map::is_empty) {
        return Ok(());
    }
    let request = session.server.put("/deploy/application").with("id", &application.id);
    request.with("redeploy", false).body(change).send().map(drop)
}

/// Returns the Dockerfile or compose file that the manifest names.
fn dockerfile(manifest: Option<&Manifest>) -> PathBuf {
    let text =
        |key: &str| manifest.and_then(|manifest| manifest.text(key)).unwrap_or_default().trim_matches('/');
    Path::new(text("base_path")).join(match text("dockerfile_path") {
        "" => "Dockerfile",
        path => path,
    })
}
