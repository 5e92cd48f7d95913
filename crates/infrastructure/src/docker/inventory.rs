//! Looks at what this installation has on the engine.

use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use chrono::{DateTime, SubsecRound as _, TimeDelta};
use launchway_domain::{
    clock::{Clock as _, Timestamp},
    deployments::{
        ContainerId, EngineInventory, Found, FoundObject, ImageName, Output, Owner, PrintedLine, StepError,
    },
};
use serde_json::Value;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};

use super::{
    DockerEngine,
    complaints::Failure,
    containers::{NAME_PREFIX, condition, is_kept},
    groups,
    labels::{self, Label},
    lines::{Lines, StampedLine},
};
use crate::clock::SystemClock;

/// How long the engine may take to write down a line that it has given a time. Two outputs are
/// written by two threads, so that a line may be there before an older one.
const SETTLING: TimeDelta = TimeDelta::milliseconds(100);
/// How long the rest of a very long line is waited for.
const LONGEST_LINE: TimeDelta = TimeDelta::seconds(10);
/// How long an engine that is not there is left alone.
const PAUSE: Duration = Duration::from_secs(1);
/// How long more news is waited for: one container takes the place of another, and who is told of
/// each by itself asks the engine a lot while it has a lot to do.
const TOGETHER: Duration = Duration::from_millis(300);

#[async_trait]
impl EngineInventory for DockerEngine {
    async fn everything(&self) -> Result<Vec<Found>, StepError> {
        let images = async {
            let ids = self.docker.images(&[Label::of_instance(self.options.instance)]).await?;
            self.docker.inspect_images(&ids).await
        };
        let images = async { images.await.map_err(Failure::or_fault) };
        let networks = async {
            let ours = [Label::of_instance(self.options.instance), Label::of_any_owner()];
            let ids = self.docker.networks(&ours).await.map_err(Failure::or_fault)?;
            self.docker.inspect_networks(&ids).await.map_err(Failure::or_fault)
        };
        let (mut found, images, networks) = tokio::try_join!(self.containers(), images, networks)?;
        found.extend(images.iter().flat_map(found_images));
        found.extend(networks.iter().filter_map(found_network));
        Ok(found)
    }

    async fn containers(&self) -> Result<Vec<Found>, StepError> {
        if let Some(socket) = self.docker.socket().await {
            return self.list_own(socket).await;
        }
        let ours = [Label::of_instance(self.options.instance)];
        let ids = self.docker.containers(&ours).await.map_err(Failure::or_fault)?;
        let containers = self.docker.inspect(&ids).await.map_err(Failure::or_fault)?;
        Ok(containers.iter().filter_map(found_container).collect())
    }

    async fn remove(&self, found: &Found) -> Result<(), StepError> {
        let removed = match &found.what {
            FoundObject::Container { id, .. } => self.docker.remove(std::slice::from_ref(id)).await,
            FoundObject::Image(name) => self.docker.remove_image(name).await,
            FoundObject::Network(name) => self.docker.remove_network_named(name).await,
        };
        match removed {
            Err(failure) if !failure.is_gone() => Err(failure.or_fault()),
            _ => Ok(()),
        }
    }

    /// Lines are counted in microseconds, and several may share one. So all that share one are told
    /// in the same call, and a moment is told only when nothing older can appear any more: whoever
    /// asks for what came after the last line that they got misses nothing and gets nothing twice.
    /// (Should more than `limit` lines share a microsecond, the rest of them is lost.)
    ///
    /// A container that prints faster than it is read is read from its oldest line on; what the
    /// limits of its log have cut off by then is lost.
    async fn printed(
        &self,
        container: &ContainerId,
        since: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<PrintedLine>, StepError> {
        let now = SystemClock.now();
        let mut lines = self.lines_after(container, since, limit).await?;
        if lines.last().is_some_and(|last| last.at > now - SETTLING) {
            sleep(SETTLING.to_std().unwrap_or_default()).await;
            lines = self.lines_after(container, since, limit).await?;
        }
        let begun = lines.iter().find(|line| line.is_begun && line.at > now - LONGEST_LINE);
        let end = begun.map_or(now, |begun| begun.microsecond().min(now));
        lines.retain(|line| line.microsecond() < end);
        cut(&mut lines, limit);
        Ok(lines.into_iter().map(PrintedLine::from).collect())
    }

    async fn last_words(&self, container: &ContainerId, lines: usize) -> Result<Vec<PrintedLine>, StepError> {
        let collected = Arc::new(Lines::oldest(lines));
        let read = self.docker.last_logs(container, lines, collected.clone()).await;
        let mut last = collected_lines(read, &collected)?;
        last.drain(..last.len().saturating_sub(lines));
        Ok(last.into_iter().map(PrintedLine::from).collect())
    }

    /// What happened since the last call is told too.
    async fn wait_for_news(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
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
            if self.is_news_within(left).await {
                return true;
            }
            // The engine is not there. It may be when it is asked again.
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
            // The rest is for the next call, so that nobody else has to wait for the end of a flood.
            () = collected.full() => Ok(()),
        };
        let mut lines = collected_lines(read, &collected)?;
        lines.retain(|line| since.is_none_or(|since| line.microsecond() > since));
        Ok(lines)
    }

