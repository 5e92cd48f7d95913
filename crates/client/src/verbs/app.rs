//! Commands on one application: show, change and delete it.

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{deploy::redeploy, deployments};
use crate::{
    addresses,
    failure::{Failure, Kind, Outcome},
    names, prompt,
    records::{Application, Deployment, read},
    screen::{Screen, Tone, tone_of, visible},
    session::Session,
    watch::{Waiting, watch},
    when::ago,
};

/// The number of deployments that are shown with an application.
const DEPLOYMENTS: usize = 5;

#[derive(Debug, Subcommand)]
pub enum AppVerb {
    /// Show the settings, addresses and latest deployments of an application
    Show {
        /// Application, by name, name@environment or id; by default that of launchway.toml
        app: Option<String>,
    },
    /// Change the settings of an application, and deploy it
    Edit(Box<Edit>),
    /// Delete an application with its containers, images, files, volumes and logs
    Delete {
        /// Application, by name, name@environment or id
        app: String,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Args, Debug)]
pub struct Edit {
    /// Application, by name, name@environment or id; by default that of launchway.toml
    app: Option<String>,
    #[command(flatten)]
    fields: Fields,
    /// Do not deploy; the change takes effect with the next deployment
    #[arg(long, conflicts_with_all = ["detach", "timeout"])]
    no_deploy: bool,
    #[command(flatten)]
    waiting: Waiting,
}

/// The settings of an application that can be changed.
#[derive(Args, Debug)]
#[command(next_help_heading = "Settings")]
struct Fields {
    /// Name of the application
    #[arg(long)]
    name: Option<String>,
    /// URL of the repository, or reference of the image
    #[arg(long, value_name = "ADDRESS")]
    repository: Option<String>,
    /// Branch to deploy
    #[arg(long)]
    branch: Option<String>,
    /// Environment: production, staging, development or another name
    #[arg(long)]
    environment: Option<String>,
    /// Build pack: dockerfile, docker-compose, image, static or nixpacks
    #[arg(long, value_name = "PACK")]
    build_pack: Option<String>,
    /// Folder of the application in the repository
    #[arg(long, value_name = "PATH")]
    base_path: Option<String>,
    /// Path of the Dockerfile or compose file in that folder
    #[arg(long, value_name = "PATH")]
    dockerfile_path: Option<String>,
    /// Port that it listens on in its container
    #[arg(long)]
    port: Option<u16>,
    /// Number of copies that run, from 1 to 100
    #[arg(long, value_name = "NUMBER")]
    replicas: Option<u16>,
    /// Custom domain
    #[arg(long)]
    domain: Option<String>,
    /// Path of the health check that a version must pass before it gets traffic
    #[arg(long, value_name = "PATH")]
    health_check_path: Option<String>,
    /// Command to run in the new image before it gets traffic
    #[arg(long, value_name = "COMMAND")]
    pre_run_command: Option<String>,
    /// Command to run in the new image after it gets traffic
    #[arg(long, value_name = "COMMAND")]
    post_run_command: Option<String>,
    /// Label, which replaces the existing ones; can be repeated
    #[arg(long = "label", value_name = "WORD")]
    labels: Vec<String>,
    /// Deploy on push
    #[arg(long, value_name = "BOOL")]
    auto_deploy: Option<bool>,
    /// Pattern of paths that a push must change to deploy, as in .gitignore; replaces the existing ones, can be
    /// repeated, and "" removes them
    #[arg(long = "watch-path", value_name = "PATTERN")]
    watch_paths: Vec<String>,
    /// Proxy that terminates TLS in front of it: launchway or caddy
    #[arg(long, value_name = "PROXY")]
    proxy_server: Option<String>,
}

