//! Collecting what containers print, so that it survives them.

mod freshness;
mod rate;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use launchway_domain::{
    applications::Application,
    clock::Timestamp,
    deployments::{Companion, ContainerId, Deployment, EngineInventory, PrintedLine, ServiceName},
    logs::{Level, LineAssembler, LogReader, LogSink, Masker, NewLine},
    secret::SecretBox,
};
use tokio::sync::Mutex;

pub use self::freshness::LogFreshness;
use self::rate::RateLimiter;
use crate::{applications::Vault, deployments::secrets_of};

/// How many lines of one container are taken at once, so that one that floods does not hold up the
/// others.
const LINES: usize = 5000;

/// Collects the output of containers: in rounds while they run, and once more before they go.
pub struct RuntimeLogs {
    inventory: Arc<dyn EngineInventory>,
    sink: Arc<dyn LogSink>,
    reader: Arc<dyn LogReader>,
    vault: Vault,
    rates: RateLimiter,
    /// How far each container's output has been collected. Held while one is read, so that no line
    /// is taken by two.
    collected: Mutex<HashMap<ContainerId, Option<Timestamp>>>,
}

impl RuntimeLogs {
    /// Takes what `inventory` knows to have been printed to `sink`.
    pub fn new(
        inventory: Arc<dyn EngineInventory>,
        sink: Arc<dyn LogSink>,
        reader: Arc<dyn LogReader>,
        secrets: Arc<dyn SecretBox>,
    ) -> Self {
        let (vault, rates) = (Vault::new(secrets), RateLimiter::new(0));
        Self { inventory, sink, reader, vault, rates, collected: Mutex::default() }
    }

    /// Keeps at most so many bytes of each application per second, measured over ten seconds. 0 is no limit.
    #[must_use]
    pub fn with_rate(self, bytes_per_second: u64) -> Self {
        Self { rates: RateLimiter::new(bytes_per_second), ..self }
    }

    /// Takes what the container of `deployment` and its `companions` have printed since the last
    /// time, before `now`. Returns whether there was anything.
    ///
    /// # Errors
    /// A sentence for the log; then nothing was taken.
    pub(crate) async fn collect(
        &self,
        application: &Application,
        deployment: &Deployment,
        companions: &[Companion],
        now: Timestamp,
    ) -> Result<bool, String> {
        let Some(container) = &deployment.container else { return Ok(false) };
        let mut collected = self.collected.lock().await;
        let mut printed = vec![Printed::by(&container.id, None)];
        printed
            .extend(companions.iter().map(|companion| Printed::by(&companion.id, Some(&companion.service))));
        for one in &mut printed {
            let since = match collected.get(one.container) {
                Some(since) => *since,
                None => self.reader.last_printed(deployment.id).await.map_err(|error| error.to_string())?,
            };
            collected.insert(one.container.clone(), since);
            let lines = self.inventory.printed(one.container, since, LINES).await;
            one.lines = lines.map_err(|error| error.to_string())?;
        }
        if !companions.is_empty() {
            cut_together(&mut printed, now);
        }
        if printed.iter().all(|one| one.lines.is_empty()) {
            return Ok(false);
        }
        // Made when there is something to mask, and not kept: it is large.
        let secrets = self.vault.open(application).map_err(|error| error.to_string())?;
        let masker = secrets_of(&secrets);
        let shown = printed.iter().flat_map(|one| {
            one.lines.iter().filter_map(|line| shown(deployment, one.service, &masker, line))
        });
        let mut lines: Vec<NewLine> = shown.collect();
        lines.sort_by_key(|line| line.at);
        let lines = self.rates.limit(lines, now);
        self.sink.append(lines).await.map_err(|error| error.to_string())?;
        for one in &printed {
            if let Some(last) = one.lines.last() {
                collected.insert(one.container.clone(), Some(last.at));
            }
        }
        Ok(true)
    }

    /// Remembers nothing of containers other than `containers`.
    pub(crate) async fn forget_others(&self, containers: &HashSet<ContainerId>) {
        self.collected.lock().await.retain(|id, _| containers.contains(id));
    }
}

/// What one container printed.
struct Printed<'a> {
    container: &'a ContainerId,
    /// Which service it is, when it stands beside the one that gets the traffic.
    service: Option<&'a ServiceName>,
    lines: Vec<PrintedLine>,
}

impl<'a> Printed<'a> {
    fn by(container: &'a ContainerId, service: Option<&'a ServiceName>) -> Self {
        Self { container, service, lines: Vec::new() }
    }
}

/// Leaves lines of several containers for the next time up to the same moment. The log remembers one
/// moment for all of them, so that what one printed before it must not be missing when another's is
/// there.
fn cut_together(printed: &mut [Printed<'_>], now: Timestamp) {
    let floods = printed.iter().filter(|one| one.lines.len() >= LINES);
    let end = floods.filter_map(|one| one.lines.last()).map(|line| line.at).min();
    for one in printed.iter_mut() {
        one.lines.retain(|line| line.at < now && end.is_none_or(|end| line.at <= end));
    }
}

fn shown(
    deployment: &Deployment,
    service: Option<&ServiceName>,
    masker: &Masker,
    line: &PrintedLine,
) -> Option<NewLine> {
    let mut assembler = LineAssembler::default();
    let mut lines = assembler.push(&line.text, masker);
    lines.extend(assembler.finish(masker));
    let mut text = lines.join(" ");
    if let Some(service) = service.filter(|_| !text.is_empty()) {
        text = format!("{service} | {text}");
    }
    let (application_id, deployment_id) = (deployment.application_id, deployment.id);
    let line = NewLine { application_id, deployment_id, level: Level::Runtime, text, at: line.at };
    (!line.text.is_empty()).then_some(line)
}
