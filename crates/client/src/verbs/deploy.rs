//! Deploys an application by its name, or that of the current folder.

mod send;

use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::init;
use crate::{
    failure::{Failure, Kind, Outcome},
    manifest::{FILE, Manifest},
    names, prompt,
    records::{Application, read},
    repository::Repository,
    screen::{Screen, visible},
    server::{Request, fresh_key, retry_for},
    session::Session,
    watch::{Waiting, watch},
};

/// The time for which an idempotent request is retried while the server is unreachable.
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Args, Debug)]
pub struct Deploy {
    /// Application, by name, name@environment or id; by default that of launchway.toml
    app: Option<String>,
    /// Create a missing launchway.toml with the detected values, without asking
    #[arg(long, short)]
    yes: bool,
    /// Send the files of this folder, even if the server could fetch a repository
    #[arg(long)]
    upload: bool,
    /// Run every step of the build, instead of taking unchanged ones from earlier builds
    #[arg(long)]
    no_cache: bool,
    #[command(flatten)]
    waiting: Waiting,
}

pub(crate) fn deploy(deploy: &Deploy, session: &Session<'_>) -> Outcome {
    let (application, deployment) = match &deploy.app {
        Some(name) if deploy.upload => {
            let application = names::application(&session.server, name)?;
            send::send(session, Some(application), Manifest::here()?.as_ref(), name, deploy.no_cache)?
        }
        Some(name) => {
            let application = names::application(&session.server, name)?;
            let deployment = redeploy(session, &application, deploy.no_cache)?;
            (application, deployment)
        }
        None => here(deploy, session)?,
    };
    watch(session, &application, deployment, deploy.waiting)
}

/// Requests a deployment of the current source of an application.
pub(crate) fn redeploy(session: &Session<'_>, application: &Application, no_cache: bool) -> Outcome<Value> {
    let mut body = json!({"id": application.id});
    if no_cache {
        body["no_cache"] = true.into();
    }
    once(|key| session.server.post("/deploy/application/redeploy").body(body.clone()).once(key))
}

/// Sends an idempotent request until there is a response.
pub(crate) fn once<'a>(request: impl Fn(&str) -> Request<'a>) -> Outcome<Value> {
    let key = fresh_key()?;
    retry_for(TIMEOUT, || request(&key).send(), |_| {})
}

/// Deploys the application of the current repository.
fn here(deploy: &Deploy, session: &Session<'_>) -> Outcome<(Application, Value)> {
    let repository = Repository::here()?;
    let manifest = match Manifest::here()? {
        Some(manifest) => manifest,
        None => offer(repository.as_ref(), deploy.yes, session.screen)?,
    };
    let is_image = manifest.text("build_pack").is_some_and(|pack| pack.eq_ignore_ascii_case("image"));
    if deploy.upload || (manifest.text("repository").is_none() && !is_image) {
        let title = manifest.title()?;
        let application = match names::application(&session.server, &title) {
            Err(failure) if failure.kind == Kind::Missing => None,
            found => Some(found?),
        };
        return send::send(session, application, Some(&manifest), &title, deploy.no_cache);
    }
    if let Some(repository) = &repository {
        remind(repository, &manifest, session.screen);
    }
    match names::application(&session.server, &manifest.title()?) {
        Ok(application) => change(&manifest, application, session, deploy.no_cache),
        Err(failure) if failure.kind == Kind::Missing => make(&manifest, session),
        Err(failure) => Err(failure),
    }
}

/// Creates the missing manifest, if the user agrees.
fn offer(repository: Option<&Repository>, yes: bool, screen: &Screen) -> Outcome<Manifest> {
    let missing = || {
        Failure::new(Kind::Usage, format!("there is no {FILE}, and no application is specified"))
            .hint("`launchway init` creates one; `launchway deploy NAME` deploys an existing application")
    };
    if !yes && !screen.is_interactive() {
        return Err(missing());
    }
    let question = format!("There is no {FILE} here. Create one?");
    if !prompt::agreed(screen, &question, yes)? {
        return Err(missing());
    }
    let manifest = init::propose(repository, screen, yes)?;
    let path = manifest.write(repository, false)?;
    screen.remark(&format!("Created {}", path.display()));
    Ok(manifest)
}

/// Warns about changes in this folder that the server cannot fetch.
fn remind(repository: &Repository, manifest: &Manifest, screen: &Screen) {
    let Some(branch) = manifest.text("branch").filter(|_| manifest.text("build_pack") != Some("image"))
    else {
        return;
    };
    if let Some(own) = repository.branch().filter(|own| own != branch) {
        screen.warn(&format!("the current branch is {own}, but {branch} is deployed"));
        return;
    }
    match repository.uncommitted() {
        0 => {}
        1 => screen.warn("1 file has uncommitted changes, which are not deployed"),
        count => screen.warn(&format!("{count} files have uncommitted changes, which are not deployed")),
    }
    let is_this_folder =
        manifest.text("repository").is_some_and(|address| address == repository.root().display().to_string());
    match repository.unpushed(branch) {
        _ if is_this_folder => {}
        Some(0) => {}
        Some(1) => screen.warn(&format!("1 commit of {branch} is not pushed, and is not deployed")),
        Some(count) => {
            screen.warn(&format!("{count} commits of {branch} are not pushed, and are not deployed"));
        }
        None => screen.warn(&format!("{branch} was never pushed")),
    }
}

/// Creates the application, which deploys it.
fn make(manifest: &Manifest, session: &Session<'_>) -> Outcome<(Application, Value)> {
    let body = manifest.body();
    let made = once(|key| session.server.post("/deploy/application").body(body.clone()).once(key))?;
    let deployment = made["deployments"][0].clone();
    let application: Application = read(made)?;
    let (name, environment) = (visible(&application.name), visible(&application.environment));
    session.screen.remark(&format!("Created application {name} ({environment})"));
    Ok((application, deployment))
}

/// Updates the application from the file, and deploys it.
fn change(
    manifest: &Manifest,
    application: Application,
    session: &Session<'_>,
    no_cache: bool,
) -> Outcome<(Application, Value)> {
    let there = session.server.get("/deploy/application").with("id", &application.id).send()?;
    let differences = manifest.differences(&there);
    for one in &differences {
        session.screen.remark(&format!("{}: {} → {}", one.key, one.there, one.here));
    }
    let application = if differences.is_empty() {
        application
    } else {
        // Deployed by a separate request, which can be retried and returns the deployment.
        let request = session.server.put("/deploy/application").with("id", &application.id);
        request.with("redeploy", false).body(manifest.change(&differences)).receive()?
    };
    let deployment = redeploy(session, &application, no_cache)?;
    Ok((application, deployment))
}
