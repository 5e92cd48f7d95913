//! The pages of deployments.

use actix_web::{
    HttpResponse,
    web::{Path, ServiceConfig, get, post},
};
use askama::Template;
use launchway_application::Error;
use launchway_domain::{
    applications::{Application, BuildPack},
    deployments::{Deployment, DeploymentKind, DeploymentState, ImageName},
    ids::DeploymentId,
};

use crate::{
    applications::{Head, State},
    context::PageContext,
    error::PageError,
    form::Submitted,
    format::{Time, duration},
    frame::{Frame, Section, page, see_other},
    live::{freshness, live_page},
    logs::LogRow,
    router::PREFIX,
};

pub(crate) fn routes(config: &mut ServiceConfig) {
    config
        .route("/deployments/{id}", get().to(deployment))
        .route("/deployments/{id}/rollback", get().to(rollback_page))
        .route("/deployments/{id}/rollback", post().to(roll_back))
        .route("/deployments/{id}/cancel", post().to(cancel));
}

/// Parses an id of a path. A malformed one is as unknown as any other.
pub(crate) fn deployment_id(path: &Path<String>) -> Result<DeploymentId, Error> {
    path.parse().map_err(|_invalid| Error::NotFound("the deployment"))
}

/// A deployment in a list.
#[derive(Clone)]
pub(crate) struct DeploymentRow {
    pub(crate) id: String,
    pub(crate) state: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) is_rollback: bool,
    pub(crate) commit: String,
    pub(crate) by: String,
    pub(crate) at: String,
    pub(crate) machine_at: String,
    pub(crate) duration: String,
    pub(crate) can_roll_back: bool,
}

impl DeploymentRow {
    pub(crate) fn new(deployment: &Deployment, live: Option<DeploymentId>) -> Self {
        let state = deployment.status.state;
        let is_live = live == Some(deployment.id);
        let at = Time(deployment.created_at);
        Self {
            id: deployment.id.to_string(),
            state: if is_live { "live" } else { state.as_str() },
            kind: kind(state, is_live),
            is_rollback: deployment.kind != DeploymentKind::Fresh,
            commit: deployment.commit.as_ref().map(|commit| commit.short().to_owned()).unwrap_or_default(),
            by: deployment.requested_by.clone(),
            at: at.to_string(),
            machine_at: at.machine(),
            duration: length(deployment),
            can_roll_back: state == DeploymentState::Deployed && !is_live,
        }
    }
}

/// Returns the kind that the colour of a state shows.
fn kind(state: DeploymentState, is_live: bool) -> &'static str {
    match state {
        DeploymentState::Deployed if is_live => "good",
        DeploymentState::Deployed | DeploymentState::Cancelled => "off",
        DeploymentState::Failed => "bad",
        _ => "busy",
    }
}

/// Returns the time that a deployment took.
fn length(deployment: &Deployment) -> String {
    match deployment.status.state.is_final() {
        true => duration(deployment.status.updated_at - deployment.created_at),
        false => "in progress".to_owned(),
    }
}

pub(crate) fn rows(deployments: &[Deployment], live: Option<DeploymentId>) -> Vec<DeploymentRow> {
    deployments.iter().map(|deployment| DeploymentRow::new(deployment, live)).collect()
}

/// A step of the timeline.
pub(crate) struct Step {
    pub(crate) title: String,
    /// `done`, `now`, `failed`, `cancelled` or `open`.
    pub(crate) mark: &'static str,
    pub(crate) about: String,
}

