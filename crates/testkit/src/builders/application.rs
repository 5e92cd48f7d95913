//! Applications.

use launchway_domain::{
    applications::{
        Application, ApplicationDetail, ApplicationSecrets, ApplicationState, ApplicationSummary, BasePath,
        Blueprint, BuildPack, DockerfilePath, Hostname, ImageRef, Labels, Port, ProxyServer, Repository,
    },
    clock::Timestamp,
    deployments::Deployment,
    ids::DeploymentId,
    logs::LogLine,
    organizations::Organization,
    secret::Sealed,
    users::User,
};

use super::{a_user, an_organization, parsed};
use crate::{
    clock::{NEW_YEAR, moment},
    ids::id_of,
};

/// The application "web" in production, built from a Dockerfile in a git repository, created by [`a_user`]
/// for [`an_organization`] at [`NEW_YEAR`], with its first deployment queued.
pub fn an_application() -> ApplicationBuilder {
    ApplicationBuilder {
        organization: an_organization().build(),
        user: a_user().build(),
        blueprint: a_blueprint(),
        further_domains: Vec::new(),
        secrets: ApplicationSecrets {
            build_variables: Sealed("sealed build variables".to_owned()),
            environment_variables: Sealed("sealed environment variables".to_owned()),
            credentials: None,
        },
        state: None,
        live: None,
        is_stopped: false,
        created_at: moment(NEW_YEAR),
    }
}

/// The blueprint of [`an_application`].
#[must_use]
pub fn a_blueprint() -> Blueprint {
    Blueprint {
        name: parsed("web"),
        repository: git("https://git.example.com/analytics/web.git"),
        branch: Some(parsed("main")),
        base_path: BasePath::default(),
        dockerfile_path: DockerfilePath::default(),
        build_pack: BuildPack::Dockerfile,
        environment: parsed("production"),
        domain: None,
        port: Port::try_from(8080).unwrap(),
        pre_run_command: None,
        post_run_command: None,
        proxy_server: ProxyServer::default(),
        labels: Labels::default(),
        health_check_path: None,
        auto_deploy: true,
    }
}

#[track_caller]
fn git(address: &str) -> Repository {
    Repository::Git(address.to_owned().try_into().unwrap())
}

/// Builds an [`Application`].
#[derive(Debug, Clone)]
#[must_use]
pub struct ApplicationBuilder {
    organization: Organization,
    user: User,
    blueprint: Blueprint,
    further_domains: Vec<Hostname>,
    secrets: ApplicationSecrets,
    state: Option<ApplicationState>,
    live: Option<DeploymentId>,
    is_stopped: bool,
    created_at: Timestamp,
}

impl ApplicationBuilder {
    /// Sets the name, and so another id.
    #[track_caller]
    pub fn named(mut self, name: &str) -> Self {
        self.blueprint.name = parsed(name);
        self
    }

    /// Sets the environment, and so another id.
    #[track_caller]
    pub fn in_environment(mut self, environment: &str) -> Self {
        self.blueprint.environment = parsed(environment);
        self
    }

    /// Sets the organization, and so another id.
    pub fn in_organization(mut self, organization: &Organization) -> Self {
        self.organization = organization.clone();
        self
    }

    /// Sets the creator.
    pub fn made_by(mut self, user: &User) -> Self {
        self.user = user.clone();
        self
    }

    /// Sets the git repository.
    #[track_caller]
    pub fn from_git(mut self, address: &str) -> Self {
        self.blueprint.repository = git(address);
        self
    }

    /// Uses a prebuilt image.
    #[track_caller]
    pub fn from_image(mut self, image: &str) -> Self {
        self.blueprint.repository = Repository::Image(parsed::<ImageRef>(image));
        self.blueprint.build_pack = BuildPack::Image;
        self.blueprint.branch = None;
        self
    }

    /// Sets the domain.
    #[track_caller]
    pub fn at_domain(mut self, domain: &str) -> Self {
        self.blueprint.domain = Some(parsed(domain));
        self
    }

    /// Adds a domain.
    #[track_caller]
    pub fn also_at(mut self, domain: &str) -> Self {
        self.further_domains.push(parsed(domain));
        self
    }

    /// Sets the blueprint. The id is derived from its name and environment.
    pub fn with_blueprint(mut self, blueprint: Blueprint) -> Self {
        self.blueprint = blueprint;
        self
    }

    /// Sets the secrets.
    pub fn with_secrets(mut self, secrets: ApplicationSecrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Sets the state.
    pub fn in_state(mut self, state: ApplicationState) -> Self {
        self.state = Some(state);
        self
    }

    /// Sets the live deployment. The application is running unless another state is set.
    pub fn living_by(mut self, deployment: impl Into<DeploymentId>) -> Self {
        self.live = Some(deployment.into());
        self.state = self.state.or(Some(ApplicationState::Running));
        self
    }

    /// Marks the application as stopped.
    pub fn stopped(mut self) -> Self {
        self.is_stopped = true;
        self.state = Some(ApplicationState::Stopped);
        self
    }

    /// Sets the time of creation.
    pub fn created_at(mut self, at: Timestamp) -> Self {
        self.created_at = at;
        self
    }

    /// Returns the application.
    #[must_use]
    pub fn build(self) -> Application {
        self.summary().application
    }

    /// Returns the application with its owner.
    #[must_use]
    pub fn summary(self) -> ApplicationSummary {
        let Self { organization, user, blueprint, secrets, created_at, .. } = self;
        let name = format!("application {} {} {}", organization.id, blueprint.environment, blueprint.name);
        let ids = (id_of(&name).into(), id_of(&format!("status of {name}")).into());
        let mut application = Application::new(ids, &organization, user.id, blueprint, secrets, created_at);
        application.further_domains = self.further_domains;
        application.status.state = self.state.unwrap_or(application.status.state);
        application.live = self.live;
        application.is_stopped = self.is_stopped;
        ApplicationSummary { application, organization, user, breakdown: None }
    }

    /// Returns the application with everything around it.
    #[must_use]
    pub fn detail(self, deployments: Vec<Deployment>, logs: Vec<LogLine>) -> ApplicationDetail {
        ApplicationDetail { summary: self.summary(), deployments, logs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_depend_on_name_environment_and_organization() {
        let other = an_organization().named("Engines").build();
        let ids = [
            an_application(),
            an_application().named("api"),
            an_application().in_environment("staging"),
            an_application().in_organization(&other),
        ]
        .map(|application| application.build().id);
        assert_eq!(ids[0], an_application().at_domain("web.example.com").build().id);
        assert!((0..4).all(|one| (0..one).all(|other| ids[one] != ids[other])));
    }

    #[test]
    fn what_is_built_fits_together() {
        for application in [an_application(), an_application().from_image("nginx:1.27")] {
            assert_eq!(application.build().blueprint.check(), Ok(()));
        }
    }
}
