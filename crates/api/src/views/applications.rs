//! The JSON of applications.

use std::collections::BTreeMap;

use launchway_application::applications::ShownVariables;
use launchway_domain::{
    applications::{Application, ApplicationDetail, ApplicationSummary, Variables},
    certificates::{Certificate, CertificateState, HstsPolicy},
    page::Page,
};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    certificates::{CertificateView, HstsView},
    deployments::DeploymentView,
    logs::{Lines, LogView},
    organizations::OrganizationView,
    users::UserView,
};
use crate::{pages::Pagination, timestamp::Moment};

/// An application. Its relations are omitted, and its variables hidden, unless they are attached.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = Application)]
pub(crate) struct ApplicationView {
    id: Uuid,
    name: String,
    repository: String,
    branch: String,
    #[schema(example = "/")]
    base_path: String,
    #[schema(example = "Dockerfile")]
    dockerfile_path: String,
    #[schema(example = "dockerfile")]
    build_pack: &'static str,
    /// An object as JSON text.
    #[schema(example = "{}")]
    build_variables: String,
    #[schema(example = "production")]
    environment: String,
    /// An object as JSON text.
    #[schema(example = "{}")]
    environment_variables: String,
    domain: String,
    /// Every domain of the application.
    domains: Vec<String>,
    /// The certificates of its domains.
    certificates: Vec<CertificateView>,
    /// The HSTS policies of its domains.
    hsts: Vec<HstsView>,
    port: u16,
    pre_run_command: String,
    post_run_command: String,
    #[schema(example = "launchway")]
    proxy_server: &'static str,
    labels: Vec<String>,
    health_check_path: String,
    auto_deploy: bool,
    /// The number of copies that should run.
    #[schema(example = 1)]
    replicas: u16,
    /// The paths of which a push must change one to deploy it; empty if any does.
    watch_paths: Vec<String>,
    organization_id: Uuid,
    user_id: Uuid,
    #[schema(no_recursion)]
    organization: Option<Box<OrganizationView>>,
    #[schema(no_recursion)]
    user: Option<Box<UserView>>,
    #[schema(no_recursion)]
    status: Option<Box<ApplicationStatusView>>,
    /// The reason why its live version does not serve, or why some of its copies do not; null while all do, or none is
    /// live.
    status_detail: Option<StatusDetail>,
    #[schema(no_recursion)]
    deployments: Vec<DeploymentView>,
    #[schema(no_recursion, value_type = Vec<LogView>)]
    logs: Lines,
    created_at: Moment,
    updated_at: Moment,
}

/// The reason why the live version of an application, or some of its copies, does not serve.
#[derive(Clone, Serialize, ToSchema)]
pub(crate) struct StatusDetail {
    #[schema(example = "the container exited with code 137")]
    reason: String,
    /// The time at which the status of the application last changed.
    since: Moment,
}

/// The status of an application.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = ApplicationStatus)]
pub(crate) struct ApplicationStatusView {
    id: Uuid,
    application_id: Uuid,
    #[schema(no_recursion)]
    application: Option<Box<ApplicationView>>,
    #[schema(example = "running")]
    status: &'static str,
    created_at: Moment,
    updated_at: Moment,
}

impl From<&Application> for ApplicationView {
    fn from(application: &Application) -> Self {
        let blueprint = &application.blueprint;
        Self {
            id: application.id.into(),
            name: blueprint.name.as_str().to_owned(),
            repository: blueprint.repository.as_str().to_owned(),
            branch: text(blueprint.branch.as_ref()),
            base_path: blueprint.base_path.as_str().to_owned(),
            dockerfile_path: blueprint.dockerfile_path.as_str().to_owned(),
            build_pack: blueprint.build_pack.as_str(),
            build_variables: "{}".to_owned(),
            environment: blueprint.environment.as_str().to_owned(),
            environment_variables: "{}".to_owned(),
            domains: application.hosts().map(str::to_owned).collect(),
            domain: text(blueprint.domain.as_ref()),
            certificates: Vec::new(),
            hsts: Vec::new(),
            port: blueprint.port.get(),
            pre_run_command: text(blueprint.pre_run_command.as_ref()),
            post_run_command: text(blueprint.post_run_command.as_ref()),
            proxy_server: blueprint.proxy_server.as_str(),
            labels: blueprint.labels.as_slice().iter().map(ToString::to_string).collect(),
            health_check_path: text(blueprint.health_check_path.as_ref()),
            auto_deploy: blueprint.auto_deploy,
            replicas: blueprint.copies.get(),
            watch_paths: blueprint.watch_paths.as_slice().iter().map(ToString::to_string).collect(),
            organization_id: application.organization_id.into(),
            user_id: application.user_id.into(),
            organization: None,
            user: None,
            status: None,
            status_detail: None,
            deployments: Vec::new(),
            logs: Lines::default(),
            created_at: application.created_at.into(),
            updated_at: application.updated_at.into(),
        }
    }
}

