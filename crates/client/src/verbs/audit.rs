//! The audit log of an organization.

use clap::Args;
use serde::Deserialize;

use crate::{
    failure::Outcome,
    records::Pagination,
    screen::Tone,
    session::Session,
    table::{Cell, Table},
};

/// The filter of audit log entries.
#[derive(Args, Debug)]
pub struct AuditFilter {
    /// Only entries with this text in what happened, by whom, to what, or around it
    #[arg(long)]
    search: Option<String>,
    /// Only what this user did
    #[arg(long)]
    actor: Option<String>,
    /// Only create, update, delete or access
    #[arg(long)]
    action: Option<String>,
    /// Only what happened to such a thing: application, deployment, user, token and so on
    #[arg(long)]
    resource: Option<String>,
    /// Only from this moment on, such as 2026-01-31T12:00:00Z
    #[arg(long)]
    from: Option<String>,
    /// Only until this moment
    #[arg(long)]
    to: Option<String>,
    /// Number of the page
    #[arg(long, default_value_t = 1)]
    page: u32,
}

#[derive(Deserialize)]
struct Trail {
    activities: Vec<Activity>,
    pagination: Pagination,
}

#[derive(Deserialize)]
struct Activity {
    action: String,
    actor: String,
    message: String,
    timestamp: String,
}

pub(crate) fn list(filter: AuditFilter, session: &Session<'_>) -> Outcome {
    let data = session
        .server
        .get("/audit/logs")
        .with_some("search", filter.search)
        .with_some("actor", filter.actor)
        .with_some("action", filter.action)
        .with_some("resource_type", filter.resource)
        .with_some("from", filter.from)
        .with_some("to", filter.to)
        .with("page", filter.page)
        .with("page_size", 50)
        .send()?;
    session.screen.show(data, |trail: Trail| {
        let mut table = Table::new(&["WHEN", "WHO", "DID", "WHAT"], "There is no such entry");
        for one in &trail.activities {
            table.row([
                one.timestamp.get(..19).unwrap_or(&one.timestamp).replace('T', " ").into(),
                one.actor.as_str().into(),
                Cell::toned(&one.action, tone_of(&one.action)),
                one.message.as_str().into(),
            ]);
        }
        session.screen.table(&table) + &trail.pagination.more(filter.page)
    })
}

fn tone_of(action: &str) -> Tone {
    match action {
        "create" => Tone::Good,
        "delete" => Tone::Bad,
        "update" => Tone::Doubtful,
        _ => Tone::Quiet,
    }
}
