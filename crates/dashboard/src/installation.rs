//! The installation, for its administrators.

mod status;

use actix_web::{
    HttpResponse,
    web::{ServiceConfig, get, post},
};
use askama::Template;
use launchway_application::Error;
use launchway_domain::{error_chain::ErrorChain, nodes::Node};

use self::status::{CheckRow, Disk, Queue, summary};
use crate::{
    applications::State,
    context::PageContext,
    error::PageError,
    form::Submitted,
    format::Time,
    frame::{Frame, Section, page, see_other},
    router::PREFIX,
};

pub(crate) fn routes(config: &mut ServiceConfig) {
    config.route("/installation", get().to(installation_page)).route("/installation/check", post().to(check));
}

struct ServerRow {
    hostname: String,
    address: String,
    version: String,
    is_alive: bool,
    is_leader: bool,
    is_own: bool,
    routes_behind: i64,
    started: Time,
    seen: Time,
}

struct NodeRow {
    hostname: String,
    address: String,
    role: &'static str,
    state: &'static str,
    kind: &'static str,
    takes_applications: bool,
}

impl From<Node> for NodeRow {
    fn from(node: Node) -> Self {
        let takes_applications = node.takes_containers();
        Self {
            hostname: node.hostname,
            address: node.address.map(|address| address.to_string()).unwrap_or_default(),
            role: node.role.as_str(),
            state: if node.is_ready { node.availability.as_str() } else { "down" },
            kind: match (node.is_ready, takes_applications) {
                (false, _) => "bad",
                (true, true) => "good",
                (true, false) => "off",
            },
            takes_applications,
        }
    }
}

#[derive(Template)]
#[template(path = "installation.html")]
struct InstallationPage {
    frame: Frame,
    version: &'static str,
    engine: Option<String>,
    clock_problem: Option<String>,
    queue: Queue,
    disk: Disk,
    /// The time of the checks; `None` while the first ones run.
    checked: Option<Time>,
    checks: Vec<CheckRow>,
    summary: Option<State>,
    servers: Vec<ServerRow>,
    nodes: Vec<NodeRow>,
    nodes_problem: Option<String>,
}

async fn installation_page(context: PageContext) -> Result<HttpResponse, PageError> {
    let services = context.services();
    let cluster = services.replica.show(&context.visitor).await?;
    let epoch = cluster.routes_epoch;
    let servers = cluster.replicas.into_iter().map(|status| ServerRow {
        is_own: Some(status.replica.id) == cluster.own,
        hostname: status.replica.hostname,
        address: status.replica.address,
        version: status.replica.version,
        is_alive: status.is_alive,
        is_leader: status.is_leader,
        routes_behind: (epoch - status.routes_seen).max(0),
        started: Time(status.replica.started_at),
        seen: Time(status.seen_at),
    });
    let (nodes, nodes_problem) = match services.nodes.list(&context.visitor).await {
        Ok(nodes) => (nodes, None),
        // The rest of the page is of use all the same.
        Err(Error::Unavailable(cause)) => (Vec::new(), Some(ErrorChain(&*cause).to_string())),
        Err(error) => return Err(error.into()),
    };
    let status = services.installation.status(&context.visitor).await?;
    let report = services.installation.report(&context.visitor).await?;
    let checks = report.iter().flat_map(|dated| dated.report.checks());
    page(&InstallationPage {
        frame: context.frame(Section::Installation, "Installation"),
        version: env!("CARGO_PKG_VERSION"),
        engine: services.engine.outage().map(|outage| outage.reason),
        clock_problem: services.replica.clock_problem(),
        queue: Queue::new(&status),
        disk: Disk::new(&status),
        checked: report.as_ref().map(|dated| Time(dated.at)),
        checks: checks.map(CheckRow::from).collect(),
        summary: report.as_ref().map(|dated| summary(&dated.report)),
        servers: servers.collect(),
        nodes: nodes.into_iter().map(NodeRow::from).collect(),
        nodes_problem,
    })
}

async fn check(Submitted { context, .. }: Submitted) -> Result<HttpResponse, PageError> {
    context.services().installation.examine(&context.visitor).await?;
    Ok(see_other(format!("{PREFIX}/installation?done=checked#checks")))
}
