//! Previews of pull and merge requests.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::env::assignments;
use crate::{
    failure::{Failure, Kind, Outcome},
    names, prompt,
    records::Application,
    screen::visible,
    session::Session,
    table::Table,
};

const LIST: &str = "/deploy/application/previews";
const SETTINGS: &str = "/deploy/application/previews/settings";
const APPROVE: &str = "/deploy/application/previews/approve";
const TOKENS: &str = "/organizations/code-host-tokens";

#[derive(Debug, Subcommand)]
pub enum PreviewsVerb {
    /// List the previews of an application
    List {
        /// Application, by name, name@environment or id
        app: String,
    },
    /// Show the preview settings of an application, without the values of variables
    Settings {
        /// Application, by name, name@environment or id
        app: String,
    },
    /// Change the preview settings of an application
    Set(Set),
    /// Approve the preview of a request from a fork
    Approve {
        /// Application, by name, name@environment or id
        app: String,
        /// Number of the pull or merge request
        number: i64,
        /// Commit that you looked at; by default you are asked about the current one
        #[arg(long, value_name = "HASH")]
        commit: Option<String>,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
    /// List the tokens for commit statuses, without their values
    Tokens,
    /// Set the token for commit statuses at a code host; it is asked for, or read from standard input
    SetToken {
        /// Code host, as in the addresses of repositories
        host: String,
        /// Address of its API, if it is not the default
        #[arg(long, value_name = "URL")]
        api_url: Option<String>,
    },
    /// Remove the token for commit statuses at a code host
    RemoveToken {
        /// Code host, as in the addresses of repositories
        host: String,
    },
}

#[derive(Args, Debug)]
pub struct Set {
    /// Application, by name, name@environment or id
    app: String,
    /// Make previews of pull and merge requests
    #[arg(long)]
    on: bool,
    /// Make no more previews
    #[arg(long, conflicts_with = "on")]
    off: bool,
    /// Most previews at once, 1 to 50
    #[arg(long, value_name = "COUNT")]
    limit: Option<i64>,
    /// Hours after which a preview is removed, 1 to 2160
    #[arg(long, value_name = "HOURS")]
    lifetime: Option<i64>,
    /// Variable of the application that previews get too; may be repeated, and replaces the list
    #[arg(long, value_name = "NAME")]
    share: Vec<String>,
    /// Share no variables
    #[arg(long, conflicts_with = "share")]
    share_none: bool,
    /// Run the commands of the application before and after deployments of previews
    #[arg(long, value_name = "TRUE|FALSE")]
    run_commands: Option<bool>,
    /// Environment variable of previews; may be repeated, and replaces the list
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Build variable of previews; may be repeated, and replaces the list
    #[arg(long, value_name = "NAME[=VALUE]")]
    build_env: Vec<String>,
}

pub(crate) fn run(verb: PreviewsVerb, session: &Session<'_>) -> Outcome {
    match verb {
        PreviewsVerb::List { app } => list(&app, session),
        PreviewsVerb::Settings { app } => {
            let application = names::application(&session.server, &app)?;
            show_settings(&settings_of(&application, session)?, session)
        }
        PreviewsVerb::Set(set) => change(&set, session),
        PreviewsVerb::Approve { app, number, commit, yes } => approve(&app, number, commit, yes, session),
        PreviewsVerb::Tokens => tokens(session),
        PreviewsVerb::SetToken { host, api_url } => set_token(&host, api_url.as_deref(), session),
        PreviewsVerb::RemoveToken { host } => {
            session.server.delete(TOKENS).with("host", &host).send()?;
            session.screen.remark(&format!("Removed the token for {}", visible(&host)));
            Ok(())
        }
    }
}

fn previews_of(application: &Application, session: &Session<'_>) -> Outcome<Value> {
    session.server.get(LIST).with("id", &application.id).send()
}

fn settings_of(application: &Application, session: &Session<'_>) -> Outcome<Value> {
    session.server.get(SETTINGS).with("id", &application.id).send()
}

fn list(app: &str, session: &Session<'_>) -> Outcome {
    let application = names::application(&session.server, app)?;
    let data = previews_of(&application, session)?;
    if session.screen.is_for_programs() {
        return session.screen.json(&data["previews"]);
    }
    let mut table = Table::new(&["REQUEST", "STATE", "BRANCH", "COMMIT", "ADDRESS"], "No previews");
    for one in data["previews"].as_array().into_iter().flatten() {
        let state = match (text(&one["status"]), one["awaits_approval"] == true) {
            (status, true) if status.is_empty() => "waits for approval".to_owned(),
            (status, true) => format!("{status}, waits for approval"),
            (status, false) => status,
        };
        let commit: String = text(&one["commit"]).chars().take(7).collect();
        let cells = [one["number"].to_string(), state, text(&one["branch"]), commit, text(&one["url"])];
        table.row(cells.map(Into::into));
    }
    session.screen.print(&session.screen.table(&table))
}

fn show_settings(settings: &Value, session: &Session<'_>) -> Outcome {
    if session.screen.is_for_programs() {
        return session.screen.json(settings);
    }
    let names = |field: &str| -> String {
        let map: Map<String, Value> = serde_json::from_str(&text(&settings[field])).unwrap_or_default();
        map.keys().cloned().collect::<Vec<_>>().join(", ")
    };
    let shared: Vec<_> = settings["shared_variables"].as_array().into_iter().flatten().map(text).collect();
    let lines = [
        ("previews", if settings["enabled"] == true { "on" } else { "off" }.to_owned()),
        ("limit", settings["limit"].to_string()),
        ("lifetime", format!("{} hours", settings["lifetime_hours"])),
        ("shared variables", shared.join(", ")),
        ("run commands", if settings["run_commands"] == true { "yes" } else { "no" }.to_owned()),
        ("environment variables", names("environment_variables")),
        ("build variables", names("build_variables")),
    ];
    let lines: String = lines.iter().map(|(name, value)| format!("{name}: {}\n", visible(value))).collect();
    session.screen.print(&lines)
}

fn change(set: &Set, session: &Session<'_>) -> Outcome {
    let mut body = Map::new();
    if set.on || set.off {
        body.insert("enabled".to_owned(), json!(set.on));
    }
    let numbers = [("limit", set.limit), ("lifetime_hours", set.lifetime)];
    body.extend(numbers.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?)))));
    if set.share_none || !set.share.is_empty() {
        body.insert("shared_variables".to_owned(), json!(set.share));
    }
    if let Some(run_commands) = set.run_commands {
        body.insert("run_commands".to_owned(), json!(run_commands));
    }
    for (name, given) in [("environment_variables", &set.env), ("build_variables", &set.build_env)] {
        if !given.is_empty() {
            body.insert(name.to_owned(), json!(assignments(given)?));
        }
    }
    if body.is_empty() {
        return Err(Failure::new(Kind::Usage, "there is nothing to change")
            .hint("`launchway previews set --help` lists the options"));
    }
    let application = names::application(&session.server, &set.app)?;
    let request = session.server.put(SETTINGS).with("id", &application.id).body(Value::Object(body));
    let changed = request.send()?;
    if session.screen.is_for_programs() {
        return session.screen.json(&changed);
    }
    session.screen.remark(&format!("Changed the preview settings of {}", application.name));
    show_settings(&changed, session)
}