impl Fields {
    /// Returns the given fields, by their names in the API.
    fn given(&self) -> Map<String, Value> {
        let labels = Some(&self.labels).filter(|labels| !labels.is_empty());
        let watched: Vec<_> = self.watch_paths.iter().filter(|pattern| !pattern.is_empty()).collect();
        let watch_paths = Some(watched).filter(|_| !self.watch_paths.is_empty());
        let all = [
            ("name", json!(self.name)),
            ("repository", json!(self.repository)),
            ("branch", json!(self.branch)),
            ("environment", json!(self.environment)),
            ("build_pack", json!(self.build_pack)),
            ("base_path", json!(self.base_path)),
            ("dockerfile_path", json!(self.dockerfile_path)),
            ("port", json!(self.port)),
            ("replicas", json!(self.replicas)),
            ("domain", json!(self.domain)),
            ("health_check_path", json!(self.health_check_path)),
            ("pre_run_command", json!(self.pre_run_command)),
            ("post_run_command", json!(self.post_run_command)),
            ("labels", json!(labels)),
            ("auto_deploy", json!(self.auto_deploy)),
            ("watch_paths", json!(watch_paths)),
            ("proxy_server", json!(self.proxy_server)),
        ];
        let given = all.into_iter().filter(|(_, value)| !value.is_null());
        given.map(|(key, value)| (key.to_owned(), value)).collect()
    }
}

pub(crate) fn run(verb: AppVerb, session: &Session<'_>) -> Outcome {
    match verb {
        AppVerb::Show { app } => show(app.as_deref(), session),
        AppVerb::Edit(edit) => change(&edit, session),
        AppVerb::Delete { app, yes } => delete(&app, yes, session),
    }
}

/// An application as it is displayed.
#[derive(Deserialize)]
struct Shown {
    #[serde(flatten)]
    application: Application,
    base_path: String,
    dockerfile_path: String,
    health_check_path: String,
    pre_run_command: String,
    post_run_command: String,
    proxy_server: String,
    labels: Vec<String>,
    auto_deploy: bool,
    replicas: u16,
    watch_paths: Vec<String>,
    deployments: Vec<Deployment>,
}

fn show(app: Option<&str>, session: &Session<'_>) -> Outcome {
    let application = names::meant(&session.server, app)?;
    let data = session.server.get("/deploy/application").with("id", &application.id).send()?;
    if session.screen.is_for_programs() {
        return session.screen.json(&data);
    }
    let addresses = match addresses::live(&session.server, &application)? {
        Some(deployment) => addresses::of(&session.server, &application, &deployment)?,
        None => Vec::new(),
    };
    session.screen.show(data, |shown: Shown| described(&shown, &addresses, session.screen))
}

fn described(shown: &Shown, addresses: &[String], screen: &Screen) -> String {
    let Shown { application, deployments, .. } = shown;
    let yes_or_no = |truth: bool| if truth { "yes" } else { "no" }.to_owned();
    let fields = [
        ("Address", addresses.join("\n")),
        ("Domains", application.domains.join("\n")),
        ("Repository", application.repository.clone()),
        ("Branch", application.branch.clone()),
        ("Build pack", application.build_pack.clone()),
        ("Folder", shown.base_path.clone()),
        ("Build file", of_pack(&application.build_pack, &shown.dockerfile_path)),
        ("Port", application.port.to_string()),
        ("Replicas", shown.replicas.to_string()),
        ("Health check", shown.health_check_path.clone()),
        ("Before traffic", shown.pre_run_command.clone()),
        ("After traffic", shown.post_run_command.clone()),
        ("Deploy on push", yes_or_no(shown.auto_deploy)),
        ("Watched paths", shown.watch_paths.join("\n")),
        ("TLS proxy", if shown.proxy_server == "caddy" { "caddy".to_owned() } else { String::new() }),
        ("Labels", shown.labels.join(", ")),
        ("Changed", ago(&application.updated_at)),
        ("Id", application.id.clone()),
    ];
    let state = screen.tint(&visible(application.state()), tone_of(application.state()));
    let name = screen.tint(&visible(&application.name), Tone::Strong);
    let mut text = format!("{name} ({}), {state}\n\n", visible(&application.environment));
    for (label, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
        for (number, line) in visible(value).lines().enumerate() {
            let label = screen.tint(&format!("{:15}", if number == 0 { label } else { "" }), Tone::Quiet);
            text.push_str(&format!("{label} {line}\n"));
        }
    }
    let newest = &deployments[..deployments.len().min(DEPLOYMENTS)];
    format!("{text}\n{}", screen.table(&deployments::table(newest)))
}

