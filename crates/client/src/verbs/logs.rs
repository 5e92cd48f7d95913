//! The logs of an application, and of Launchway about it.

use std::{
    thread,
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::{
    cli::value_name,
    failure::{Failure, Kind, Outcome},
    follow::Following,
    names,
    records::LogLine,
    screen::{Screen, Tone, printed, visible},
    server::Request,
    session::Session,
    when::{Since, short},
};

/// The default number of lines.
const USUAL: u32 = 100;
/// The polling intervals: the usual one, and the one when no line came for [`LONG`].
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(2));
const LONG: Duration = Duration::from_secs(30);

#[derive(Args, Debug)]
pub struct Logs {
    /// Application, by name, name@environment or id; by default that of launchway.toml
    app: Option<String>,
    /// Follow the log until interrupted
    #[arg(long, short)]
    follow: bool,
    /// Show only lines since this time, such as 10m, 2h, 2026-01-31 or 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<Since>,
    /// Show only lines with this text, ignoring case
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Show only lines of this level
    #[arg(long, value_enum)]
    level: Option<Level>,
    /// Number of newest lines to show; by default 100, or all with --since
    #[arg(long, short = 'n', value_name = "COUNT")]
    lines: Option<u32>,
    /// Show only lines of this deployment
    #[arg(long, value_name = "ID")]
    deployment: Option<String>,
}

/// The source of a line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Level {
    /// Messages of Launchway, and output of run commands
    Info,
    /// Warnings of Launchway
    Warn,
    /// Errors of Launchway
    Error,
    /// Output of builds
    Build,
    /// Output of the application
    Runtime,
}

/// Shows lines, oldest first.
pub(crate) fn show(logs: &Logs, session: &Session<'_>) -> Outcome {
    let (server, screen) = (&session.server, session.screen);
    let application = names::meant(server, logs.app.as_deref())?;
    let since = logs.since.as_ref().map(Since::moment);
    let narrow = |request| narrowed(request, logs, since.as_deref());
    let mut following = Following::new(server, format!("/deploy/application/logs/{}", application.id));
    let count = logs.lines.unwrap_or(if since.is_some() { u32::MAX } else { USUAL });
    let lines = match count {
        0 => {
            following.skip(narrow)?;
            Vec::new()
        }
        count => following.newest(count, narrow)?,
    };
    if !logs.follow {
        return print_all(screen, &lines);
    }
    print(screen, &lines)?;
    let mut heard = Instant::now();
    loop {
        let lines = following.next(narrow, |failure| {
            let why = visible(&failure.to_string());
            screen.remark(&format!("{why}; waiting for the server"));
        })?;
        print(screen, &lines)?;
        if !lines.is_empty() {
            heard = Instant::now();
        }
        if !Following::has_more(&lines) {
            thread::sleep(if heard.elapsed() < LONG { PAUSES.0 } else { PAUSES.1 });
        }
    }
}

fn narrowed<'a>(request: Request<'a>, logs: &Logs, since: Option<&str>) -> Request<'a> {
    request
        .with_some("start_time", since)
        .with_some("search_term", logs.search.as_deref())
        .with_some("level", logs.level.as_ref().map(value_name).as_deref())
        .with_some("deployment_id", logs.deployment.as_deref())
}

/// Prints all lines: as one JSON list for programs.
fn print_all(screen: &Screen, lines: &[LogLine]) -> Outcome {
    if screen.is_for_programs() {
        return screen.json(&json!(lines));
    }
    if lines.is_empty() {
        screen.remark("No log lines");
    }
    print(screen, lines)
}

/// Prints some lines: as JSON lines for programs.
fn print(screen: &Screen, lines: &[LogLine]) -> Outcome {
    let mut text = String::new();
    for line in lines {
        if screen.is_for_programs() {
            let record: Value = serde_json::to_value(line)
                .map_err(|error| Failure::new(Kind::Failed, format!("a line cannot be written: {error}")))?;
            text.push_str(&format!("{record}\n"));
        } else {
            text.push_str(&for_people(screen, line));
        }
    }
    if text.is_empty() { Ok(()) } else { screen.print(&text) }
}

fn for_people(screen: &Screen, line: &LogLine) -> String {
    let level = format!("{:7}", line.level);
    let (level, text) = (level.as_str(), printed(&line.log));
    let (level, text) = match line.level.as_str() {
        "error" => (screen.tint(level, Tone::Bad), screen.tint(&text, Tone::Bad)),
        "warn" => (screen.tint(level, Tone::Doubtful), text),
        "build" => (screen.tint(level, Tone::Quiet), screen.tint(&text, Tone::Quiet)),
        _ => (screen.tint(level, Tone::Quiet), text),
    };
    let moment = screen.tint(&short(&line.created_at), Tone::Quiet);
    format!("{moment} {level} {text}\n")
}