fn approve(app: &str, number: i64, commit: Option<String>, yes: bool, session: &Session<'_>) -> Outcome {
    let application = names::application(&session.server, app)?;
    let commit = match commit {
        Some(commit) => commit,
        None => {
            let data = previews_of(&application, session)?;
            let found = data["previews"].as_array().into_iter().flatten().find(|one| one["number"] == number);
            let missing = || {
                Failure::new(
                    Kind::Missing,
                    format!("{} has no preview of request {number}", application.name),
                )
                .hint(format!("`launchway previews list {app}` lists them"))
            };
            text(&found.ok_or_else(missing)?["commit"])
        }
    };
    let question = format!("Build and run commit {} of the fork of request {number}?", visible(&commit));
    if !prompt::agreed(session.screen, &question, yes)? {
        return Ok(());
    }
    let body = json!({"id": application.id, "number": number, "commit": commit});
    let approved = session.server.post(APPROVE).body(body).send()?;
    if session.screen.is_for_programs() {
        return session.screen.json(&approved);
    }
    session.screen.remark(&format!("Approved request {number}: {} is deployed", text(&approved["name"])));
    Ok(())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn tokens(session: &Session<'_>) -> Outcome {
    let data = session.server.get(TOKENS).send()?;
    if session.screen.is_for_programs() {
        return session.screen.json(&data["tokens"]);
    }
    let mut table = Table::new(&["HOST", "API", "CHANGED", "LAST ERROR"], "No tokens");
    for one in data["tokens"].as_array().into_iter().flatten() {
        let cells = ["host", "api_url", "updated_at", "last_error"].map(|field| text(&one[field]));
        table.row(cells.map(Into::into));
    }
    session.screen.print(&session.screen.table(&table))
}

fn set_token(host: &str, api_url: Option<&str>, session: &Session<'_>) -> Outcome {
    let token = prompt::secret("Access token")?;
    let mut body = json!({"host": host, "token": token});
    if let Some(url) = api_url {
        body["api_url"] = url.into();
    }
    let stored = session.server.put(TOKENS).body(body).send()?;
    if session.screen.is_for_programs() {
        return session.screen.json(&stored);
    }
    session.screen.remark(&format!("Previews of repositories at {} are reported there", visible(host)));
    Ok(())
}
