//! Collecting what containers print, so that it survives them.

use std::collections::HashMap;

use launchway_domain::{
    clock::Timestamp,
    deployments::{ContainerId, LiveVersion, PrintedLine},
    ids::DeploymentId,
    logs::{Level, LineAssembler, Masker, NewLine},
};

use super::Upkeep;
use crate::deployments::secrets_of;

/// How many lines of one container are taken in one round, so that one that floods does not hold up
/// the others.
const LINES: usize = 5000;

/// How far the output of each container has been collected.
#[derive(Default)]
pub(super) struct RuntimeLogs(HashMap<ContainerId, Cursor>);

struct Cursor {
    since: Option<Timestamp>,
    masker: Masker,
    /// The masker is of the application as it was then.
    masked_at: Timestamp,
}

impl Upkeep {
    /// Takes what the containers of `live` have printed since the last round.
    pub(super) async fn collect(&self, logs: &mut RuntimeLogs, live: &[&LiveVersion]) {
        let mut known = std::mem::take(&mut logs.0);
        for version in live {
            let Some(container) = &version.deployment.container else { continue };
            let cursor = known.remove(&container.id);
            match self.collect_from(version, &container.id, cursor).await {
                Ok(cursor) => drop(logs.0.insert(container.id.clone(), cursor)),
                Err(reason) => {
                    tracing::warn!(deployment.id = %version.deployment.id, reason, "output could not be collected");
                }
            }
        }
    }

    async fn collect_from(
        &self,
        version: &LiveVersion,
        container: &ContainerId,
        cursor: Option<Cursor>,
    ) -> Result<Cursor, String> {
        let mut cursor = match cursor {
            Some(cursor) if cursor.masked_at == version.application.updated_at => cursor,
            Some(Cursor { since, .. }) => self.cursor(version, since)?,
            None => {
                let last = self.ports.log_reader.last_printed(version.deployment.id).await;
                self.cursor(version, last.map_err(|error| error.to_string())?)?
            }
        };
        let printed = self.ports.inventory.printed(container, cursor.since, LINES).await;
        let printed = printed.map_err(|error| error.to_string())?;
        let Some(last) = printed.last().map(|line| line.at) else { return Ok(cursor) };
        let lines = printed.into_iter().filter_map(|line| shown(version, &cursor.masker, &line));
        self.ports.logs.append(lines.collect()).await.map_err(|error| error.to_string())?;
        cursor.since = Some(last);
        Ok(cursor)
    }

    fn cursor(&self, version: &LiveVersion, since: Option<Timestamp>) -> Result<Cursor, String> {
        let secrets = self.vault.open(&version.application).map_err(|error| error.to_string())?;
        Ok(Cursor { since, masker: secrets_of(&secrets), masked_at: version.application.updated_at })
    }

    /// A line of Launchway's own in the log of a version.
    pub(super) async fn note(&self, version: &LiveVersion, level: Level, text: String) {
        let line = line_of(version.deployment.id, version, level, text, self.tools.clock.now());
        if let Err(error) = self.ports.logs.append(vec![line]).await {
            tracing::warn!(%error, deployment.id = %version.deployment.id, "a log line could not be kept");
        }
    }
}

fn shown(version: &LiveVersion, masker: &Masker, line: &PrintedLine) -> Option<NewLine> {
    let mut assembler = LineAssembler::default();
    let mut lines = assembler.push(&line.text, masker);
    lines.extend(assembler.finish(masker));
    let text = lines.join(" ");
    (!text.is_empty()).then(|| line_of(version.deployment.id, version, Level::Runtime, text, line.at))
}

fn line_of(
    deployment_id: DeploymentId,
    version: &LiveVersion,
    level: Level,
    text: String,
    at: Timestamp,
) -> NewLine {
    NewLine { application_id: version.application.id, deployment_id, level, text, at }
}
