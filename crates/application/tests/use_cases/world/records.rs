//! The records of the world.

use std::{collections::HashSet, net::IpAddr, sync::Arc};

use async_trait::async_trait;
use launchway_domain::{
    applications::{
        self, Application, ApplicationDetail, ApplicationFilter, ApplicationRepository, ApplicationSummary,
        NamedApplication,
    },
    clock::Timestamp,
    deployments::{
        self, Deployment, DeploymentDetail, DeploymentRepository, KeptVersions, LiveVersion, RetentionStatus,
    },
    idempotency::{IdempotencyKey, IdempotencyStore, StoredResponse},
    ids::{ApplicationId, DeploymentId},
    jobs::{self, JobKind},
    logs::{LogFilter, LogLine, LogReader, LogSink, NewLine},
    organizations::{DeployKey, DeployKeyRepository, Scope},
    page::{Page, PageRequest},
    secret::Sealed,
    store::{StoreError, UnitOfWork, Write, are_audited},
    webhooks::{BranchHead, DeliveryMemory, FollowedBranches},
};

use super::{State, World, journal::in_short};
use crate::ports::unavailable;

#[async_trait]
impl UnitOfWork for World {
    async fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        assert!(are_audited(&writes), "no audit entry for {writes:?}");
        self.pass_time("commit").await;
        let mut state = self.state();
        if let Some(judge) = state.judge.as_mut() {
            judge(&writes)?;
        }
        state.journal.push(in_short(&writes));
        writes.iter().for_each(|write| take_effect(&mut state, write));
        state.commits.push(writes);
        Ok(())
    }
}

/// Applies the effects of a write that later reads depend on.
fn take_effect(state: &mut State, write: &Write) {
    match write {
        Write::Deployment(deployments::Write::GoLive { id, .. }) => {
            state.application.iter_mut().for_each(|application| application.live = Some(*id));
        }
        Write::Deployment(deployments::Write::RecordContainer { id, container, .. }) => {
            let live = state.live.iter_mut().map(|version| &mut version.deployment);
            for deployment in state.deployments.iter_mut().chain(live).filter(|known| known.id == *id) {
                let mut copies = deployment.further_copies.iter_mut();
                match copies.find(|copy| copy.id == container.id) {
                    Some(copy) => copy.clone_from(container),
                    None => deployment.container = Some(container.clone()),
                }
            }
        }
        Write::Deployment(deployments::Write::ReplaceContainer { id, container, further_copies, .. }) => {
            let live = state.live.iter_mut().map(|version| &mut version.deployment);
            for deployment in state.deployments.iter_mut().chain(live).filter(|known| known.id == *id) {
                deployment.container = Some(container.clone());
                deployment.further_copies.clone_from(further_copies);
            }
        }
        Write::Application(applications::Write::SetStopped { is_stopped, .. }) => {
            let live = state.live.iter_mut().map(|version| &mut version.application);
            state.application.iter_mut().chain(live).for_each(|known| known.is_stopped = *is_stopped);
        }
        Write::Application(applications::Write::SetHealth { deployment, health, .. }) => {
            for version in state.live.iter_mut().filter(|version| version.deployment.id == *deployment) {
                version.application.status.state = health.state();
                version.deployment.breakdown = health.reason().map(str::to_owned);
            }
        }
        Write::Job(jobs::Write::Settle { lease, .. }) => {
            state.give_back(lease);
        }
        Write::Job(jobs::Write::Enqueue(new)) if new.kind == JobKind::Reconcile => {
            state.reconcile_jobs.push(new.clone());
        }
        _ => {}
    }
}

#[async_trait]
impl ApplicationRepository for World {
    async fn page(
        &self,
        _: Scope,
        _: &ApplicationFilter,
        _: PageRequest,
    ) -> Result<Page<ApplicationSummary>, StoreError> {
        unreachable!("no worker asks for a page")
    }

    async fn get(&self, scope: Scope, id: ApplicationId) -> Result<Option<Application>, StoreError> {
        let found = self.state().application.clone();
        Ok(found.filter(|found| found.id == id && found.organization_id == scope.id()))
    }

    async fn detail(&self, _: Scope, _: ApplicationId) -> Result<Option<ApplicationDetail>, StoreError> {
        unreachable!("no worker asks for everything around an application")
    }

    async fn named(&self) -> Result<Vec<NamedApplication>, StoreError> {
        Ok(self.state().named.clone())
    }

    async fn is_named(&self, _: &str) -> Result<bool, StoreError> {
        unreachable!("no worker asks for a name")
    }
}

#[async_trait]
impl DeploymentRepository for World {
    async fn page(
        &self,
        _: Scope,
        _: ApplicationId,
        request: PageRequest,
    ) -> Result<Page<Deployment>, StoreError> {
        let items = self.state().deployments.clone();
        Ok(Page { total: i64::try_from(items.len()).unwrap_or(i64::MAX), items, request })
    }

