//! The depth of the queue.

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    jobs::{JobKind, QueueDepth, QueueStatistics},
    store::StoreError,
};

use super::rows::{runs, waits};
use crate::{Database, columns::DbTs, schema::jobs};

#[async_trait]
impl QueueStatistics for Database {
    async fn depths(&self) -> Result<Vec<QueueDepth>, StoreError> {
        self.read(|connection| {
            let columns = (jobs::kind, jobs::enqueued_at);
            let waiting: Vec<(String, DbTs)> =
                jobs::table.filter(waits()).select(columns).load(connection)?;
            let running: Vec<String> = jobs::table.filter(runs()).select(jobs::kind).load(connection)?;
            let depth = |kind: &JobKind| {
                let of_kind = || waiting.iter().filter(|(name, _)| name == kind.as_str());
                QueueDepth {
                    kind: *kind,
                    waiting: of_kind().map(|_| 1).sum(),
                    running: running.iter().filter(|name| *name == kind.as_str()).map(|_| 1).sum(),
                    oldest_waiting: of_kind().map(|(_, at)| Timestamp::from(*at)).min(),
                }
            };
            let depths = JobKind::ALL.iter().map(depth);
            Ok(depths.filter(|depth| depth.waiting + depth.running > 0).collect())
        })
        .await
    }
}