fn text<T: ToString>(value: Option<&T>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

impl From<&ApplicationSummary> for ApplicationView {
    /// Includes its organization, its user and its status.
    fn from(summary: &ApplicationSummary) -> Self {
        let ApplicationSummary { application, organization, user, breakdown } = summary;
        let status_detail = breakdown.as_ref().map(|reason| StatusDetail {
            reason: reason.clone(),
            since: application.status.updated_at.into(),
        });
        let status = &application.status;
        let status = ApplicationStatusView {
            id: status.id.into(),
            application_id: application.id.into(),
            application: None,
            status: status.state.as_str(),
            created_at: status.created_at.into(),
            updated_at: status.updated_at.into(),
        };
        Self {
            organization: Some(Box::new(organization.into())),
            user: Some(Box::new(user.into())),
            status: Some(Box::new(status)),
            status_detail,
            ..Self::from(application)
        }
    }
}

impl ApplicationView {
    /// Attaches those certificates and HSTS policies that are of its domains.
    pub(crate) fn with_certificates(
        mut self,
        certificates: &[(Certificate, CertificateState)],
        policies: &[HstsPolicy],
    ) -> Self {
        let is_its = |one: &&(Certificate, CertificateState)| {
            one.0.application_id.is_some_and(|application| Uuid::from(application) == self.id)
        };
        self.certificates = certificates.iter().filter(is_its).map(CertificateView::from).collect();
        let its_own = policies.iter().filter(|one| Uuid::from(one.application_id) == self.id);
        self.hsts = its_own.map(HstsView::from).collect();
        self
    }

    fn with_variables(mut self, variables: &ShownVariables) -> Self {
        self.build_variables = json_of(&variables.build);
        self.environment_variables = json_of(&variables.environment);
        self
    }
}

impl From<(ApplicationDetail, ShownVariables)> for ApplicationView {
    fn from((detail, variables): (ApplicationDetail, ShownVariables)) -> Self {
        Self {
            deployments: detail.deployments.iter().map(DeploymentView::with_status).collect(),
            logs: detail.logs.into(),
            ..Self::from(&detail.summary).with_variables(&variables)
        }
    }
}

/// A page of applications.
#[derive(Serialize, ToSchema)]
#[schema(as = Applications)]
pub(crate) struct ApplicationsView {
    applications: Vec<ApplicationView>,
    pagination: Pagination,
}

impl ApplicationsView {
    /// Returns the view of a page, with the certificates and HSTS policies of its applications.
    pub(crate) fn new(
        page: Page<(ApplicationSummary, ShownVariables)>,
        certificates: &[(Certificate, CertificateState)],
        policies: &[HstsPolicy],
    ) -> Self {
        let view = |(summary, variables)| {
            let view = ApplicationView::from(summary).with_variables(variables);
            view.with_certificates(certificates, policies)
        };
        Self {
            pagination: Pagination::from(&page),
            applications: page.items.iter().map(|(summary, variables)| view((summary, variables))).collect(),
        }
    }
}

/// Returns variables as JSON text.
pub(super) fn json_of(variables: &Variables) -> String {
    let map: BTreeMap<&str, &str> = variables.iter().collect();
    // A map of texts is always JSON.
    serde_json::to_string(&map).unwrap_or_else(|_never| "{}".to_owned())
}
