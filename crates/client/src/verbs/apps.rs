//! The list of applications.

use clap::Args;

use crate::{
    failure::Outcome,
    records::Applications,
    screen::tone_of,
    session::Session,
    table::{Cell, Table},
    when::ago,
};

#[derive(Args, Debug)]
pub struct Apps {
    /// Show only applications with this text in their name, repository or domain
    #[arg(long)]
    search: Option<String>,
    /// Show only applications of this environment
    #[arg(long)]
    environment: Option<String>,
    /// Show only applications in this state, such as running or failed
    #[arg(long)]
    status: Option<String>,
    /// Page number
    #[arg(long, default_value_t = 1)]
    page: u32,
}

pub(crate) fn list(apps: Apps, session: &Session<'_>) -> Outcome {
    let data = session
        .server
        .get("/deploy/applications")
        .with_some("search", apps.search)
        .with_some("environment", apps.environment)
        .with_some("status", apps.status)
        .with("page", apps.page)
        .with("page_size", 100)
        .send()?;
    session.screen.show(data, |listed: Applications| {
        let mut table = Table::new(
            &["NAME", "ENVIRONMENT", "STATE", "ADDRESS", "CHANGED"],
            "No applications. `launchway deploy` creates one from the current repository",
        );
        for one in &listed.applications {
            table.row([
                one.name.as_str().into(),
                one.environment.as_str().into(),
                Cell::toned(one.state(), tone_of(one.state())),
                one.domains.first().map_or("", String::as_str).into(),
                ago(&one.updated_at).into(),
            ]);
        }
        session.screen.table(&table) + &listed.pagination.more(apps.page)
    })
}
