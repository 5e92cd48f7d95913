//! Runs of an extension.

use serde::Deserialize;
use serde_json::json;

use crate::{
    failure::Outcome,
    names,
    records::Pagination,
    screen::tone_of,
    session::Session,
    table::{Cell, Table},
    when::ago,
};

#[derive(Deserialize)]
struct Executions {
    executions: Vec<Execution>,
    pagination: Pagination,
}

#[derive(Deserialize)]
pub(super) struct Execution {
    pub(super) id: String,
    pub(super) status: String,
    pub(super) exit_code: i32,
    pub(super) error_message: String,
    created_at: String,
}

impl Execution {
    pub(super) fn is_final(&self) -> bool {
        matches!(self.status.as_str(), "completed" | "failed" | "cancelled")
    }
}

pub(super) fn list(id: &str, page: u32, session: &Session<'_>) -> Outcome {
    let path = format!("/extensions/by-extension-id/{}/executions", names::id(id)?);
    let data = session.server.get(&path).with("page", page).with("page_size", 100).send()?;
    session.screen.show(data, |listed: Executions| {
        let mut table = Table::new(&["ID", "STATE", "BEGUN", "REASON"], "No runs");
        for one in &listed.executions {
            table.row([
                one.id.as_str().into(),
                Cell::toned(&one.status, tone_of(&one.status)),
                ago(&one.created_at).into(),
                one.error_message.as_str().into(),
            ]);
        }
        session.screen.table(&table) + &listed.pagination.more(page)
    })
}

pub(super) fn cancel(id: &str, session: &Session<'_>) -> Outcome {
    let path = format!("/extensions/execution/{}/cancel", names::id(id)?);
    let data = session.server.post(&path).body(json!({})).send()?;
    if session.screen.is_for_programs() {
        return session.screen.json(&data);
    }
    session.screen.remark("Cancelling the run and reverting its steps");
    Ok(())
}
