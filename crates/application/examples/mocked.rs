//! Tests a use case in a service that embeds Launchway. Each port is a mock of `launchway-domain` (feature
//! `mock`), the values come from its builders (feature `testing`), and the test states exactly which reads are
//! allowed and which writes are required.
//!
//! `cargo test -p launchway-application --example mocked` runs it.

fn main() {}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use launchway_application::{
        EngineStatus, Error, Homes, OwnReplica, ServiceContext, Terms, WakeSignal, deployments::Deployments,
    };
    use launchway_domain::{
        applications::MockApplicationRepository,
        auth::{Action, Forbidden, Permission, Resource},
        deployments::{self, Deployment, DeploymentState, KeptVersions, MockDeploymentRepository},
        fixtures::{CountingIds, FixedClock, a_deployment, a_vouched_actor, an_application, an_organization},
        jobs::{self, JobKind},
        organizations::Role,
        secret::MockEntropy,
        store::{MockUnitOfWork, StoreError, Write},
    };

    /// The use cases of deployments over mocks. A call without an expectation fails the test.
    fn deployments(
        applications: MockApplicationRepository,
        deployments: MockDeploymentRepository,
        store: MockUnitOfWork,
    ) -> Deployments {
        let (clock, ids) = (Arc::new(FixedClock::default()), Arc::new(CountingIds::default()));
        let (wake, engine, terms) = (WakeSignal::default(), EngineStatus::default(), Terms::default());
        let entropy = Arc::new(MockEntropy::new());
        let context = ServiceContext {
            store: Arc::new(store),
            clock,
            ids,
            entropy,
            wake,
            engine,
            terms,
            replica: OwnReplica::default(),
            homes: Homes::default(),
        };
        Deployments::new(Arc::new(applications), Arc::new(deployments), KeptVersions::default(), context)
    }

    #[tokio::test]
    async fn who_may_not_deploy_is_refused_before_anything_is_read() {
        let nothing = deployments(Default::default(), Default::default(), Default::default());
        let refused =
            nothing.redeploy(&a_vouched_actor(Role::Viewer), an_application().build().id, None).await;
        let lacking = Permission::new(Resource::Deploy, Action::Create);
        assert!(
            matches!(refused, Err(Error::Forbidden(Forbidden::Lacks(permission))) if permission == lacking)
        );
    }

    #[tokio::test]
    async fn request_commits_job_and_record_together() {
        let (mut applications, mut store) = (MockApplicationRepository::new(), MockUnitOfWork::new());
        let ada = a_vouched_actor(Role::Member);
        applications.expect_get().once().returning(|_, _| Ok(Some(an_application().build())));
        store.expect_commit().once().returning(|writes| {
            let is_job = |write: &Write| {
                matches!(write, Write::Job(jobs::Write::Enqueue(job)) if job.kind == JobKind::Deploy)
            };
            assert!(writes.iter().any(is_job), "{writes:?}");
            let is_record = |write: &Write| matches!(write, Write::Deployment(deployments::Write::Insert(_)));
            assert!(writes.iter().any(is_record), "{writes:?}");
            // The database rejects the whole commit: another user has deleted the application in the
            // meantime.
            Err(StoreError::Stale)
        });
        let asked = deployments(applications, MockDeploymentRepository::new(), store);
        let refused = asked.redeploy(&ada, an_application().build().id, None).await;
        assert!(matches!(refused, Err(Error::NotFound("the application"))), "{refused:?}");
    }

    /// A deployment of the application, in that state.
    fn deployment(state: DeploymentState) -> Deployment {
        a_deployment().in_state(state).build()
    }

    #[tokio::test]
    async fn another_organizations_deployment_is_not_found() {
        let mut records = MockDeploymentRepository::new();
        // The repository is asked with the organization of the actor, and has nothing there.
        records
            .expect_get()
            .once()
            .withf(|scope, _| scope.id() == an_organization().build().id)
            .returning(|_, _| Ok(None));
        let asked = deployments(MockApplicationRepository::new(), records, MockUnitOfWork::new());
        let refused = asked.cancel(&a_vouched_actor(Role::Member), a_deployment().build().id).await;
        assert!(matches!(refused, Err(Error::NotFound("the deployment"))), "{refused:?}");
    }

    #[tokio::test]
    async fn only_a_deployed_version_can_be_rolled_back_to() {
        let ada = a_vouched_actor(Role::Member);
        let failed = deployment(DeploymentState::Failed);
        let mut records = MockDeploymentRepository::new();
        records.expect_get().once().returning(move |_, _| Ok(Some(failed.clone())));
        let asked = deployments(MockApplicationRepository::new(), records, MockUnitOfWork::new());
        let refused = asked.roll_back(&ada, a_deployment().build().id, None).await;
        let reason = "that deployment is failed: only a deployed one can be rolled back to";
        assert!(matches!(&refused, Err(Error::Conflict(why)) if why == reason), "{refused:?}");
    }

    #[tokio::test]
    async fn a_deployment_that_has_finished_cannot_be_cancelled() {
        let ada = a_vouched_actor(Role::Member);
        let over = deployment(DeploymentState::Deployed);
        let mut records = MockDeploymentRepository::new();
        records.expect_get().once().returning(move |_, _| Ok(Some(over.clone())));
        let asked = deployments(MockApplicationRepository::new(), records, MockUnitOfWork::new());
        let refused = asked.cancel(&ada, a_deployment().build().id).await;
        assert!(matches!(&refused, Err(Error::Conflict(why)) if why == "the deployment is deployed already"));
    }
}
