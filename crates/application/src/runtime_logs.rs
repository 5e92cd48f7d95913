//! Collects the output of containers, so that it outlives them.

mod freshness;
mod rate;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use launchway_domain::{
    applications::Application,
    clock::Timestamp,
    deployments::{ContainerId, Deployment, EngineInventory, PrintedLine, ServiceName, Sidecar},
    ids::DeploymentId,
    logs::{Level, LineAssembler, LogReader, LogSink, Masker, NewLine},
    secret::SecretBox,
    store::StoreError,
};
use tokio::sync::Mutex;

pub use self::freshness::LogFreshness;
use self::rate::RateLimiter;
use crate::{applications::Vault, deployments::secrets_of};

/// The number of lines of one container that are collected at once, so that a container that floods the log
/// does not delay the others.
const LINES: usize = 5000;
/// The number of times that a collection is repeated when another server collects at the same time.
const ATTEMPTS: usize = 3;

/// Collects the output of containers: periodically while they run, and once more before they are removed.
pub struct RuntimeLogs {
    inventory: Arc<dyn EngineInventory>,
    sink: Arc<dyn LogSink>,
    reader: Arc<dyn LogReader>,
    vault: Vault,
    rates: RateLimiter,
    /// Locked during a read, so that no line is collected twice.
    collected: Mutex<Collected>,
}

/// The state of the collection.
#[derive(Default)]
struct Collected {
    /// The time up to which each container's output was read.
    read: HashMap<ContainerId, Option<Timestamp>>,
    /// The time of the newest stored line of each deployment, which differs if lines were dropped.
    stored: HashMap<DeploymentId, Option<Timestamp>>,
}

impl RuntimeLogs {
    /// Returns a collector from `inventory` to `sink`.
    pub fn new(
        inventory: Arc<dyn EngineInventory>,
        sink: Arc<dyn LogSink>,
        reader: Arc<dyn LogReader>,
        secrets: Arc<dyn SecretBox>,
    ) -> Self {
        let (vault, rates) = (Vault::new(secrets), RateLimiter::new(0));
        Self { inventory, sink, reader, vault, rates, collected: Mutex::default() }
    }

    /// Limits the stored bytes of each application per second, measured over ten seconds. 0 is no limit.
    #[must_use]
    pub fn with_rate(self, bytes_per_second: u64) -> Self {
        Self { rates: RateLimiter::new(bytes_per_second), ..self }
    }

