//! Runs an extension and follows it.

use std::{thread, time::Duration};

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Extension, executions::Execution, read, variables};
use crate::{
    failure::{Failure, Kind, Outcome},
    names, records,
    screen::{Screen, Tone, printed, tone_of},
    server::{Request, Server, fresh_key, retry_for},
    session::Session,
};

/// The time for which an unreachable server is retried: longer than a restart or an upgrade takes.
const TIMEOUT: Duration = Duration::from_secs(300);
/// The interval at which a silent run is polled.
const PAUSE: Duration = Duration::from_millis(400);

#[derive(Args, Debug)]
pub struct Run {
    /// Id of the extension, such as postgres
    extension: String,
    /// Value of a variable; can be repeated; missing required values are asked for
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// File in .env format with values, such as secrets, or - for standard input
    #[arg(long, value_name = "FILE")]
    file: Option<String>,
    /// Do not wait for the run to finish
    #[arg(long, short)]
    detach: bool,
}

#[derive(Deserialize)]
struct Lines {
    logs: Vec<Line>,
    next_seq: u64,
}

#[derive(Deserialize)]
struct Line {
    /// The step that printed the line.
    step_id: Option<String>,
    level: String,
    log: String,
}

/// Starts a run, and follows it until it has finished.
pub(crate) fn run(arguments: Run, session: &Session<'_>) -> Outcome {
    let screen = session.screen;
    let mut values = variables::given(&arguments.set, arguments.file.as_deref())?;
    let extension: Extension = records::read(read(&arguments.extension, session)?)?;
    variables::complete(&extension, &mut values, screen)?;
    let path = format!("/extensions/{}/run", names::id(&arguments.extension)?);
    let begun = loop {
        let (key, body) = (fresh_key()?, json!({"variables": values}));
        // Idempotent: however often the request is sent, it runs once.
        match ask(session, |server| server.post(&path).body(body.clone()).once(&key)) {
            Err(failure)
                if failure.is("validation_failed")
                    && screen.is_interactive()
                    && variables::correct(&extension, &failure, &mut values, screen)? => {}
            outcome => break outcome?,
        }
    };
    let id = begun["id"].as_str().unwrap_or_default().to_owned();
    if arguments.detach {
        screen.remark(&format!("hint: `launchway extensions follow {id}` shows the progress"));
        return screen.show(begun, |execution: Execution| format!("{}\n", execution.id));
    }
    screen.remark(&format!("Started run {id}; it continues if you interrupt this command"));
    follow(&id, session)
}

/// Shows the output of a run, from its beginning to its end. Line numbers are consecutive, so that none is
/// lost or repeated, across reconnects.
pub(super) fn follow(id: &str, session: &Session<'_>) -> Outcome {
    let screen = session.screen;
    let path = format!("/extensions/execution/{}", names::id(id)?);
    let logs = format!("{path}/logs");
    let mut seen = 0;
    loop {
        // Requested before its lines, so that a finished run has no further line.
        let whole = ask(session, |server| server.get(&path))?;
        let execution: Execution = records::read(whole.clone())?;
        loop {
            let lines = ask(session, |server| server.get(&logs).with("after_seq", seen))?;
            let lines: Lines = records::read(lines)?;
            if lines.logs.is_empty() {
                break;
            }
            for line in &lines.logs {
                screen.remark(&shown(line, screen));
            }
            seen = lines.next_seq;
        }
        if execution.is_final() {
            return end(&execution, &whole, screen);
        }
        thread::sleep(PAUSE);
    }
}

fn ask<'a>(session: &'a Session<'_>, request: impl Fn(&'a Server) -> Request<'a>) -> Outcome<Value> {
    let lost = |failure: &Failure| session.screen.warn(&format!("{failure}; waiting for the server"));
    retry_for(TIMEOUT, || request(&session.server).send(), lost)
}

/// Formats a line. Output of steps is dimmer than messages about them.
fn shown(line: &Line, screen: &Screen) -> String {
    let text = printed(&line.log);
    match line.level.as_str() {
        "runtime" => screen.tint_remark(&format!("  {text}"), Tone::Quiet),
        "warn" => screen.tint_remark(&text, Tone::Doubtful),
        "error" => screen.tint_remark(&text, Tone::Bad),
        _ if line.step_id.is_some() => screen.tint_remark(&text, Tone::Strong),
        _ => text,
    }
}

fn end(execution: &Execution, whole: &Value, screen: &Screen) -> Outcome {
    if screen.is_for_programs() {
        screen.json(whole)?;
    }
    if execution.status == "completed" {
        screen.remark(&screen.tint_remark("completed", tone_of("completed")));
        return Ok(());
    }
    let reason = match execution.error_message.as_str() {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    let failure = Failure::new(Kind::Failed, format!("the run {}{reason}", said(&execution.status)));
    Err(match execution.exit_code {
        0 => failure.hint("its steps are reverted; the lines above show where it stopped"),
        code => failure.hint(format!("a command exited with {code}; the steps of the run are reverted")),
    })
}

fn said(status: &str) -> &str {
    if status == "cancelled" { "was cancelled" } else { status }
}