/// Returns the steps of a deployment. Those of its build are left out if it builds nothing.
fn steps(deployment: &Deployment, application: &Application) -> Vec<Step> {
    use DeploymentState::{Building, Cancelled, Cloning, Deployed, Deploying, Failed, Queued};
    let pack = application.blueprint.build_pack;
    let builds = deployment.kind == DeploymentKind::Fresh && pack != BuildPack::Image;
    let is_site = pack == BuildPack::Static;
    // A deployment that ended early keeps no record of its last step, but of the result of each.
    let reached = match deployment.status.state {
        Queued => 0,
        Cloning => 1,
        Building => 2,
        Deploying => 3,
        Deployed => 5,
        Failed | Cancelled if !builds => 3,
        Failed | Cancelled if deployment.commit.is_none() => 1,
        Failed | Cancelled if !is_site && deployment.image.is_none() => 2,
        Failed | Cancelled => 3,
    };
    let commit = deployment.commit.as_ref().map(|commit| match &deployment.source_digest {
        Some(digest) => format!("upload {}", digest.as_str()),
        None => format!("commit {}", commit.short()),
    });
    // The name of an image that was built here consists of ids, which say nothing.
    let image = deployment.image.as_ref().map(ImageName::as_str);
    let image = image.filter(|name| !name.starts_with("launchway/")).map(str::to_owned);
    let all = [
        ("Requested", format!("by {}", deployment.requested_by)),
        ("Source", commit.unwrap_or_default()),
        (if is_site { "Publish" } else { "Build" }, image.unwrap_or_default()),
        ("Start and check", String::new()),
        ("Live", String::new()),
    ];
    let mark = |number: usize| match (number.cmp(&reached), deployment.status.state) {
        (std::cmp::Ordering::Less, _) => "done",
        (std::cmp::Ordering::Equal, Failed) => "failed",
        (std::cmp::Ordering::Equal, Cancelled) => "cancelled",
        (std::cmp::Ordering::Equal, _) => "now",
        (std::cmp::Ordering::Greater, _) => "open",
    };
    let numbered = all.into_iter().enumerate().filter(|(number, _)| builds || !(1..=2).contains(number));
    numbered
        .map(|(number, (title, about))| Step { title: title.to_owned(), mark: mark(number), about })
        .collect()
}

#[derive(Template)]
#[template(path = "deployment.html")]
struct DeploymentPage {
    frame: Frame,
    head: Head,
    row: DeploymentRow,
    state: State,
    steps: Vec<Step>,
    lines: Vec<LogRow>,
    is_over: bool,
    breakdown: Option<String>,
    container: String,
}

async fn deployment(context: PageContext, path: Path<String>) -> Result<HttpResponse, PageError> {
    let (id, freshness) = (deployment_id(&path)?, freshness(&context));
    let shown = context.services().snapshots.deployment(&context.visitor, id, freshness).await?;
    let (deployment, application) = (&shown.value.deployment, &shown.value.application.application);
    live_page(&context, &[shown.version], || {
        let row = DeploymentRow::new(deployment, application.live);
        let title = format!("Deployment of {}", application.blueprint.name);
        page(&DeploymentPage {
            frame: context.frame(Section::Applications, title),
            head: Head::new(&context, application, "deployments"),
            state: State { text: row.state, kind: row.kind },
            row,
            steps: steps(deployment, application),
            is_over: deployment.status.state.is_final(),
            breakdown: deployment.breakdown.clone(),
            container: deployment.container.as_ref().map(|one| one.name.clone()).unwrap_or_default(),
            lines: shown.value.logs.iter().cloned().map(LogRow::from).collect(),
        })
    })
}

#[derive(Template)]
#[template(path = "rollback.html")]
struct RollbackPage {
    frame: Frame,
    head: Head,
    target: DeploymentRow,
    live: Option<DeploymentRow>,
}

async fn rollback_page(context: PageContext, path: Path<String>) -> Result<HttpResponse, PageError> {
    let services = context.services();
    let detail = services.deployments.detail(&context.visitor, deployment_id(&path)?).await?;
    let application = &detail.application.application;
    let live = match application.live {
        Some(id) => Some(services.deployments.detail(&context.visitor, id).await?),
        None => None,
    };
    page(&RollbackPage {
        frame: context.frame(Section::Applications, "Roll back"),
        head: Head::new(&context, application, "deployments"),
        target: DeploymentRow::new(&detail.deployment, application.live),
        live: live.map(|live| DeploymentRow::new(&live.deployment, application.live)),
    })
}

async fn roll_back(
    Submitted { context, .. }: Submitted,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let to = deployment_id(&path)?;
    let detail = context.services().deployments.roll_back(&context.visitor, to, None).await?;
    Ok(see_other(format!("{PREFIX}/deployments/{}?done=rolled-back", detail.deployment.id)))
}

async fn cancel(Submitted { context, .. }: Submitted, path: Path<String>) -> Result<HttpResponse, PageError> {
    let id = deployment_id(&path)?;
    context.services().deployments.cancel(&context.visitor, id).await?;
    Ok(see_other(format!("{PREFIX}/deployments/{id}?done=cancelled")))
}
