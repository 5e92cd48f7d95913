//! Invitations to organizations.

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::json;

use crate::{
    failure::{Failure, Kind, Outcome},
    prompt,
    session::Session,
    table::Table,
    when::ago,
};

const ROUTE: &str = "/user/invitations";

/// Invitations of the caller. Without a verb they are listed.
#[derive(Debug, Args)]
pub struct Invitations {
    #[command(subcommand)]
    pub(crate) verb: Option<InvitationsVerb>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum InvitationsVerb {
    /// List your invitations
    List,
    /// Accept an invitation; its token is asked for, or read from standard input
    Accept {
        /// Name of the organization, or id of the invitation
        invitation: String,
    },
    /// Decline an invitation
    Decline {
        /// Name of the organization, or id of the invitation
        invitation: String,
    },
}

#[derive(Deserialize)]
struct Invitation {
    id: String,
    organization: Organization,
    role: String,
    invited_by: String,
    needs_token: bool,
    created_at: String,
}

#[derive(Deserialize)]
struct Organization {
    name: String,
}

pub(crate) fn run(verb: Option<InvitationsVerb>, session: &Session<'_>) -> Outcome {
    match verb {
        None | Some(InvitationsVerb::List) => list(session),
        Some(InvitationsVerb::Accept { invitation }) => accept(&invitation, session),
        Some(InvitationsVerb::Decline { invitation }) => {
            let Invitation { id, organization, .. } = find(&invitation, session)?;
            session.server.post(&format!("{ROUTE}/{id}/decline")).body(json!({})).send()?;
            session.screen.remark(&format!("Declined the invitation to {}", organization.name));
            Ok(())
        }
    }
}

fn list(session: &Session<'_>) -> Outcome {
    let data = session.server.get(ROUTE).send()?;
    session.screen.show(data, |invitations: Vec<Invitation>| {
        let mut table =
            Table::new(&["ORGANIZATION", "ROLE", "INVITED BY", "TOKEN", "CREATED"], "No invitations");
        for one in &invitations {
            let token = if one.needs_token { "needed" } else { "not needed" };
            table.row([
                one.organization.name.as_str().into(),
                one.role.as_str().into(),
                one.invited_by.as_str().into(),
                token.into(),
                ago(&one.created_at).into(),
            ]);
        }
        session.screen.table(&table)
    })
}

fn accept(which: &str, session: &Session<'_>) -> Outcome {
    let Invitation { id, organization, role, needs_token, .. } = find(which, session)?;
    let token = if needs_token { Some(prompt::secret("Invitation token")?) } else { None };
    let data = session.server.post(&format!("{ROUTE}/{id}/accept")).body(json!({"token": token})).send()?;
    if session.screen.is_for_programs() {
        return session.screen.json(&data);
    }
    session.screen.remark(&format!("You are now {role} of {}", organization.name));
    Ok(())
}

/// Returns the invitation with an id, or of the organization with a name.
fn find(which: &str, session: &Session<'_>) -> Outcome<Invitation> {
    let invitations: Vec<Invitation> = session.server.get(ROUTE).receive()?;
    let found = invitations
        .into_iter()
        .find(|one| one.id == which || one.organization.name.eq_ignore_ascii_case(which));
    found.ok_or_else(|| {
        Failure::new(Kind::Missing, format!("there is no invitation `{which}`"))
            .hint("`launchway invitations list` lists your invitations")
    })
}