/// The build file, if the build pack has one.
fn of_pack(build_pack: &str, file: &str) -> String {
    if matches!(build_pack, "dockerfile" | "docker-compose") { file.to_owned() } else { String::new() }
}

/// Changes fields, and deploys.
fn change(edit: &Edit, session: &Session<'_>) -> Outcome {
    let fields = edit.fields.given();
    if fields.is_empty() {
        return Err(Failure::new(Kind::Usage, "no changes are given")
            .hint("use options such as --branch, --port or --domain; --help lists them"));
    }
    let application = names::meant(&session.server, edit.app.as_deref())?;
    let request = session.server.put("/deploy/application").with("id", &application.id);
    // Deployed by a separate request, which can be retried and returns the deployment.
    let is_scaled = fields.len() == 1 && fields.contains_key("replicas");
    let changed = request.with("redeploy", false).body(fields.into()).send()?;
    if is_scaled {
        session.screen.remark("Changed; copies are started or stopped now");
        return if session.screen.is_for_programs() { session.screen.json(&changed) } else { Ok(()) };
    }
    if edit.no_deploy {
        session.screen.remark("Changed; this takes effect with the next deployment");
        return if session.screen.is_for_programs() { session.screen.json(&changed) } else { Ok(()) };
    }
    let application: Application = read(changed)?;
    let deployment = redeploy(session, &application, false)?;
    watch(session, &application, deployment, edit.waiting)
}

fn delete(app: &str, yes: bool, session: &Session<'_>) -> Outcome {
    let application = names::application(&session.server, app)?;
    let (name, environment) = (&visible(&application.name), visible(&application.environment));
    let question =
        format!("This deletes {name} ({environment}) with its containers, images, files, volumes and logs.");
    if !prompt::meant(session.screen, &question, name, yes)? {
        return Err(Failure::new(Kind::Failed, "the name does not match: nothing was deleted"));
    }
    let data = session.server.delete("/deploy/application").with("id", &application.id).send()?;
    session.screen.remark(&format!("Deleted {name}"));
    if session.screen.is_for_programs() { session.screen.json(&data) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::manifest::KEYS;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        fields: Fields,
    }

    #[test]
    fn whatever_a_file_can_say_can_be_changed() {
        let mut line = vec!["edit".to_owned()];
        for (key, _) in KEYS {
            let flag = match *key {
                // One value for each.
                "labels" | "watch_paths" => key.trim_end_matches('s').replace('_', "-"),
                key => key.replace('_', "-"),
            };
            let value = match *key {
                "port" | "replicas" => "1",
                "auto_deploy" => "true",
                _ => "x",
            };
            line.extend([format!("--{flag}"), value.to_owned()]);
        }
        let given = Line::parse_from(line).fields.given();
        assert_eq!(given.len(), KEYS.len());
        assert!(KEYS.iter().all(|(key, _)| given.contains_key(*key)), "{given:?}");
        assert!(Line::parse_from(["edit"]).fields.given().is_empty());
    }

    #[test]
    fn an_empty_pattern_removes_the_watched_paths() {
        let given = |line: &[&str]| Line::parse_from(line).fields.given();
        assert_eq!(given(&["edit", "--watch-path", ""])["watch_paths"], json!([]));
        let two = ["edit", "--watch-path", "a/", "--watch-path", "!b"];
        assert_eq!(given(&two)["watch_paths"], json!(["a/", "!b"]));
    }
}
