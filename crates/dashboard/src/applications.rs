//! The pages of applications.

mod blueprint;
mod domains;
mod new;
mod plots;
mod settings;
mod variables;

use actix_web::{
    HttpResponse,
    http::StatusCode,
    web::{Path, ServiceConfig, get, post},
};
use askama::Template;
use launchway_application::{Error, snapshots::ListedApplication};
use launchway_domain::{
    applications::{Application, ApplicationDetail, ApplicationFilter, ApplicationState, BuildPack},
    auth::{Action, Resource},
    ids::ApplicationId,
};

use crate::{
    context::PageContext,
    deployments::{DeploymentRow, rows},
    error::PageError,
    form::Submitted,
    format::Time,
    frame::{Frame, Section, page, see_other},
    live::{freshness, live_page},
    logs::LogRow,
    pages::Pager,
    router::PREFIX,
};

pub(crate) use self::blueprint::port;
use self::plots::Plots;

/// The number of applications of a page.
const PAGE: i64 = 20;
/// The number of deployments on the overview.
const RECENT: usize = 5;
/// The number of log lines on the overview.
const LINES: usize = 12;

pub(crate) fn routes(config: &mut ServiceConfig) {
    config
        .route("/applications", get().to(applications))
        .route("/applications/new", get().to(new::new_page))
        .route("/applications/new", post().to(new::create))
        .route("/applications/{id}", get().to(overview))
        .route("/applications/{id}/deployments", get().to(deployments))
        .route("/applications/{id}/variables", get().to(variables::variables_page))
        .route("/applications/{id}/variables", post().to(variables::save))
        .route("/applications/{id}/domains", get().to(domains::domains_page))
        .route("/applications/{id}/domains", post().to(domains::add))
        .route("/applications/{id}/domains/remove", post().to(domains::remove))
        .route("/applications/{id}/settings", get().to(settings::settings_page))
        .route("/applications/{id}/settings", post().to(settings::save))
        .route("/applications/{id}/redeploy", post().to(redeploy))
        .route("/applications/{id}/restart", post().to(restart))
        .route("/applications/{id}/stop", post().to(stop))
        .route("/applications/{id}/delete", post().to(delete));
}

/// Parses an id of a path. A malformed one is as unknown as any other.
pub(crate) fn application_id(path: &Path<String>) -> Result<ApplicationId, Error> {
    path.parse().map_err(|_invalid| Error::NotFound("the application"))
}

/// A row of the list.
struct Row {
    id: String,
    name: String,
    environment: String,
    state: State,
    url: Option<String>,
    host: String,
    source: String,
    deployment: Option<DeploymentRow>,
}

/// A state, and the kind that its colour shows.
pub(crate) struct State {
    pub(crate) text: &'static str,
    pub(crate) kind: &'static str,
}

impl State {
    pub(crate) fn of(state: ApplicationState) -> Self {
        let kind = match state {
            ApplicationState::InProgress(_) => "busy",
            ApplicationState::Running => "good",
            ApplicationState::Failed => "bad",
            ApplicationState::Stopped => "off",
        };
        Self { text: state.as_str(), kind }
    }
}

#[derive(Template)]
#[template(path = "applications.html")]
struct ApplicationsPage {
    frame: Frame,
    rows: Vec<Row>,
    pager: Pager,
    search: String,
    environment: String,
    is_filtered: bool,
    may_create: bool,
}

async fn applications(context: PageContext) -> Result<HttpResponse, PageError> {
    let search = context.text("search");
    let environment = context.text("environment");
    let filter = ApplicationFilter {
        search: Some(search.clone()).filter(|text| !text.is_empty()),
        environment: context.choice("environment")?,
        state: None,
    };
    let (page_request, freshness) = (context.page_request(PAGE)?, freshness(&context));
    let snapshots = &context.services().snapshots;
    let found = snapshots.applications(&context.visitor, &filter, page_request, freshness).await?;
    live_page(&context, &[found.version], || {
        page(&ApplicationsPage {
            frame: context.frame(Section::Applications, "Applications"),
            rows: found.value.items.iter().map(Row::from).collect(),
            pager: Pager::of(&found.value, &[("search", &search), ("environment", &environment)]),
            is_filtered: !search.is_empty() || !environment.is_empty(),
            search,
            environment,
            may_create: context.may(Resource::Deploy, Action::Create),
        })
    })
}

impl From<&ListedApplication> for Row {
    fn from(listed: &ListedApplication) -> Self {
        let application = &listed.summary.application;
        let blueprint = &application.blueprint;
        Self {
            id: application.id.to_string(),
            name: blueprint.name.to_string(),
            environment: blueprint.environment.to_string(),
            state: State::of(application.status.state),
            url: listed.url.clone(),
            host: application.hosts().next().unwrap_or_default().to_owned(),
            source: source(application),
            deployment: listed
                .newest
                .as_ref()
                .map(|deployment| DeploymentRow::new(deployment, application.live)),
        }
    }
}

/// Returns the repository without what every URL has, and the branch.
fn source(application: &Application) -> String {
    let repository = application.blueprint.repository.as_str();
    let repository = repository.split_once("://").map_or(repository, |(_, rest)| rest);
    let repository = repository.trim_end_matches(".git");
    match &application.blueprint.branch {
        Some(branch) => format!("{repository} · {branch}"),
        None => repository.to_owned(),
    }
}

