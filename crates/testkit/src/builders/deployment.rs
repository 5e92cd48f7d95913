//! Deployments.

use launchway_domain::{
    applications::{Application, Port},
    clock::Timestamp,
    deployments::{
        ContainerRecord, ContainerState, Deployment, DeploymentKind, DeploymentState, ImageName, LiveVersion,
    },
    ids::{DeploymentId, JobId},
};

use super::{an_application, parsed};
use crate::{
    clock::{NEW_YEAR, moment},
    ids::id_of,
};

/// The first deployment of [`an_application`], queued since [`NEW_YEAR`].
pub fn a_deployment() -> DeploymentBuilder {
    DeploymentBuilder {
        application: an_application().build(),
        number: 1,
        kind: DeploymentKind::Fresh,
        job_id: None,
        state: DeploymentState::Queued,
        commit: None,
        has_image: false,
        container: None,
        created_at: moment(NEW_YEAR),
    }
}

/// A running container at 10.0.0.7 that listens on port 8080. Its id is derived from its name.
///
/// # Panics
/// Never.
#[must_use]
pub fn a_container(name: &str) -> ContainerRecord {
    let half = id_of(&format!("container {name}")).simple().to_string();
    ContainerRecord {
        id: parsed(&half.repeat(2)),
        name: name.to_owned(),
        state: ContainerState::Running,
        address: Some([10, 0, 0, 7].into()),
        port: Port::try_from(8080).unwrap(),
    }
}

/// Builds a [`Deployment`].
#[derive(Debug, Clone)]
#[must_use]
pub struct DeploymentBuilder {
    application: Application,
    number: u32,
    kind: DeploymentKind,
    job_id: Option<JobId>,
    state: DeploymentState,
    commit: Option<String>,
    has_image: bool,
    container: Option<ContainerRecord>,
    created_at: Timestamp,
}

impl DeploymentBuilder {
    /// Sets the application, and so another id.
    pub fn of(mut self, application: &Application) -> Self {
        self.application = application.clone();
        self
    }

    /// Sets the number within the application, and so another id.
    pub fn numbered(mut self, number: u32) -> Self {
        self.number = number;
        self
    }

    /// Makes it a rollback to an earlier deployment.
    pub fn back_to(mut self, earlier: DeploymentId) -> Self {
        self.kind = DeploymentKind::Rollback { to: earlier };
        self
    }

    /// Sets the job; by default its id is derived from the deployment's.
    pub fn by_job(mut self, job_id: JobId) -> Self {
        self.job_id = Some(job_id);
        self
    }

    /// Sets the state.
    pub fn in_state(mut self, state: DeploymentState) -> Self {
        self.state = state;
        self
    }

    /// Sets a commit whose hash consists of this hexadecimal digit.
    pub fn made_of(mut self, digit: char) -> Self {
        self.commit = Some(digit.to_string().repeat(40));
        self
    }

    /// Gives it an image of its own.
    pub fn with_image(mut self) -> Self {
        self.has_image = true;
        self
    }

    /// Sets the container.
    pub fn run_by(mut self, container: ContainerRecord) -> Self {
        self.container = Some(container);
        self
    }

    /// Sets the time of the request.
    pub fn created_at(mut self, at: Timestamp) -> Self {
        self.created_at = at;
        self
    }

    /// Returns the deployment.
    ///
    /// # Panics
    ///
    /// If the digit of the commit is not hexadecimal.
    #[must_use]
    #[track_caller]
    pub fn build(self) -> Deployment {
        let Application { id: application_id, organization_id, .. } = self.application;
        let name = format!("deployment {} of {application_id}", self.number);
        let id: DeploymentId = id_of(&name).into();
        let ids = (id, id_of(&format!("status of {name}")).into());
        let job_id = self.job_id.unwrap_or_else(|| id_of(&format!("job of {name}")).into());
        let owner = (organization_id, application_id);
        let mut deployment = Deployment::new(ids, owner, self.kind, job_id, self.created_at);
        deployment.status.state = self.state;
        deployment.commit = self.commit.as_deref().map(parsed);
        deployment.image = self.has_image.then(|| ImageName::of(application_id, id));
        deployment.container = self.container;
        deployment
    }

    /// Returns the deployment, deployed, as the live version of its application.
    ///
    /// # Panics
    /// As [`build`](Self::build).
    #[must_use]
    #[track_caller]
    pub fn live(self) -> LiveVersion {
        let mut application = self.application.clone();
        let deployment = self.in_state(DeploymentState::Deployed).build();
        application.live = Some(deployment.id);
        LiveVersion { application, deployment }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deployments_of_another_number_or_application_have_other_ids() {
        let other = an_application().named("api").build();
        let ids = [a_deployment(), a_deployment().numbered(2), a_deployment().of(&other)]
            .map(|deployment| deployment.build().id);
        assert_eq!(ids[0], a_deployment().made_of('a').build().id);
        assert!(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
    }

    #[test]
    fn containers_of_another_name_have_other_ids() {
        assert_eq!(a_container("web"), a_container("web"));
        assert_ne!(a_container("web").id, a_container("api").id);
    }
}
