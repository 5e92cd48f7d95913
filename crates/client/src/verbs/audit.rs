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
    /// Show only entries with this text in their message, actor, resource or metadata
    #[arg(long)]
    search: Option<String>,
    /// Show only entries of this user
    #[arg(long)]
    actor: Option<String>,
    /// Show only entries of this action: create, update, delete or access
    #[arg(long)]
    action: Option<String>,
    /// Show only entries of this type of resource, such as application, deployment, user or token
    #[arg(long)]
    resource: Option<String>,
    /// Show only entries from this time on, such as 2026-01-31T12:00:00Z
    #[arg(long)]
    from: Option<String>,
    /// Show only entries until this time
    #[arg(long)]
    to: Option<String>,
    /// Page number
    #[arg(long, default_value_t = 1)]
    page: u32,
}

#[derive(Deserialize)]
struct AuditPage {
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
    session.screen.show(data, |audit_page: AuditPage| {
        let mut table = Table::new(&["WHEN", "WHO", "DID", "WHAT"], "No entries");
        for one in &audit_page.activities {
            table.row([
                one.timestamp.get(..19).unwrap_or(&one.timestamp).replace('T', " ").into(),
                one.actor.as_str().into(),
                Cell::toned(&one.action, tone_of(&one.action)),
                one.message.as_str().into(),
            ]);
        }
        session.screen.table(&table) + &audit_page.pagination.more(filter.page)
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
