//! Lists the objects of this installation on the engine.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, SubsecRound as _, TimeDelta};
use launchway_domain::{
    clock::{Clock as _, Timestamp},
    deployments::{
        ContainerId, DiscoveredObject, DiscoveredResource, EngineInventory, ImageName, ImageSize, Output,
        Owner, PrintedLine, StepError,
    },
    replicas::EngineIdentity,
};
use launchway_system::clock::SystemClock;
use serde_json::Value;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};

use super::{
    DockerEngine,
    containers::{NAME_PREFIX, condition, is_kept},
    errors::EngineError,
    groups,
    labels::{self, Label},
    lines::{Lines, StampedLine},
};

/// The time that the engine may take to write a line after it was timestamped. Two outputs are written by
/// two threads, so that a line may appear before an older one.
const SETTLING: TimeDelta = TimeDelta::milliseconds(100);
/// The timeout of waiting for the rest of a very long line.
const LONGEST_LINE: TimeDelta = TimeDelta::seconds(10);
/// The delay before an unavailable engine is asked again.
const PAUSE: Duration = Duration::from_secs(1);
/// The time in which events are collected: one container replaces another, and a reaction to each event
/// alone would send the engine many requests while it is busy.
const TOGETHER: Duration = Duration::from_millis(300);

#[async_trait]
impl EngineIdentity for DockerEngine {
    async fn engine_id(&self) -> Option<String> {
        let id = match self.docker.socket().await {
            Some(socket) => socket.engine_id().await?,
            None => self.docker.engine_id().await.ok()?,
        };
        Some(id.trim().to_owned()).filter(|id| !id.is_empty())
    }
}

#[async_trait]
impl EngineInventory for DockerEngine {
    async fn everything(&self) -> Result<Vec<DiscoveredResource>, StepError> {
        let images = async {
            let ids = self.docker.images(&[Label::of_instance(self.options.instance)]).await?;
            self.docker.inspect_images(&ids).await
        };
        let images = async { images.await.map_err(EngineError::or_fault) };
        let networks = async {
            let ours = [Label::of_instance(self.options.instance), Label::of_any_owner()];
            let ids = self.docker.networks(&ours).await.map_err(EngineError::or_fault)?;
            self.docker.inspect_networks(&ids).await.map_err(EngineError::or_fault)
        };
        let (mut found, images, networks) = tokio::try_join!(self.containers(), images, networks)?;
        found.extend(images.iter().flat_map(found_images));
        found.extend(networks.iter().filter_map(found_network));
        Ok(found)
    }

    async fn containers(&self) -> Result<Vec<DiscoveredResource>, StepError> {
        if let Some(socket) = self.docker.socket().await {
            return self.list_own(socket).await;
        }
        let ours = [Label::of_instance(self.options.instance)];
        let ids = self.docker.containers(&ours).await.map_err(EngineError::or_fault)?;
        let containers = self.docker.inspect(&ids).await.map_err(EngineError::or_fault)?;
        Ok(containers.iter().filter_map(found_container).collect())
    }

    async fn images_of(&self, owner: &Owner) -> Result<Vec<ImageSize>, StepError> {
        // Most deployments have one image, which is asked for by its name.
        let name = ImageName::of(owner.application, owner.deployment);
        let by_socket =
            async { image_size(&self.docker.socket().await?.image(name.as_str()).await?, "Id", "Size") };
        if let Some(image) = by_socket.await {
            return Ok(vec![image]);
        }
        let ids = self.docker.images_of_deployment(owner).await.map_err(EngineError::or_fault)?;
        let records = self.docker.inspect_images(&ids).await.map_err(EngineError::or_fault)?;
        let sizes = records.iter().map(|record| image_size(record, "id", "size"));
        let sizes = sizes.collect::<Option<Vec<_>>>();
        sizes
            .ok_or_else(|| StepError::Retryable("the engine does not report the size of an image".to_owned()))
    }

    async fn remove(&self, found: &DiscoveredResource) -> Result<(), StepError> {
        let removed = match &found.what {
            DiscoveredObject::Container { id, .. } => self.docker.remove(std::slice::from_ref(id)).await,
            DiscoveredObject::Image { name, .. } => self.docker.remove_image(name).await,
            DiscoveredObject::Network(name) => self.docker.remove_network_named(name).await,
        };
        match removed {
            Err(failure) if !failure.is_gone() => Err(failure.or_fault()),
            _ => Ok(()),
        }
    }

