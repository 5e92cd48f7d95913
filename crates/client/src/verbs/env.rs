//! Variables of an application: for its environment, and for its build.

use std::{
    collections::BTreeMap,
    io::{self, IsTerminal as _},
};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::{
    dotenv,
    failure::{Failure, Kind, Outcome},
    names, prompt,
    records::Application,
    screen::visible,
    session::Session,
};

type Variables = BTreeMap<String, String>;

#[derive(Debug, Subcommand)]
pub enum EnvVerb {
    /// List the names of variables; with --show also their values, in the format of an .env file
    List {
        /// Application, by name, name@environment or id
        app: String,
        /// Use build variables instead of environment variables
        #[arg(long)]
        build: bool,
        /// Show the values
        #[arg(long)]
        show: bool,
    },
    /// Set variables, and deploy the application
    Set {
        #[command(flatten)]
        target: Target,
        /// NAME=VALUE, or NAME to be asked for the value or to read it from standard input
        #[arg(required = true, value_name = "NAME[=VALUE]")]
        variables: Vec<String>,
    },
    /// Remove variables, and deploy the application
    Unset {
        #[command(flatten)]
        target: Target,
        /// Names of the variables to remove
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Set the variables of an .env file, and deploy the application; other variables are kept
    Import {
        #[command(flatten)]
        target: Target,
        /// Path of the file, or - for standard input
        file: String,
    },
}

/// A change of variables, and whether to redeploy.
#[derive(Args, Debug)]
pub struct Target {
    /// Application, by name, name@environment or id
    app: String,
    /// Use build variables instead of environment variables
    #[arg(long)]
    build: bool,
    /// Do not deploy; the change takes effect with the next deployment
    #[arg(long)]
    no_deploy: bool,
}

pub(crate) fn run(verb: EnvVerb, session: &Session<'_>) -> Outcome {
    match verb {
        EnvVerb::List { app, build, show } => list(&app, build, show, session),
        EnvVerb::Set { target, variables } => {
            let given = assignments(&variables)?;
            change(&target, session, |present| present.extend(given.clone()))
        }
        EnvVerb::Unset { target, names } => unset(&target, &names, session),
        EnvVerb::Import { target, file } => {
            let given = dotenv::parse(&prompt::file(&file)?)
                .map_err(|problem| Failure::new(Kind::Usage, format!("{file}, {problem}")))?;
            change(&target, session, |present| present.extend(given.clone()))
        }
    }
}

fn list(app: &str, build: bool, show: bool, session: &Session<'_>) -> Outcome {
    let application = names::application(&session.server, app)?;
    let variables = read(&application, field(build), session)?;
    if session.screen.is_for_programs() {
        return session.screen.json(&json!(variables));
    }
    if variables.is_empty() {
        let kind = field(build).replace('_', " ");
        session.screen.remark(&format!("{} has no {kind}. `launchway env set` sets one", application.name));
        return Ok(());
    }
    let text: String = match show {
        true => variables.iter().map(|(name, value)| dotenv::written(name, value)).collect(),
        false => variables.keys().map(|name| format!("{name}\n")).collect(),
    };
    // A file gets the raw value; a terminal gets no control characters.
    let text = if io::stdout().is_terminal() { visible(&text) } else { text };
    session.screen.print(&text)?;
    if !show {
        session.screen.remark("hint: --show shows the values");
    }
    Ok(())
}

fn unset(target: &Target, names: &[String], session: &Session<'_>) -> Outcome {
    let mut missing = Vec::new();
    change(target, session, |present| {
        missing = names.iter().filter(|name| present.remove(*name).is_none()).cloned().collect();
    })?;
    for name in missing {
        session.screen.remark(&format!("{name} was not set"));
    }
    Ok(())
}

/// Reads, changes and writes the variables. The API replaces all variables of a kind at once, so a
/// concurrent change would be lost; with `unchanged_since` the server rejects that, and the change is
/// retried on the new state.
fn change(target: &Target, session: &Session<'_>, mut alter: impl FnMut(&mut Variables)) -> Outcome {
    const TRIES: u32 = 20;
    let field = field(target.build);
    let application = names::application(&session.server, &target.app)?;
    let mut left = TRIES;
    let changed = loop {
        let whole = session.server.get("/deploy/application").with("id", &application.id).send()?;
        let before = variables_in(&whole, field)?;
        let mut after = before.clone();
        alter(&mut after);
        if after == before {
            session.screen.remark("Nothing changed, and nothing is deployed");
            return match session.screen.is_for_programs() {
                true => session.screen.json(&whole),
                false => Ok(()),
            };
        }
        let request = session
            .server
            .put("/deploy/application")
            .with("id", &application.id)
            .with("redeploy", !target.no_deploy)
            .with("unchanged_since", whole["updated_at"].as_str().unwrap_or_default())
            .body(json!({field: after}));
        match request.send() {
            Err(failure) if failure.kind == Kind::Conflict && left > 0 => left -= 1,
            outcome => break outcome?,
        }
    };
    if session.screen.is_for_programs() {
        return session.screen.json(&changed);
    }
    let name = &application.name;
    session.screen.remark(&match target.no_deploy {
        true => format!("Changed the variables of {name}; this takes effect with the next deployment"),
        false => format!("Changed the variables of {name}; it is deployed with them"),
    });
    Ok(())
}

fn read(application: &Application, field: &str, session: &Session<'_>) -> Outcome<Variables> {
    let whole = session.server.get("/deploy/application").with("id", &application.id).send()?;
    variables_in(&whole, field)
}

/// Parses the variables, which the API returns as a string of JSON.
fn variables_in(application: &Value, field: &str) -> Outcome<Variables> {
    let text = application[field].as_str().unwrap_or_default();
    serde_json::from_str(text).map_err(|error| {
        Failure::new(Kind::Failed, format!("cannot parse the response of the server: {error}"))
    })
}

fn field(build: bool) -> &'static str {
    if build { "build_variables" } else { "environment_variables" }
}

/// Returns the given assignments, and asks for missing values.
pub(super) fn assignments(written: &[String]) -> Outcome<Variables> {
    let mut given = Variables::new();
    let mut asked = Vec::new();
    for one in written {
        let (name, value) = match one.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (one.as_str(), None),
        };
        if !dotenv::is_name(name) {
            let sentence = format!("`{name}` is not a valid name of a variable");
            return Err(Failure::new(Kind::Usage, sentence)
                .hint("a name consists of letters, digits and `_`, and does not begin with a digit"));
        }
        match value {
            Some(value) => drop(given.insert(name.to_owned(), value.to_owned())),
            None => asked.push(name.to_owned()),
        }
    }
    if !asked.is_empty() {
        let values = prompt::secrets(&asked)?;
        given.extend(asked.into_iter().zip(values));
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_everything_behind_the_first_equals_sign() {
        let given = assignments(&["A=b=c".to_owned(), "B=".to_owned()]).unwrap();
        assert_eq!(given, Variables::from([("A".into(), "b=c".into()), ("B".into(), String::new())]));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for wrong in ["1A=x", "=x", "A-B=x", "A B=x"] {
            assert_eq!(assignments(&[wrong.to_owned()]).unwrap_err().kind, Kind::Usage, "{wrong}");
        }
    }
}
