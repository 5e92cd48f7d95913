//! Organizations.

use clap::Subcommand;
use serde::Deserialize;
use serde_json::json;

use crate::{
    contexts::Contexts,
    failure::{Failure, Kind, Outcome},
    names, prompt,
    records::Organization,
    screen::{Tone, visible},
    session::Session,
    table::{Cell, Table},
};

/// The verbs of an organization.
#[derive(Debug, Subcommand)]
pub enum OrgVerb {
    /// List your organizations
    List,
    /// Select the default organization
    Use {
        /// Name or id of the organization
        name: String,
    },
    /// Show an organization; by default the current one
    Show {
        /// Name or id of the organization
        name: Option<String>,
    },
    /// Show the usage and limit of each quota of an organization; by default the current one
    Usage {
        /// Name or id of the organization
        name: Option<String>,
    },
    /// Create an organization, with you as its admin
    Create {
        /// Name, unique on the server
        name: String,
        /// Description of the organization
        #[arg(long)]
        description: Option<String>,
    },
    /// Rename the current organization
    Rename {
        /// New name
        name: String,
        /// Description of the organization
        #[arg(long)]
        description: Option<String>,
    },
    /// Delete an organization without applications
    Delete {
        /// Name or id of the organization
        name: String,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
}

impl OrgVerb {
    /// Returns whether the command does not depend on the remembered organization.
    pub(crate) fn is_of_oneself(&self) -> bool {
        matches!(self, Self::List | Self::Use { .. } | Self::Delete { .. })
    }
}

#[derive(Deserialize)]
struct Place {
    roles: Vec<String>,
    organization: Option<Organization>,
}

#[derive(Deserialize)]
struct Shown {
    id: String,
    name: String,
    description: String,
    users: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    username: String,
}

#[derive(Deserialize)]
struct Usage {
    quotas: Vec<Quota>,
}

#[derive(Deserialize)]
struct Quota {
    name: String,
    used: u64,
    limit: u64,
    unit: String,
}

pub(crate) fn run(verb: OrgVerb, session: &Session<'_>) -> Outcome {
    match verb {
        OrgVerb::List => list(session),
        OrgVerb::Use { name } => choose(&name, session),
        OrgVerb::Show { name } => show(name.as_deref(), session),
        OrgVerb::Usage { name } => usage(name.as_deref(), session),
        OrgVerb::Create { name, description } => {
            let body = json!({"name": name, "description": description});
            let data = session.server.post("/organizations").body(body).send()?;
            session.screen.remark(&format!("hint: `launchway org use {name:?}` selects it"));
            session.screen.show(data, |made: Organization| format!("{}\n", made.id))
        }
        OrgVerb::Rename { name, description } => {
            let body = json!({"name": name, "description": description});
            let data = session.server.put("/organizations").body(body).send()?;
            session.screen.remark(&format!("Renamed the organization to {name}"));
            session.screen.show(data, |made: Organization| format!("{}\n", made.id))
        }
        OrgVerb::Delete { name, yes } => delete(&name, yes, session),
    }
}

fn list(session: &Session<'_>) -> Outcome {
    let data = session.server.get("/user/organizations").send()?;
    let is_meant = |one: &Organization, is_oldest: bool| match &session.wanted {
        Some(name) => one.id == *name || one.name.eq_ignore_ascii_case(name),
        // The server uses the oldest membership by default.
        None => is_oldest,
    };
    session.screen.show(data, |places: Vec<Place>| {
        let mut table = Table::new(&["", "NAME", "ROLE", "ID"], "No organizations");
        let places = places.iter().filter_map(|place| Some((place, place.organization.as_ref()?)));
        for (number, (place, one)) in places.enumerate() {
            let mark = if is_meant(one, number == 0) { Cell::toned("*", Tone::Good) } else { "".into() };
            let role = place.roles.join(", ");
            table.row([mark, one.name.as_str().into(), role.into(), one.id.as_str().into()]);
        }
        session.screen.table(&table)
    })
}

/// Remembers an organization by its id, which does not change when it is renamed.
fn choose(name: &str, session: &Session<'_>) -> Outcome {
    let Some(context) = &session.context else {
        return Err(Failure::new(
            Kind::Usage,
            "cannot select an organization: LAUNCHWAY_URL is set, and no context is used",
        )
        .hint("set LAUNCHWAY_ORGANIZATION instead; an API token works only in its own organization"));
    };
    let id = names::organization(&session.server, name)?;
    let mut contexts = Contexts::load()?;
    if let Some(context) = contexts.contexts.get_mut(context) {
        context.organization = Some(id);
    }
    contexts.save()?;
    session.screen.remark(&format!("Switched to organization {name}"));
    Ok(())
}

fn show(name: Option<&str>, session: &Session<'_>) -> Outcome {
    let id = name.map(|name| names::organization(&session.server, name)).transpose()?;
    let data = session.server.get("/organizations").with_some("id", id).send()?;
    session.screen.show(data, |one: Shown| {
        let members: Vec<_> = one.users.iter().map(|member| member.username.as_str()).collect();
        let text = match one.description.as_str() {
            "" => format!("{}\nid: {}\nmembers: {}\n", one.name, one.id, members.join(", ")),
            about => format!("{}: {about}\nid: {}\nmembers: {}\n", one.name, one.id, members.join(", ")),
        };
        visible(&text)
    })
}

fn usage(name: Option<&str>, session: &Session<'_>) -> Outcome {
    let id = name.map(|name| names::organization(&session.server, name)).transpose()?;
    let data = session.server.get("/organizations/usage").with_some("id", id).send()?;
    session.screen.show(data, |Usage { quotas }: Usage| {
        let mut table = Table::new(&["QUOTA", "USED", "LIMIT", "UNIT"], "There are no quotas");
        for Quota { name, used, limit, unit } in quotas {
            let is_reached = limit > 0 && used >= limit;
            let used = amount(used, &unit);
            let used = if is_reached { Cell::toned(used, Tone::Bad) } else { used.into() };
            let limit = if limit == 0 { "none".to_owned() } else { amount(limit, &unit) };
            table.row([name.into(), used, limit.into(), unit.into()]);
        }
        session.screen.table(&table)
    })
}

/// Returns a number of things as it is, and a number of bytes in MiB or, from 1 GiB on, in GiB.
fn amount(number: u64, unit: &str) -> String {
    const MEBIBYTE: u64 = 1 << 20;
    const GIBIBYTE: u64 = 1 << 30;
    let (scale, name) = match (unit, number) {
        ("bytes", GIBIBYTE..) => (GIBIBYTE, "GiB"),
        ("bytes", _) => (MEBIBYTE, "MiB"),
        _ => return number.to_string(),
    };
    // A byte more than nothing is never shown as nothing.
    let tenths = (u128::from(number) * 10).div_ceil(u128::from(scale));
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

fn delete(name: &str, yes: bool, session: &Session<'_>) -> Outcome {
    let id = names::organization(&session.server, name)?;
    let question = format!("Delete the organization {name} with its memberships and API tokens?");
    if !prompt::agreed(session.screen, &question, yes)? {
        return Ok(());
    }
    session.server.delete("/organizations").with("id", &id).send()?;
    let mut contexts = Contexts::load()?;
    for context in contexts.contexts.values_mut() {
        let is_meant = |known: &str| known == id || known.eq_ignore_ascii_case(name);
        if context.url == session.server.url() && context.organization.as_deref().is_some_and(is_meant) {
            context.organization = None;
        }
    }
    contexts.save()?;
    session.screen.remark(&format!("Deleted {name}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_mib_and_gib() {
        for (number, shown) in [
            (0, "0.0 MiB"),
            (1, "0.1 MiB"),
            (64 << 20, "64.0 MiB"),
            (1 << 30, "1.0 GiB"),
            (3 << 29, "1.5 GiB"),
        ] {
            assert_eq!(amount(number, "bytes"), shown);
        }
        assert_eq!((amount(u64::MAX, "count"), amount(7, "crates")), (u64::MAX.to_string(), "7".to_owned()));
    }
}