    /// Whether something happened before the time was over.
    async fn is_news_within(&self, patience: Duration) -> bool {
        let ours = [Label::of_instance(self.options.instance)];
        let news = Arc::new(News::default());
        let since = *self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let listen = self.docker.events(&ours, since, patience, news.clone());
        let event = async {
            let _ended = tokio::select! {
                ended = listen => Some(ended),
                () = async {
                    news.arrived.notified().await;
                    sleep(TOGETHER).await;
                } => None,
            };
        };
        let _in_time = timeout(patience, event).await;
        let latest = *news.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(latest) = latest {
            *self.told.lock().unwrap_or_else(PoisonError::into_inner) = latest + 1;
        }
        latest.is_some()
    }
}

/// Takes note of what `docker events` tells.
#[derive(Debug, Default)]
struct News {
    arrived: Notify,
    /// The moment of the latest event, in nanoseconds since 1970.
    latest: std::sync::Mutex<Option<i64>>,
}

#[async_trait]
impl Output for News {
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

/// What was collected; nothing of a container that is gone.
fn collected_lines(read: Result<(), Failure>, lines: &Lines) -> Result<Vec<StampedLine>, StepError> {
    match read {
        Ok(()) => Ok(lines.take()),
        Err(failure) if failure.is_gone() => Ok(Vec::new()),
        Err(failure) => Err(failure.or_fault()),
    }
}

/// Keeps `limit` lines at most, and of each microsecond all lines or none.
fn cut(lines: &mut Vec<StampedLine>, limit: usize) {
    let Some(next) = lines.get(limit).map(StampedLine::microsecond) else { return };
    lines.truncate(limit);
    let whole = lines.partition_point(|line| line.microsecond() < next);
    if whole > 0 {
        lines.truncate(whole);
    }
}

fn found_container(record: &Value) -> Option<Found> {
    let found = || {
        let created = record.get("created")?.as_str()?;
        let (labels, condition) = (record.get("labels")?, condition(record));
        Some(Found {
            owner: labels::owner(labels)?,
            what: FoundObject::Container {
                id: record.get("id")?.as_str()?.parse().ok()?,
                condition,
                created_at: DateTime::parse_from_rfc3339(created).ok()?.to_utc().trunc_subsecs(6),
                service: labels::service(labels),
                stays_up: groups::stays_up(labels, condition, is_kept(record)),
            },
        })
    };
    let found = found();
    // Those of extensions are no deployment's, and looked after by others.
    if found.is_none() && !record.get("labels").is_some_and(labels::is_of_extension) {
        unreadable(record, "a container has labels that cannot be read");
    }
    found
}

/// An image under each of its names. It has the labels of the deployment that made it, and may have
/// the names of others that use it too.
fn found_images(record: &Value) -> Vec<Found> {
    let names = record.get("names").and_then(Value::as_array).into_iter().flatten();
    let names: Vec<ImageName> = names.filter_map(|name| name.as_str()?.parse().ok()).collect();
    if names.is_empty() {
        // A step of a build, between two of its labels.
        return Vec::new();
    }
    let Some(owner) = record.get("labels").and_then(labels::owner_of_image) else {
        unreadable(record, "an image has labels that cannot be read");
        return Vec::new();
    };
    let found = names.into_iter().filter_map(|name| {
        let (application, deployment) = name.whose()?;
        Some(Found { owner: Owner { application, deployment, ..owner }, what: FoundObject::Image(name) })
    });
    found.collect()
}

/// The network of a composition; that of an organization is nobody's leftover.
fn found_network(record: &Value) -> Option<Found> {
    let owner = labels::owner_of_image(record.get("labels")?)?;
    Some(Found { owner, what: FoundObject::Network(record.get("name")?.as_str()?.to_owned()) })
}

/// What somebody else has marked as ours is left alone.
fn unreadable(record: &Value, what: &str) {
    let id = record.get("id").and_then(Value::as_str).unwrap_or_default();
    tracing::warn!(id, "{what}");
}