    /// Collects the new output of `sources`, which run `deployment`: only the output before `now`, if there are
    /// several. Returns whether there was any.
    ///
    /// # Errors
    /// A sentence for the log; then nothing was collected.
    pub(crate) async fn collect(
        &self,
        application: &Application,
        deployment: &Deployment,
        sources: &[LogSource<'_>],
        now: Timestamp,
    ) -> Result<bool, String> {
        self.collect_before(application, deployment, sources, (now, now)).await
    }

    /// Collects the last output of `sources`, which ran `deployment` and are stopped.
    ///
    /// # Errors
    /// A sentence for the log; then nothing was collected.
    pub(crate) async fn collect_last(
        &self,
        application: &Application,
        deployment: &Deployment,
        sources: &[LogSource<'_>],
        now: Timestamp,
    ) -> Result<bool, String> {
        // Their lines have the time of the engine, whose clock may be ahead.
        self.collect_before(application, deployment, sources, (now, Timestamp::MAX_UTC)).await
    }

    async fn collect_before(
        &self,
        application: &Application,
        deployment: &Deployment,
        sources: &[LogSource<'_>],
        times: (Timestamp, Timestamp),
    ) -> Result<bool, String> {
        let mut collected = self.collected.lock().await;
        for _ in 0..ATTEMPTS {
            match self.collect_once(&mut collected, application, deployment, sources, times).await? {
                Some(has_output) => return Ok(has_output),
                // Another server has collected meanwhile.
                None => collected.forget(deployment, sources),
            }
        }
        Ok(true)
    }

    /// Collects new output; returns `None` if another server has collected meanwhile.
    async fn collect_once(
        &self,
        collected: &mut Collected,
        application: &Application,
        deployment: &Deployment,
        sources: &[LogSource<'_>],
        (now, end): (Timestamp, Timestamp),
    ) -> Result<Option<bool>, String> {
        let mut printed: Vec<Printed<'_>> = sources.iter().copied().map(Printed::by).collect();
        // Read once, before the output: lines that another server stores meanwhile are noticed when ours are.
        let (after, is_known) = match collected.stored.get(&deployment.id) {
            Some(after) => (*after, true),
            None => (self.last_printed(deployment.id).await?, false),
        };
        for one in &mut printed {
            let since = match collected.read.get(one.source.container) {
                Some(since) if is_known => *since,
                // A copy that was added: the others have printed since it started.
                None if is_known && one.source.is_copy() => None,
                _ => after,
            };
            collected.read.insert(one.source.container.clone(), since);
            let lines = self.inventory.printed(one.source.container, since, LINES).await;
            one.lines = lines.map_err(|error| error.to_string())?;
        }
        if printed.len() > 1 {
            cut_together(&mut printed, end);
        }
        if printed.iter().all(|one| one.lines.is_empty()) {
            return Ok(Some(false));
        }
        // Created only when there are lines to mask, and not kept, because it is large.
        let secrets = self.vault.open(application).map_err(|error| error.to_string())?;
        let masker = secrets_of(&secrets);
        let shown = printed.iter().flat_map(|one| {
            one.lines.iter().filter_map(|line| shown(deployment, one.source.tag, &masker, line))
        });
        let mut lines: Vec<NewLine> = shown.collect();
        lines.sort_by_key(|line| line.at);
        let lines = self.rates.limit(lines, now);
        let newest = lines.iter().filter(|line| line.level == Level::Runtime).map(|line| line.at).max();
        match self.sink.append_printed(deployment.id, after, lines).await {
            Ok(()) => {}
            Err(StoreError::Stale) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        }
        collected.stored.insert(deployment.id, after.max(newest));
        for one in &printed {
            if let Some(last) = one.lines.last() {
                collected.read.insert(one.source.container.clone(), Some(last.at));
            }
        }
        Ok(Some(true))
    }

    async fn last_printed(&self, deployment: DeploymentId) -> Result<Option<Timestamp>, String> {
        self.reader.last_printed(deployment).await.map_err(|error| error.to_string())
    }

    /// Drops the state of all containers but `containers`, which belong to `deployments`.
    pub(crate) async fn forget_others(
        &self,
        containers: &HashSet<ContainerId>,
        deployments: &HashSet<DeploymentId>,
    ) {
        let mut collected = self.collected.lock().await;
        collected.read.retain(|id, _| containers.contains(id));
        collected.stored.retain(|id, _| deployments.contains(id));
    }
}

impl Collected {
    /// Drops the state of a deployment, so that it is read again.
    fn forget(&mut self, deployment: &Deployment, sources: &[LogSource<'_>]) {
        self.stored.remove(&deployment.id);
        for source in sources {
            self.read.remove(source.container);
        }
    }
}

/// A container whose output is collected.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogSource<'a> {
    container: &'a ContainerId,
    tag: Tag<'a>,
}

/// The beginning of the lines of a container.
#[derive(Debug, Clone, Copy)]
enum Tag<'a> {
    /// None: it is the only one of its version, or the one that gets the traffic.
    None,
    /// The service of a sidecar.
    Service(&'a ServiceName),
    /// The number of a copy among several.
    Copy(u16),
}

impl<'a> LogSource<'a> {
    /// Returns every container of a version: its copies, and the `sidecars` of a composition.
    pub(crate) fn all(deployment: &'a Deployment, sidecars: &'a [Sidecar]) -> Vec<Self> {
        let has_several = !deployment.further_copies.is_empty();
        let copies = deployment.numbered_copies();
        let copies = copies.map(|(number, copy)| Self::of_copy(&copy.id, has_several.then_some(number)));
        let sidecars = sidecars.iter();
        let sidecars =
            sidecars.map(|sidecar| Self { container: &sidecar.id, tag: Tag::Service(&sidecar.service) });
        match deployment.container {
            Some(_) => copies.chain(sidecars).collect(),
            None => Vec::new(),
        }
    }

    /// Returns one container, with its number if it is a copy among several.
    pub(crate) fn of_copy(container: &'a ContainerId, copy: Option<u16>) -> Self {
        Self { container, tag: copy.map_or(Tag::None, Tag::Copy) }
    }

    fn is_copy(&self) -> bool {
        matches!(self.tag, Tag::Copy(_))
    }
}

/// The output of one container.
struct Printed<'a> {
    source: LogSource<'a>,
    lines: Vec<PrintedLine>,
}

impl<'a> Printed<'a> {
    fn by(source: LogSource<'a>) -> Self {
        Self { source, lines: Vec::new() }
    }
}

/// Cuts the lines of several containers at the same time, and leaves the rest for the next collection. The
/// log stores one time for all of them, so that no earlier line of one may be missing when a later one of
/// another is stored.
fn cut_together(printed: &mut [Printed<'_>], end: Timestamp) {
    let floods = printed.iter().filter(|one| one.lines.len() >= LINES);
    let last = floods.filter_map(|one| one.lines.last()).map(|line| line.at).min();
    for one in printed.iter_mut() {
        one.lines.retain(|line| line.at < end && last.is_none_or(|last| line.at <= last));
    }
}

fn shown(deployment: &Deployment, tag: Tag<'_>, masker: &Masker, line: &PrintedLine) -> Option<NewLine> {
    let mut assembler = LineAssembler::default();
    let mut lines = assembler.push(&line.text, masker);
    lines.extend(assembler.finish(masker));
    let mut text = lines.join(" ");
    match tag {
        _ if text.is_empty() => {}
        Tag::None => {}
        Tag::Service(service) => text = format!("{service} | {text}"),
        Tag::Copy(number) => text = format!("copy {number} | {text}"),
    }
    let (application_id, deployment_id) = (deployment.application_id, deployment.id);
    let line = NewLine { application_id, deployment_id, level: Level::Runtime, text, at: line.at };
    (!line.text.is_empty()).then_some(line)
}
