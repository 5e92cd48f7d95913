//! Commands on a running application: restart, stop and open.

use std::process::{Command, Stdio};

use clap::Args;
use serde_json::json;

use crate::{
    addresses,
    failure::{Failure, Kind, Outcome},
    names,
    screen::visible,
    session::Session,
};

#[derive(Args, Debug)]
pub struct Which {
    /// Application, by name, name@environment or id; by default that of launchway.toml
    app: Option<String>,
}

pub(crate) fn restart(which: &Which, session: &Session<'_>) -> Outcome {
    act("restart", "is restarting", which, session)
}

pub(crate) fn stop(which: &Which, session: &Session<'_>) -> Outcome {
    act("stop", "is stopping; `launchway restart` starts it again", which, session)
}

fn act(verb: &str, what: &str, which: &Which, session: &Session<'_>) -> Outcome {
    let application = names::meant(&session.server, which.app.as_deref())?;
    let request = session.server.post(&format!("/deploy/application/{verb}"));
    let data = request.body(json!({"id": application.id})).send()?;
    session.screen.remark(&format!("{} {what}", visible(&application.name)));
    if session.screen.is_for_programs() { session.screen.json(&data) } else { Ok(()) }
}

/// Opens an application in a browser, if there is one, and prints its address in any case.
pub(crate) fn open(which: &Which, session: &Session<'_>) -> Outcome {
    let application = names::meant(&session.server, which.app.as_deref())?;
    let live = addresses::live(&session.server, &application)?;
    let addresses = match &live {
        Some(deployment) => addresses::of(&session.server, &application, deployment)?,
        None => Vec::new(),
    };
    let Some(address) = addresses.first() else {
        let name = &application.name;
        let (sentence, hint) = match live {
            None => (format!("{name} is not live"), format!("`launchway deploy {name}` deploys it")),
            Some(_) => (
                format!("the server has no address for {name}"),
                "it has no front proxy: see LAUNCHWAY_PROXY_BIND".to_owned(),
            ),
        };
        return Err(Failure::new(Kind::Conflict, sentence).hint(hint));
    };
    match session.screen.is_for_programs() {
        true => session.screen.json(&json!(addresses))?,
        false => session.screen.print(&format!("{address}\n"))?,
    }
    let browser = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(browser);
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => {}
        _ => session.screen.remark("No browser was found to open it"),
    }
    Ok(())
}