    async fn get(&self, scope: Scope, id: DeploymentId) -> Result<Option<Deployment>, StoreError> {
        let state = self.state();
        let is_it = |found: &&Deployment| found.id == id && found.organization_id == scope.id();
        Ok(state.deployments.iter().find(is_it).cloned())
    }

    async fn many(&self, _: Scope, _: &[DeploymentId]) -> Result<Vec<Deployment>, StoreError> {
        unreachable!("no worker asks for many")
    }

    async fn newest(&self, _: Scope, of: &[ApplicationId]) -> Result<Vec<Deployment>, StoreError> {
        let state = self.state();
        let found = state.deployments.iter().filter(|deployment| of.contains(&deployment.application_id));
        Ok(found.cloned().collect())
    }

    async fn detail(&self, _: Scope, _: DeploymentId) -> Result<Option<DeploymentDetail>, StoreError> {
        unreachable!("no worker asks for everything around a deployment")
    }

    async fn live(&self) -> Result<Arc<[LiveVersion]>, StoreError> {
        Ok(self.state().live.as_slice().into())
    }

    async fn unretired(&self) -> Result<Vec<Deployment>, StoreError> {
        Ok(self.state().unretired.clone())
    }

    async fn live_addresses(&self) -> Result<Vec<IpAddr>, StoreError> {
        let state = self.state();
        let of_versions =
            state.live.iter().flat_map(|version| version.deployment.copies()).filter_map(|copy| copy.address);
        let of_extensions = state.extension_routes.iter().map(|route| route.address);
        Ok(of_versions.chain(of_extensions).collect())
    }

    async fn retention_status(
        &self,
        deployments: &[DeploymentId],
        kept: KeptVersions,
    ) -> Result<Vec<RetentionStatus>, StoreError> {
        assert_eq!(kept, KeptVersions(10));
        let distinct: HashSet<&DeploymentId> = deployments.iter().collect();
        assert_eq!(distinct.len(), deployments.len(), "asked twice: {deployments:?}");
        let known = self.state().retention_status.clone();
        Ok(known
            .into_iter()
            .filter(|retention_status| deployments.contains(&retention_status.deployment))
            .collect())
    }
}

#[async_trait]
impl LogSink for World {
    async fn append(&self, lines: Vec<NewLine>) -> Result<(), StoreError> {
        {
            let mut state = self.state();
            if state.failing_appends > 0 {
                state.failing_appends -= 1;
                return Err(unavailable());
            }
            // Durable at once, even if the caller does not wait for the result.
            state.batches.push(lines);
        }
        self.pass_time("append").await;
        Ok(())
    }

    async fn append_printed(
        &self,
        _: DeploymentId,
        after: Option<Timestamp>,
        lines: Vec<NewLine>,
    ) -> Result<(), StoreError> {
        {
            let state = self.state();
            if state.printed_elsewhere.is_some() && after != state.last_printed {
                return Err(StoreError::Stale);
            }
        }
        self.append(lines).await
    }

    async fn trim(&self, keep: i64) -> Result<usize, StoreError> {
        self.state().journal.push(format!("trim {keep}"));
        Ok(0)
    }
}

#[async_trait]
impl LogReader for World {
    async fn page(
        &self,
        _: Scope,
        _: ApplicationId,
        _: &LogFilter,
        _: PageRequest,
    ) -> Result<Option<Page<LogLine>>, StoreError> {
        unreachable!("maintenance reads no pages")
    }

    async fn after(
        &self,
        _: Scope,
        _: ApplicationId,
        _: &LogFilter,
        _: i64,
        _: i64,
    ) -> Result<Option<Vec<LogLine>>, StoreError> {
        unreachable!("maintenance follows no log")
    }

    async fn last_printed(&self, _: DeploymentId) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.state().last_printed)
    }
}

#[async_trait]
impl IdempotencyStore for World {
    async fn find(&self, _: &IdempotencyKey, _: Timestamp) -> Result<Option<StoredResponse>, StoreError> {
        unreachable!("maintenance looks for no request")
    }

    async fn keep_answer(&self, _: &IdempotencyKey, _: &Sealed) -> Result<(), StoreError> {
        unreachable!("maintenance answers no request")
    }

    async fn forget(&self, until: Timestamp) -> Result<(), StoreError> {
        self.state().journal.push(format!("forget {until}"));
        Ok(())
    }
}

#[async_trait]
impl DeliveryMemory for World {
    async fn forget(&self, deliveries: Timestamp, secrets: Timestamp) -> Result<(), StoreError> {
        self.state().journal.push(format!("forget deliveries {deliveries} and secrets {secrets}"));
        Ok(())
    }
}

#[async_trait]
impl FollowedBranches for World {
    async fn followers(&self) -> Result<Vec<Application>, StoreError> {
        Ok(self.state().followers.clone())
    }

    async fn is_missed(&self, head: &BranchHead) -> Result<bool, StoreError> {
        Ok(self.state().missed.contains(&head.application))
    }
}

#[async_trait]
impl DeployKeyRepository for World {
    async fn deploy_key(&self, _: Scope) -> Result<Option<DeployKey>, StoreError> {
        Ok(self.state().deploy_key.clone())
    }
}
