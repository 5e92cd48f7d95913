//! The installation, for its administrators.

use actix_web::{
    HttpRequest, HttpResponse,
    web::{Data, ServiceConfig, get},
};
use askama::Template;

use crate::{
    Dashboard,
    error::PageError,
    format::Time,
    frame::{Frame, Section, page},
    visitor::Visitor,
};

pub(crate) fn routes(config: &mut ServiceConfig) {
    config.route("/installation", get().to(installation_page));
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

#[derive(Template)]
#[template(path = "installation.html")]
struct InstallationPage {
    frame: Frame,
    version: &'static str,
    engine: Option<String>,
    clock_problem: Option<String>,
    servers: Vec<ServerRow>,
}

async fn installation_page(
    request: HttpRequest,
    dashboard: Data<Dashboard>,
    visitor: Visitor,
) -> Result<HttpResponse, PageError> {
    let services = &dashboard.services;
    let cluster = services.replica.show(&visitor).await?;
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
    page(&InstallationPage {
        frame: Frame::new(&request, &visitor, Section::Installation, "Installation"),
        version: env!("CARGO_PKG_VERSION"),
        engine: services.engine.outage().map(|outage| outage.reason),
        clock_problem: services.replica.clock_problem(),
        servers: servers.collect(),
    })
}
