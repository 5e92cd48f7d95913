//! The members of an organization and their roles.

use clap::{Subcommand, ValueEnum};
use serde::Deserialize;
use serde_json::json;

use crate::{
    failure::{Failure, Kind, Outcome},
    prompt,
    session::Session,
    table::Table,
    when::ago,
};

const ROUTE: &str = "/organizations/users";

/// The role of a member.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Role {
    /// Everything
    Admin,
    /// Deploy, and see everything
    Member,
    /// See everything but secrets and the audit trail
    Viewer,
}

#[derive(Debug, Subcommand)]
pub enum MembersVerb {
    /// List the members of the organization
    List,
    /// Add somebody, or invite them if they have an account; prints the token that they need, if they do
    Add {
        /// Their e-mail address
        email: String,
        /// Role in the organization
        #[arg(long, value_enum)]
        role: Role,
        /// Their name, if they have no account yet
        #[arg(long)]
        username: Option<String>,
    },
    /// Let somebody do more, or less
    Role {
        /// Their e-mail address, name or id
        who: String,
        /// Role in the organization
        #[arg(value_enum)]
        role: Role,
    },
    /// Remove somebody from the organization, withdraw their invitation, or leave
    Remove {
        /// Their e-mail address, name or id
        who: String,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Deserialize)]
struct Member {
    user_id: String,
    user: Option<Person>,
    roles: Vec<String>,
    created_at: String,
}

#[derive(Clone, Deserialize)]
struct Person {
    username: String,
    email: String,
}

#[derive(Deserialize)]
struct Invited {
    user_id: String,
    user: Person,
}

#[derive(Deserialize)]
struct Added {
    setup_token: Option<String>,
    #[serde(default)]
    status: String,
}

pub(crate) fn run(verb: MembersVerb, session: &Session<'_>) -> Outcome {
    match verb {
        MembersVerb::List => list(session),
        MembersVerb::Add { email, role, username } => add(&email, role, username, session),
        MembersVerb::Role { who, role } => {
            let (id, person) = find(&who, session)?;
            let body = json!({"user_id": id, "role": name(role)});
            let data = session.server.patch(ROUTE).body(body).send()?;
            if session.screen.is_for_programs() {
                return session.screen.json(&data);
            }
            session.screen.remark(&format!("{} is {} now", person.username, name(role)));
            Ok(())
        }
        MembersVerb::Remove { who, yes } => {
            let (id, Person { username, email }) = match find(&who, session) {
                // A user who may not see invitations gets the error that there is no such member.
                Err(failure) => match find_invited(&who, session) {
                    Ok(Some(invited)) => return withdraw(invited, yes, session),
                    _ => return Err(failure),
                },
                found => found?,
            };
            let question = format!("Remove {username} <{email}> from the organization?");
            if !prompt::agreed(session.screen, &question, yes)? {
                return Ok(());
            }
            session.server.delete(ROUTE).body(json!({"user_id": id})).send()?;
            session.screen.remark(&format!("{username} is no member any more"));
            Ok(())
        }
    }
}

fn list(session: &Session<'_>) -> Outcome {
    let data = session.server.get(ROUTE).send()?;
    session.screen.show(data, |members: Vec<Member>| {
        let mut table = Table::new(&["NAME", "E-MAIL", "ROLE", "SINCE"], "Nobody");
        for Member { user, roles, created_at, .. } in &members {
            let (username, email) = user.as_ref().map_or(("", ""), |user| (&user.username, &user.email));
            table.row([username.into(), email.into(), roles.join(", ").into(), ago(created_at).into()]);
        }
        session.screen.table(&table)
    })
}

fn add(email: &str, role: Role, username: Option<String>, session: &Session<'_>) -> Outcome {
    let body = json!({"email": email, "role": name(role), "username": username});
    let data = session.server.post(ROUTE).body(body).send()?;
    let url = session.server.url();
    session.screen.show(data, |added: Added| match added.setup_token {
        Some(token) if added.status == "invited" => {
            session.screen.remark(&format!(
                "{email} has an account, whose address is not verified, and is invited as {}. Hand them this token, which\n\
                 works once, within 7 days, for `launchway invitations accept`; it is not shown again:",
                name(role)
            ));
            format!("{token}\n")
        }
        Some(token) => {
            session.screen.remark(&format!(
                "{email} has a new account. Hand them this token, which works once, within 24 hours,\n\
                 for `launchway join {url}`; it is not shown again:"
            ));
            format!("{token}\n")
        }
        None => {
            session.screen.remark(&format!("{email} has an account, and is invited as {}", name(role)));
            String::new()
        }
    })
}

/// Returns a member by their address, name or id.
fn find(who: &str, session: &Session<'_>) -> Outcome<(String, Person)> {
    let members: Vec<Member> = session.server.get(ROUTE).receive()?;
    let members = members.into_iter().filter_map(|member| Some((member.user_id, member.user?)));
    let mut meant = members.filter(|(id, person)| {
        id == who || person.email.eq_ignore_ascii_case(who) || person.username.eq_ignore_ascii_case(who)
    });
    match (meant.next(), meant.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(Failure::new(Kind::Usage, format!("several members are called `{who}`"))
            .hint("name them by their e-mail address")),
        (None, _) => Err(Failure::new(Kind::Missing, format!("no member is called `{who}`"))
            .hint("`launchway members list` shows who is there")),
    }
}

/// Returns an invited user by their address, name or id.
fn find_invited(who: &str, session: &Session<'_>) -> Outcome<Option<(String, Person)>> {
    let invited: Vec<Invited> = session.server.get("/organizations/invitations").receive()?;
    let invited = invited.into_iter().map(|one| (one.user_id, one.user));
    Ok(invited.into_iter().find(|(id, person)| {
        id == who || person.email.eq_ignore_ascii_case(who) || person.username.eq_ignore_ascii_case(who)
    }))
}

fn withdraw((id, person): (String, Person), yes: bool, session: &Session<'_>) -> Outcome {
    let Person { username, email } = person;
    let question = format!("Withdraw the invitation of {username} <{email}>?");
    if !prompt::agreed(session.screen, &question, yes)? {
        return Ok(());
    }
    session.server.delete(ROUTE).body(json!({"user_id": id})).send()?;
    session.screen.remark(&format!("{username} is not invited any more"));
    Ok(())
}

fn name(role: Role) -> &'static str {
    match role {
        Role::Admin => "admin",
        Role::Member => "member",
        Role::Viewer => "viewer",
    }
}