    /// Lines are ordered by microseconds, and several may share one. So all that share one are returned by
    /// the same call, and a microsecond is returned only when nothing older can appear any more: a caller
    /// that asks for lines after the last one that it got misses nothing and gets nothing twice. (Should
    /// more than `limit` lines share a microsecond, the rest of them is lost.)
    ///
    /// A container that prints faster than it is read is read from its oldest line on; lines that the
    /// limits of its log have removed by then are lost.
    async fn printed(
        &self,
        container: &ContainerId,
        since: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<PrintedLine>, StepError> {
        settled_lines(limit, || self.lines_after(container, since, limit)).await
    }

    async fn tail_logs(&self, container: &ContainerId, lines: usize) -> Result<Vec<PrintedLine>, StepError> {
        let collected = Arc::new(Lines::oldest(lines));
        let read = self.docker.last_logs(container, lines, collected.clone()).await;
        let mut last = collected_lines(read, &collected)?;
        last.drain(..last.len().saturating_sub(lines));
        Ok(last.into_iter().map(PrintedLine::from).collect())
    }

    /// Events since the last call count too.
    async fn wait_for_events(&self, max_wait: Duration) -> bool {
        let deadline = Instant::now() + max_wait;
        if let Some(socket) = self.docker.socket().await {
            let since = *self.told.lock().unwrap_or_else(PoisonError::into_inner);
            self.news.listen(socket, self.options.instance.to_string(), since);
            return self.news.wait(deadline, TOGETHER).await;
        }
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            if self.has_event_within(left).await {
                return true;
            }
            // The engine is unavailable. It may be back at the next request.
            sleep(PAUSE.min(deadline.saturating_duration_since(Instant::now()))).await;
        }
    }
}

