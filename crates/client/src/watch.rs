//! Watches a deployment until it has finished.

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    addresses,
    failure::{Failure, Kind, Outcome},
    follow::{Following, TIMEOUT},
    progress::Progress,
    records::{Application, Deployment, Deployments, LogLine, read},
    screen::{Screen, Tone, printed, visible},
    server::{Server, retry_for},
    session::Session,
    when::{Span, seconds_between},
};

/// The polling intervals: the first one, and the one after [`SOON`].
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(1));
const SOON: Duration = Duration::from_secs(20);
/// The number of newest deployments among which the watched one is searched.
const NEWEST: u32 = 20;

/// The options of verbs that request a deployment and wait for it.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// Do not wait for the deployment to finish
    #[arg(long)]
    pub(crate) detach: bool,
    /// Time to wait for the deployment, such as 10m; the deployment itself continues
    #[arg(long, value_name = "TIME", conflicts_with = "detach")]
    pub(crate) timeout: Option<Span>,
}

/// Shows the progress of a deployment until it has finished, unless `detach` is set. Fails if the
/// deployment does not succeed.
pub(crate) fn watch(
    session: &Session<'_>,
    application: &Application,
    asked: Value,
    waiting: Waiting,
) -> Outcome {
    let deployment: Deployment = read(asked.clone())?;
    let (screen, name, id) = (session.screen, &application.name, &deployment.id);
    if waiting.detach {
        let name = visible(name);
        screen.remark(&format!("hint: `launchway logs {name} --deployment {id} -f` shows the progress"));
        return screen.show(asked, |_: Deployment| format!("Deployment {id} is {}\n", deployment.state()));
    }
    let end = Watch::new(session, application, &deployment).follow(waiting.timeout)?;
    if screen.is_for_programs() {
        let whole = || session.server.get(&format!("/deploy/application/deployments/{id}")).send();
        screen.json(&retry_for(TIMEOUT, whole, |_| {})?)?;
    }
    if end.deployment.state() != "deployed" {
        return Err(end.failure(application));
    }
    if !screen.is_for_programs() {
        let addresses = retry_for(TIMEOUT, || addresses::of(&session.server, application, id), |_| {})?;
        let lines =
            addresses.iter().map(|address| format!("Live at {}\n", screen.tint(address, Tone::Strong)));
        screen.print(&lines.collect::<String>())?;
    }
    Ok(())
}

struct Watch<'a> {
    server: &'a Server,
    screen: &'a Screen,
    application: &'a Application,
    id: &'a str,
    following: Following<'a>,
    progress: Progress<'a>,
    /// The last known state, and its time.
    step: (String, String),
    step_seen: Instant,
    /// The last line of Launchway itself, which contains the reason of the end.
    last_word: String,
}

/// The end of a deployment.
struct End {
    deployment: Deployment,
    /// The last step.
    step: String,
    last_word: String,
}

impl<'a> Watch<'a> {
    fn new(session: &'a Session<'a>, application: &'a Application, deployment: &'a Deployment) -> Self {
        let path = format!("/deploy/application/deployments/{}/logs", deployment.id);
        Self {
            server: &session.server,
            screen: session.screen,
            application,
            id: &deployment.id,
            following: Following::new(&session.server, path),
            progress: Progress::new(session.screen),
            step: ("queued".to_owned(), deployment.created_at.clone()),
            step_seen: Instant::now(),
            last_word: String::new(),
        }
    }

    fn follow(mut self, limit: Option<Span>) -> Outcome<End> {
        let begun = Instant::now();
        loop {
            // In this order: lines written before the end exist when the end is read.
            let deployment = self.look()?;
            let end = deployment.is_final().then(|| deployment.since().to_owned());
            let mark = self.advance(&deployment);
            self.show_lines(mark, end.as_deref())?;
            if end.is_some() {
                let step = self.step.0;
                return Ok(End { deployment, step, last_word: self.last_word });
            }
            if let Some(Span(limit)) = limit
                && begun.elapsed() >= limit
            {
                let sentence = format!("the deployment is still {} after {} s", self.step.0, limit.as_secs());
                let hint = format!(
                    "it continues; `launchway logs {} --deployment {} -f` shows the progress",
                    self.application.name, self.id
                );
                return Err(Failure::new(Kind::Failed, sentence).hint(hint));
            }
            self.progress.draw(&format!("{}, {} s", doing(&self.step.0), self.step_seen.elapsed().as_secs()));
            thread::sleep(if begun.elapsed() < SOON { PAUSES.0 } else { PAUSES.1 });
        }
    }

    /// Returns the deployment without its log.
    fn look(&mut self) -> Outcome<Deployment> {
        let (server, application, id) = (self.server, &self.application.id, self.id);
        let ask = || {
            let request = server.get("/deploy/application/deployments").with("id", application);
            let newest: Deployments = request.with("page_size", NEWEST).receive()?;
            match newest.deployments.into_iter().find(|one| one.id == id) {
                Some(deployment) => Ok(deployment),
                None => server.get(&format!("/deploy/application/deployments/{id}")).receive(),
            }
        };
        let (screen, progress) = (self.screen, &mut self.progress);
        retry_for(TIMEOUT, ask, |failure| show_failure(screen, progress, failure))
    }

