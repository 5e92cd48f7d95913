//! Deployments of an application: list, rollback and cancel.

use clap::Args;
use serde_json::json;

use super::deploy::once;
use crate::{
    failure::{Failure, Kind, Outcome},
    names,
    records::{Application, Deployment, Deployments},
    screen::{Tone, tone_of, visible},
    session::Session,
    table::{Cell, Table},
    watch::{Waiting, watch},
    when::{ago, seconds_between},
};

/// The largest page size of deployments.
const PAGE: u32 = 100;

#[derive(Args, Debug)]
pub struct List {
    /// Application, by name, name@environment or id; by default that of launchway.toml
    app: Option<String>,
    /// Number of deployments on a page, at most 100
    #[arg(long, short = 'n', value_name = "COUNT", default_value_t = 20)]
    lines: u32,
    /// Page number
    #[arg(long, default_value_t = 1)]
    page: u32,
}

#[derive(Args, Debug)]
pub struct Rollback {
    /// Application, or the id of the deployment to roll back to; by default the application of launchway.toml
    which: Option<String>,
    /// Id of the deployment to roll back to; by default the one that was live before
    #[arg(long, value_name = "ID")]
    to: Option<String>,
    #[command(flatten)]
    waiting: Waiting,
}

#[derive(Args, Debug)]
pub struct Cancel {
    /// Application, or the id of a deployment; by default the application of launchway.toml
    which: Option<String>,
}

pub(crate) fn list(list: &List, session: &Session<'_>) -> Outcome {
    let application = names::meant(&session.server, list.app.as_deref())?;
    let data = session
        .server
        .get("/deploy/application/deployments")
        .with("id", &application.id)
        .with("page", list.page)
        .with("page_size", list.lines)
        .send()?;
    session.screen.show(data, |listed: Deployments| {
        let more = if listed.pagination.has_next {
            format!("{} in total; --page {} shows more\n", listed.pagination.total_count, list.page + 1)
        } else {
            String::new()
        };
        session.screen.table(&table(&listed.deployments)) + &more
    })
}

/// Formats deployments, newest first.
pub(crate) fn table(deployments: &[Deployment]) -> Table {
    let mut table = Table::new(&["DEPLOYMENT", "STATE", "SOURCE", "TOOK", "WHEN"], "No deployments");
    for one in deployments {
        let took = if one.is_final() { seconds_between(&one.created_at, one.since()) } else { String::new() };
        table.row([
            one.id.as_str().into(),
            Cell::toned(one.state(), tone_of(one.state())),
            one.source().into(),
            Cell::toned(took, Tone::Quiet),
            ago(&one.created_at).into(),
        ]);
    }
    table
}

/// Rolls back to an earlier deployment, and shows the progress.
pub(crate) fn roll_back(rollback: &Rollback, session: &Session<'_>) -> Outcome {
    let (application, to) = match (&rollback.to, rollback.which.as_deref()) {
        (Some(to), None) => of_deployment(to, session)?,
        (Some(to), Some(name)) => {
            let (application, to) = of_deployment(to, session)?;
            let named = names::application(&session.server, name)?;
            if named.id != application.id {
                return Err(Failure::new(Kind::Usage, format!("{to} is not a deployment of {name}"))
                    .hint(format!("`launchway deployments {name}` lists them")));
            }
            (application, to)
        }
        (None, Some(id)) if names::is_id(id) => match names::application(&session.server, id) {
            Ok(application) => before(application, session)?,
            Err(failure) if failure.kind == Kind::Missing => of_deployment(id, session)?,
            Err(failure) => return Err(failure),
        },
        (None, name) => before(names::meant(&session.server, name)?, session)?,
    };
    session.screen.remark(&format!("Rolling back {} to deployment {to}", visible(&application.name)));
    let body = json!({"id": to});
    let deployment =
        once(|key| session.server.post("/deploy/application/rollback").body(body.clone()).once(key))?;
    watch(session, &application, deployment, rollback.waiting)
}

/// Returns the deployment that was live before the current one.
fn before(application: Application, session: &Session<'_>) -> Outcome<(Application, String)> {
    let mut was_live = Vec::new();
    for page in 1.. {
        let listed = page_of(&application, page, session)?;
        was_live.extend(listed.deployments.into_iter().filter(|one| one.state() == "deployed"));
        if was_live.len() > 1 || !listed.pagination.has_next {
            break;
        }
    }
    match was_live.into_iter().nth(1) {
        Some(one) => Ok((application, one.id)),
        None => {
            let sentence = format!("{} has no previous version to roll back to", application.name);
            Err(Failure::new(Kind::Conflict, sentence)
                .hint(format!("`launchway deployments {}` lists its deployments", application.name)))
        }
    }
}

/// Cancels a deployment that has not finished.
pub(crate) fn cancel(cancel: &Cancel, session: &Session<'_>) -> Outcome {
    let application = match cancel.which.as_deref() {
        Some(id) if names::is_id(id) => match names::application(&session.server, id) {
            Ok(application) => application,
            // Then it is the id of a deployment.
            Err(failure) if failure.kind == Kind::Missing => return cancel_one(id, session),
            Err(failure) => return Err(failure),
        },
        name => names::meant(&session.server, name)?,
    };
    let newest = page_of(&application, 1, session)?;
    match newest.deployments.into_iter().find(|one| !one.is_final()) {
        Some(one) => cancel_one(&one.id, session),
        None => {
            let sentence = format!("no deployment of {} is running", application.name);
            Err(Failure::new(Kind::Conflict, sentence)
                .hint(format!("`launchway deployments {}` lists its deployments", application.name)))
        }
    }
}

fn cancel_one(id: &str, session: &Session<'_>) -> Outcome {
    let request = session.server.post("/deploy/application/cancel-deployment").body(json!({"id": id}));
    let data = request.send()?;
    session.screen.show(data, |one: Deployment| match one.state() {
        "cancelled" => format!("Cancelled deployment {id}\n"),
        _ => format!("Cancelling deployment {id}\n"),
    })
}

fn page_of(application: &Application, page: u32, session: &Session<'_>) -> Outcome<Deployments> {
    let request = session.server.get("/deploy/application/deployments").with("id", &application.id);
    request.with("page", page).with("page_size", PAGE).receive()
}

/// Returns a deployment's application, and its id.
fn of_deployment(id: &str, session: &Session<'_>) -> Outcome<(Application, String)> {
    if !names::is_id(id) {
        return Err(Failure::new(Kind::Usage, format!("`{id}` is not the id of a deployment"))
            .hint("`launchway deployments NAME` lists the ids"));
    }
    let request = session.server.get(&format!("/deploy/application/deployments/{id}"));
    let deployment: Deployment = request.receive()?;
    let application = names::application(&session.server, &deployment.application_id)?;
    Ok((application, deployment.id))
}
