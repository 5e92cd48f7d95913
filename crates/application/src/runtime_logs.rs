//! Collecting what containers print, so that it survives them.

use std::{collections::HashMap, sync::Arc};

use launchway_domain::{
    applications::Application,
    clock::Timestamp,
    deployments::{ContainerId, Deployment, EngineInventory, PrintedLine},
    logs::{Level, LineAssembler, LogReader, LogSink, Masker, NewLine},
    secret::SecretBox,
};
use tokio::sync::Mutex;

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
        Self { inventory, sink, reader, vault: Vault::new(secrets), collected: Mutex::default() }
    }

    /// Takes what the container of `deployment` has printed since the last time.
    ///
    /// # Errors
    /// A sentence for the log; then nothing was taken.
    pub(crate) async fn collect(
        &self,
        application: &Application,
        deployment: &Deployment,
    ) -> Result<(), String> {
        let Some(container) = &deployment.container else { return Ok(()) };
        let mut collected = self.collected.lock().await;
        let since = match collected.get(&container.id) {
            Some(since) => *since,
            None => self.reader.last_printed(deployment.id).await.map_err(|error| error.to_string())?,
        };
        collected.insert(container.id.clone(), since);
        let printed = self.inventory.printed(&container.id, since, LINES).await;
        let printed = printed.map_err(|error| error.to_string())?;
        let Some(last) = printed.last().map(|line| line.at) else { return Ok(()) };
        // Made when there is something to mask, and not kept: it is large.
        let secrets = self.vault.open(application).map_err(|error| error.to_string())?;
        let masker = secrets_of(&secrets);
        let lines = printed.iter().filter_map(|line| shown(deployment, &masker, line)).collect();
        self.sink.append(lines).await.map_err(|error| error.to_string())?;
        collected.insert(container.id.clone(), Some(last));
        Ok(())
    }

    /// Remembers nothing of containers other than `containers`.
    pub(crate) async fn forget_others(&self, containers: &[&ContainerId]) {
        self.collected.lock().await.retain(|id, _| containers.contains(&id));
    }
}

fn shown(deployment: &Deployment, masker: &Masker, line: &PrintedLine) -> Option<NewLine> {
    let mut assembler = LineAssembler::default();
    let mut lines = assembler.push(&line.text, masker);
    lines.extend(assembler.finish(masker));
    let text = lines.join(" ");
    let (application_id, deployment_id) = (deployment.application_id, deployment.id);
    let line = NewLine { application_id, deployment_id, level: Level::Runtime, text, at: line.at };
    (!line.text.is_empty()).then_some(line)
}