impl DockerEngine {
    async fn lines_after(
        &self,
        container: &ContainerId,
        since: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<StampedLine>, StepError> {
        let collected = Arc::new(Lines::oldest(limit));
        let read = tokio::select! {
            read = self.docker.logs_since(container, since, collected.clone()) => read,
            // The rest is for the next call, so that other callers need not wait for the end of a flood.
            () = collected.full() => Ok(()),
        };
        let mut lines = collected_lines(read, &collected)?;
        lines.retain(|line| since.is_none_or(|since| line.microsecond() > since));
        Ok(lines)
    }

    /// Returns whether an event occurred before the timeout.
    async fn has_event_within(&self, max_wait: Duration) -> bool {
        let ours = [Label::of_instance(self.options.instance)];
        let news = Arc::new(EventRecorder::default());
        let since = *self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let listen = self.docker.events(&ours, since, max_wait, news.clone());
        let event = async {
            let _ended = tokio::select! {
                ended = listen => Some(ended),
                () = async {
                    news.arrived.notified().await;
                    sleep(TOGETHER).await;
                } => None,
            };
        };
        let _in_time = timeout(max_wait, event).await;
        let latest = *news.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(latest) = latest {
            *self.told.lock().unwrap_or_else(PoisonError::into_inner) = latest + 1;
        }
        latest.is_some()
    }
}

/// Reads lines; once more after a moment if an older line could still appear before the last one. Returns those that are
/// [settled].
pub(super) async fn settled_lines<F>(
    limit: usize,
    read: impl Fn() -> F,
) -> Result<Vec<PrintedLine>, StepError>
where
    F: Future<Output = Result<Vec<StampedLine>, StepError>>,
{
    let now = SystemClock.now();
    let mut lines = read().await?;
    if lines.last().is_some_and(|last| last.at > now - SETTLING) {
        sleep(SETTLING.to_std().unwrap_or_default()).await;
        lines = read().await?;
    }
    Ok(settled(lines, now, limit))
}

/// Returns the first `limit` lines, as far as nothing older than `now` can appear among them any more.
fn settled(mut lines: Vec<StampedLine>, now: Timestamp, limit: usize) -> Vec<PrintedLine> {
    let begun = lines.iter().find(|line| line.is_begun && line.at > now - LONGEST_LINE);
    let end = begun.map_or(now, |begun| begun.microsecond().min(now));
    lines.retain(|line| line.microsecond() < end);
    cut(&mut lines, limit);
    lines.into_iter().map(PrintedLine::from).collect()
}

/// Records the output of `docker events`.
#[derive(Debug, Default)]
struct EventRecorder {
    arrived: Notify,
    /// The time of the latest event, in nanoseconds since 1970.
    latest: std::sync::Mutex<Option<i64>>,
}

#[async_trait]
impl Output for EventRecorder {
    async fn write(&self, piece: &[u8]) {
        for line in piece.split(|byte| *byte == b'\n') {
            let Ok(event) = serde_json::from_slice::<Value>(line) else { continue };
            let name = event.get("Actor").and_then(|actor| actor.get("Attributes")?.get("name")?.as_str());
            if name.is_some_and(|name| !name.starts_with(NAME_PREFIX)) {
                continue;
            }
            let Some(at) = event.get("timeNano").and_then(Value::as_i64) else { continue };
            let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
            *latest = (*latest).max(Some(at));
            self.arrived.notify_one();
        }
    }
}

/// Returns the collected lines; none of a container that is gone.
fn collected_lines(read: Result<(), EngineError>, lines: &Lines) -> Result<Vec<StampedLine>, StepError> {
    match read {
        Ok(()) => Ok(lines.take()),
        Err(failure) if failure.is_gone() => Ok(Vec::new()),
        Err(failure) => Err(failure.or_fault()),
    }
}

/// Keeps at most `limit` lines, and of each microsecond all lines or none.
fn cut(lines: &mut Vec<StampedLine>, limit: usize) {
    let Some(next) = lines.get(limit).map(StampedLine::microsecond) else { return };
    lines.truncate(limit);
    let whole = lines.partition_point(|line| line.microsecond() < next);
    if whole > 0 {
        lines.truncate(whole);
    }
}

fn found_container(record: &Value) -> Option<DiscoveredResource> {
    let found = || {
        let created = record.get("created")?.as_str()?;
        let (labels, condition) = (record.get("labels")?, condition(record));
        Some(DiscoveredResource {
            owner: labels::owner(labels)?,
            what: DiscoveredObject::Container {
                id: record.get("id")?.as_str()?.parse().ok()?,
                condition,
                created_at: DateTime::parse_from_rfc3339(created).ok()?.to_utc().trunc_subsecs(6),
                port: labels::port(labels),
                service: labels::service(labels),
                stays_up: groups::stays_up(labels, condition, is_kept(record)),
            },
        })
    };
    let found = found();
    // Those of extensions belong to no deployment, and are managed elsewhere.
    if found.is_none() && !record.get("labels").is_some_and(labels::is_of_extension) {
        unreadable(record, "container");
    }
    found
}

/// Returns an image once for each of its names. It has the labels of the deployment that built it, and may
/// have the names of others that use it too.
fn found_images(record: &Value) -> Vec<DiscoveredResource> {
    let names = record.get("names").and_then(Value::as_array).into_iter().flatten();
    let names: Vec<ImageName> = names.filter_map(|name| name.as_str()?.parse().ok()).collect();
    if names.is_empty() {
        // An intermediate image of a build, between two of its labels.
        return Vec::new();
    }
    let Some(owner) = record.get("labels").and_then(labels::owner_of_image) else {
        unreadable(record, "image");
        return Vec::new();
    };
    let Some(size) = image_size(record, "id", "size") else {
        let id = record.get("id").and_then(Value::as_str).unwrap_or_default();
        tracing::warn!(id, "engine image has no size");
        return Vec::new();
    };
    let found = names.into_iter().filter_map(|name| {
        let (application, deployment) = name.whose()?;
        let what = DiscoveredObject::Image { name, size: size.clone() };
        Some(DiscoveredResource { owner: Owner { application, deployment, ..owner }, what })
    });
    found.collect()
}

/// Reads the id and the size of an image from the fields of a record that have these names.
fn image_size(record: &Value, id: &str, size: &str) -> Option<ImageSize> {
    Some(ImageSize { id: record.get(id)?.as_str()?.parse().ok()?, bytes: record.get(size)?.as_u64()? })
}

/// Returns the network of a composition; that of an organization is never an orphan.
fn found_network(record: &Value) -> Option<DiscoveredResource> {
    let owner = labels::owner_of_image(record.get("labels")?)?;
    Some(DiscoveredResource {
        owner,
        what: DiscoveredObject::Network(record.get("name")?.as_str()?.to_owned()),
    })
}

/// Objects with foreign labels that resemble ours are left alone.
fn unreadable(record: &Value, kind: &str) {
    let id = record.get("id").and_then(Value::as_str).unwrap_or_default();
    tracing::warn!(id, kind, "engine object has invalid labels");
}
