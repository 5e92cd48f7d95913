//! Tests a use case in a service that embeds Launchway. Each port is a mock of `launchway-domain` (feature
//! `mock`), and the test states exactly which reads are allowed and which writes are required.
//!
//! `cargo test -p launchway-application --example mocked` runs it.

fn main() {}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use launchway_application::{EngineStatus, Error, ServiceContext, WakeSignal, deployments::Deployments};
    use launchway_domain::{
        applications::{Application, ApplicationSecrets, Blueprint, MockApplicationRepository, Port},
        auth::{Action, Actor, Forbidden, Permission, Resource},
        clock::Timestamp,
        deployments::{
            self, Deployment, DeploymentKind, DeploymentState, KeptVersions, MockDeploymentRepository,
        },
        ids::{ApplicationId, DeploymentId},
        jobs::{self, JobKind},
        organizations::{Description, Organization, Role},
        secret::{MockEntropy, Sealed},
        store::{MockUnitOfWork, StoreError, Write},
        users::User,
    };
    use uuid::Uuid;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    /// The actor of these tests, a member of an organization.
    fn ada(role: Role) -> Actor {
        let engines = Organization::new(id(1).into(), parsed("Engines"), Description::default(), NOW);
        Actor::vouched_for(
            User::invited(id(2).into(), parsed("ada"), parsed("ada@example.com"), NOW),
            engines,
            role,
        )
    }

    /// An application that the actor owns.
    fn web(ada: &Actor) -> Application {
        let port = Port::try_from(80).unwrap();
        let blueprint = Blueprint::of_image(parsed("web"), parsed("production"), parsed("nginx:1"), port);
        let sealed = || Sealed("sealed".to_owned());
        let secrets = ApplicationSecrets {
            build_variables: sealed(),
            environment_variables: sealed(),
            credentials: None,
        };
        let membership = ada.membership().unwrap();
        Application::new(
            (id(3).into(), id(4).into()),
            &membership.organization,
            ada.user_id(),
            blueprint,
            secrets,
            NOW,
        )
    }

    fn id(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    fn parsed<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
        text.parse().unwrap()
    }

    /// The use cases of deployments over mocks. A call without an expectation fails the test.
    fn deployments(
        applications: MockApplicationRepository,
        deployments: MockDeploymentRepository,
        store: MockUnitOfWork,
    ) -> Deployments {
        let (clock, ids) = (Arc::new(|| NOW), Arc::new(|| id(9)));
        let (wake, engine) = (WakeSignal::default(), EngineStatus::default());
        let entropy = Arc::new(MockEntropy::new());
        let context = ServiceContext { store: Arc::new(store), clock, ids, entropy, wake, engine };
        Deployments::new(Arc::new(applications), Arc::new(deployments), KeptVersions::default(), context)
    }

    #[tokio::test]
    async fn who_may_not_deploy_is_refused_before_anything_is_read() {
        let nothing = deployments(Default::default(), Default::default(), Default::default());
        let refused = nothing.redeploy(&ada(Role::Viewer), ApplicationId::from(id(3)), None).await;
        let lacking = Permission::new(Resource::Deploy, Action::Create);
        assert!(
            matches!(refused, Err(Error::Forbidden(Forbidden::Lacks(permission))) if permission == lacking)
        );
    }

    #[tokio::test]
    async fn request_commits_job_and_record_together() {
        let (mut applications, mut store) = (MockApplicationRepository::new(), MockUnitOfWork::new());
        let ada = ada(Role::Member);
        let web = web(&ada);
        applications.expect_get().once().returning(move |_, _| Ok(Some(web.clone())));
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
        let refused = asked.redeploy(&ada, ApplicationId::from(id(3)), None).await;
        assert!(matches!(refused, Err(Error::NotFound("the application"))), "{refused:?}");
    }

    /// A deployment of the application, in that state.
    fn deployment(ada: &Actor, state: DeploymentState) -> Deployment {
        let web = web(ada);
        let whose = (web.organization_id, web.id);
        let ids = (id(5).into(), id(6).into());
        let mut deployment = Deployment::new(ids, whose, DeploymentKind::Fresh, id(7).into(), NOW);
        deployment.status.state = state;
        deployment
    }

    #[tokio::test]
    async fn another_organizations_deployment_is_not_found() {
        let mut records = MockDeploymentRepository::new();
        // The repository is asked with the organization of the actor, and has nothing there.
        records.expect_get().once().withf(|scope, _| scope.id() == id(1).into()).returning(|_, _| Ok(None));
        let asked = deployments(MockApplicationRepository::new(), records, MockUnitOfWork::new());
        let refused = asked.cancel(&ada(Role::Member), DeploymentId::from(id(5))).await;
        assert!(matches!(refused, Err(Error::NotFound("the deployment"))), "{refused:?}");
    }

    #[tokio::test]
    async fn only_a_deployed_version_can_be_rolled_back_to() {
        let ada = ada(Role::Member);
        let failed = deployment(&ada, DeploymentState::Failed);
        let mut records = MockDeploymentRepository::new();
        records.expect_get().once().returning(move |_, _| Ok(Some(failed.clone())));
        let asked = deployments(MockApplicationRepository::new(), records, MockUnitOfWork::new());
        let refused = asked.roll_back(&ada, DeploymentId::from(id(5)), None).await;
        let reason = "that deployment is failed: only a deployed one can be rolled back to";
        assert!(matches!(&refused, Err(Error::Conflict(why)) if why == reason), "{refused:?}");
    }

    #[tokio::test]
    async fn a_deployment_that_is_over_cannot_be_cancelled() {
        let ada = ada(Role::Member);
        let over = deployment(&ada, DeploymentState::Deployed);
        let mut records = MockDeploymentRepository::new();
        records.expect_get().once().returning(move |_, _| Ok(Some(over.clone())));
        let asked = deployments(MockApplicationRepository::new(), records, MockUnitOfWork::new());
        let refused = asked.cancel(&ada, DeploymentId::from(id(5))).await;
        assert!(matches!(&refused, Err(Error::Conflict(why)) if why == "the deployment is deployed already"));
    }
}