    /// Returns the remark about the step that has finished, and its end.
    fn advance(&mut self, deployment: &Deployment) -> Option<(String, String)> {
        let now = (deployment.state().to_owned(), deployment.since().to_owned());
        if now.0 == self.step.0 {
            return None;
        }
        let whole = seconds_between(&deployment.created_at, &now.1);
        let words = match now.0.as_str() {
            "failed" => {
                let cross = self.screen.tint_remark("✗", Tone::Bad);
                format!("{cross} Failed after {whole} while {}", doing(&self.step.0).to_lowercase())
            }
            "cancelled" => format!("{} Cancelled after {whole}", self.screen.tint_remark("✗", Tone::Quiet)),
            // The log has a line about the success, which may be shown before this state is read.
            "deployed" => String::new(),
            // Another attempt begins; the log contains the reason.
            "queued" => String::new(),
            _ => self.step_until(&now.1),
        };
        let moment = now.1.clone();
        // The step in which it ended is more useful than the final state.
        if !deployment.is_final() {
            (self.step, self.step_seen) = (now, Instant::now());
        }
        Some((words, moment))
    }

    /// Returns the remark about a step that has finished at `end`.
    fn step_until(&self, end: &str) -> String {
        let (step, since) = &self.step;
        let done = match step.as_str() {
            "queued" => "Queued for",
            "cloning" => "Fetched in",
            "building" => "Built in",
            _ => "Released in",
        };
        format!("{} {done} {}", self.screen.tint_remark("✓", Tone::Good), seconds_between(since, end))
    }

    /// Shows new lines, with the remark at its position. At the end, lines long after it are not read: a
    /// live application may print for ever.
    fn show_lines(&mut self, mut mark: Option<(String, String)>, end: Option<&str>) -> Outcome {
        loop {
            let (screen, progress) = (self.screen, &mut self.progress);
            let lines =
                self.following.next(|request| request, |failure| show_failure(screen, progress, failure))?;
            for line in &lines {
                if let Some((words, _)) = mark.take_if(|(_, moment)| line.created_at >= *moment) {
                    self.mark(&words);
                }
                self.show_line(line);
            }
            let is_past =
                lines.last().is_some_and(|last| end.is_some_and(|end| last.created_at.as_str() > end));
            if !Following::has_more(&lines) || is_past {
                break;
            }
        }
        if let Some((words, _)) = mark {
            self.mark(&words);
        }
        Ok(())
    }

    fn mark(&mut self, words: &str) {
        if !words.is_empty() {
            self.progress.print(words);
        }
    }

    fn show_line(&mut self, line: &LogLine) {
        let text = printed(&line.log);
        if line.level == "info" && text.starts_with("Deployed in ") {
            // Unless the steps were too quick to be observed.
            if self.step.0 != "queued" {
                let released = self.step_until(&line.created_at);
                self.progress.print(&released);
            }
            let mark = self.screen.tint_remark("✓", Tone::Good);
            return self.progress.print(&format!("{mark} {text}"));
        }
        let shown = match line.level.as_str() {
            "error" => self.screen.tint_remark(&text, Tone::Bad),
            "warn" => self.screen.tint_remark(&text, Tone::Doubtful),
            "info" => text.clone(),
            _ => self.screen.tint_remark(&text, Tone::Quiet),
        };
        self.progress.print(&format!("  {shown}"));
        if matches!(line.level.as_str(), "error" | "info") {
            self.last_word = text;
        }
    }
}

impl End {
    fn failure(&self, application: &Application) -> Failure {
        let (state, name) = (self.deployment.state(), &application.name);
        let why = self.last_word.split_once(": ").filter(|(end, _)| end.eq_ignore_ascii_case(state));
        let sentence = match why {
            Some((_, why)) => format!("the deployment of {name} {}: {why}", was(state)),
            None => format!("the deployment of {name} {}", was(state)),
        };
        let again = format!("`launchway logs {name} --deployment {}` shows its log", self.deployment.id);
        let hint = match (state, self.step.as_str()) {
            ("cancelled", _) => format!("`launchway deployments {name}` lists newer deployments"),
            (_, "cloning") => {
                format!(
                    "check that the server can read the repository; a private one needs the key of `launchway deploy-key`; {again}"
                )
            }
            (_, "building") => {
                format!("the build failed on the server; run it locally to find the error; {again}")
            }
            (_, "deploying") => format!(
                "check that it listens on port {} of all addresses, not only of 127.0.0.1; {again}",
                application.port
            ),
            _ => again,
        };
        Failure::new(Kind::Failed, sentence).hint(hint)
    }
}

fn was(state: &str) -> &'static str {
    if state == "cancelled" { "was cancelled" } else { "failed" }
}

/// Returns the activity of a deployment in a state.
fn doing(state: &str) -> &'static str {
    match state {
        "queued" => "Waiting in the queue",
        "cloning" => "Fetching the source",
        "building" => "Building",
        _ => "Releasing",
    }
}

/// Reports once that the server is unreachable.
fn show_failure(screen: &Screen, progress: &mut Progress<'_>, failure: &Failure) {
    let (mark, why) = (screen.tint_remark("…", Tone::Doubtful), visible(&failure.to_string()));
    progress.print(&format!("{mark} {why}; the deployment continues; waiting for the server"));
}