/// The header that the pages of an application share.
pub(crate) struct Head {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) environment: String,
    pub(crate) state: State,
    pub(crate) url: Option<String>,
    pub(crate) tab: &'static str,
    pub(crate) is_live: bool,
    pub(crate) is_busy: bool,
    pub(crate) may_update: bool,
    pub(crate) may_create: bool,
    pub(crate) may_delete: bool,
}

impl Head {
    pub(crate) fn new(context: &PageContext, application: &Application, tab: &'static str) -> Self {
        Self {
            id: application.id.to_string(),
            name: application.blueprint.name.to_string(),
            environment: application.blueprint.environment.to_string(),
            state: State::of(application.status.state),
            url: context.services().applications.url(application),
            tab,
            is_live: application.live.is_some(),
            is_busy: matches!(application.status.state, ApplicationState::InProgress(_)),
            may_update: context.may(Resource::Deploy, Action::Update),
            may_create: context.may(Resource::Deploy, Action::Create),
            may_delete: context.may(Resource::Deploy, Action::Delete),
        }
    }
}

#[derive(Template)]
#[template(path = "application.html")]
struct ApplicationPage {
    frame: Frame,
    head: Head,
    hosts: Vec<String>,
    source: String,
    build_pack: &'static str,
    port: u16,
    creator: String,
    created: Time,
    breakdown: Option<String>,
    plots: Plots,
    live: Option<DeploymentRow>,
    deployments: Vec<DeploymentRow>,
    lines: Vec<LogRow>,
    is_site: bool,
}

async fn overview(context: PageContext, path: Path<String>) -> Result<HttpResponse, PageError> {
    let (id, freshness) = (application_id(&path)?, freshness(&context));
    let shown = context.services().snapshots.application(&context.visitor, id, freshness).await?;
    let ApplicationDetail { summary, deployments, logs } = &shown.value.detail;
    let application = &summary.application;
    let live = deployments.iter().find(|one| application.live == Some(one.id));
    let metrics = context.services().metrics.of(&context.visitor, application, live).await?;
    live_page(&context, &[shown.version, plots::version(&metrics)], || {
        let blueprint = &application.blueprint;
        let skipped = logs.len().saturating_sub(LINES);
        page(&ApplicationPage {
            frame: context.frame(Section::Applications, blueprint.name.to_string()),
            head: Head::new(&context, application, "overview"),
            hosts: application.hosts().map(str::to_owned).collect(),
            source: source(application),
            build_pack: blueprint.build_pack.as_str(),
            port: blueprint.port.get(),
            creator: summary.user.username.to_string(),
            created: Time(application.created_at),
            breakdown: summary.breakdown.clone(),
            plots: Plots::new(&metrics),
            live: live.map(|one| DeploymentRow::new(one, application.live)),
            deployments: rows(deployments.get(..RECENT).unwrap_or(deployments), application.live),
            lines: logs.iter().skip(skipped).cloned().map(LogRow::from).collect(),
            is_site: blueprint.build_pack == BuildPack::Static,
        })
    })
}

#[derive(Template)]
#[template(path = "deployments.html")]
struct DeploymentsPage {
    frame: Frame,
    head: Head,
    rows: Vec<DeploymentRow>,
    pager: Pager,
}

async fn deployments(context: PageContext, path: Path<String>) -> Result<HttpResponse, PageError> {
    let id = application_id(&path)?;
    let (detail, _) = context.services().applications.detail(&context.visitor, id).await?;
    let application = detail.summary.application;
    let found =
        context.services().deployments.list(&context.visitor, id, context.page_request(PAGE)?).await?;
    let title = format!("Deployments of {}", application.blueprint.name);
    page(&DeploymentsPage {
        frame: context.frame(Section::Applications, title),
        head: Head::new(&context, &application, "deployments"),
        pager: Pager::of(&found, &[]),
        rows: rows(&found.items, application.live),
    })
}

async fn redeploy(
    Submitted { context, .. }: Submitted,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let id = application_id(&path)?;
    let detail = context.services().deployments.redeploy(&context.visitor, id, None).await?;
    Ok(see_other(format!("{PREFIX}/deployments/{}?done=redeployed", detail.deployment.id)))
}

async fn restart(
    Submitted { context, .. }: Submitted,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let id = application_id(&path)?;
    context.services().applications.restart(&context.visitor, id).await?;
    Ok(see_other(format!("{PREFIX}/applications/{id}?done=restarted")))
}

async fn stop(Submitted { context, .. }: Submitted, path: Path<String>) -> Result<HttpResponse, PageError> {
    let id = application_id(&path)?;
    context.services().applications.stop(&context.visitor, id).await?;
    Ok(see_other(format!("{PREFIX}/applications/{id}?done=stopped")))
}

async fn delete(
    Submitted { context, form }: Submitted,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let id = application_id(&path)?;
    let (detail, _) = context.services().applications.detail(&context.visitor, id).await?;
    let name = detail.summary.application.blueprint.name;
    if form.text("name").trim() != name.as_str() {
        let message = format!("type the name `{name}` to delete this application; nothing was deleted");
        return Err(PageError::new(StatusCode::BAD_REQUEST, message));
    }
    context.services().applications.delete(&context.visitor, id).await?;
    Ok(see_other(format!("{PREFIX}/applications?done=deleted")))
}
