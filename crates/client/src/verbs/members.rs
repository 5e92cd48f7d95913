//! The members of an organization and their roles.

use clap::{Subcommand, ValueEnum};
use serde::Deserialize;
use serde_json::json;

use crate::{
    cli::value_name,
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
    /// All permissions
    Admin,
    /// Read everything, and deploy applications
    Member,
    /// Read everything except secrets and the audit log
    Viewer,
}

#[derive(Debug, Subcommand)]
pub enum MembersVerb {
    /// List the members of the organization
    List,
    /// Add a user, or invite one who has an account; prints the token that the user needs, if any
    Add {
        /// E-mail address of the user
        email: String,
        /// Role in the organization
        #[arg(long, value_enum)]
        role: Role,
        /// Name of a user without an account
        #[arg(long)]
        username: Option<String>,
    },
    /// Change the role of a member
    Role {
        /// E-mail address, name or id of the member
        who: String,
        /// Role in the organization
        #[arg(value_enum)]
        role: Role,
    },
    /// Remove a member or yourself, or withdraw an invitation
    Remove {
        /// E-mail address, name or id of the member
        who: String,
        /// Do not ask for confirmation
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
            let body = json!({"user_id": id, "role": value_name(&role)});
            let data = session.server.patch(ROUTE).body(body).send()?;
            if session.screen.is_for_programs() {
                return session.screen.json(&data);
            }
            session.screen.remark(&format!("{} is now {}", person.username, value_name(&role)));
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
            session.screen.remark(&format!("Removed {username} from the organization"));
            Ok(())
        }
    }
}

fn list(session: &Session<'_>) -> Outcome {
    let data = session.server.get(ROUTE).send()?;
    session.screen.show(data, |members: Vec<Member>| {
        let mut table = Table::new(&["NAME", "E-MAIL", "ROLE", "SINCE"], "No members");
        for Member { user, roles, created_at, .. } in &members {
            let (username, email) = user.as_ref().map_or(("", ""), |user| (&user.username, &user.email));
            table.row([username.into(), email.into(), roles.join(", ").into(), ago(created_at).into()]);
        }
        session.screen.table(&table)
    })
}

fn add(email: &str, role: Role, username: Option<String>, session: &Session<'_>) -> Outcome {
    let body = json!({"email": email, "role": value_name(&role), "username": username});
    let data = session.server.post(ROUTE).body(body).send()?;
    let url = session.server.url();
    session.screen.show(data, |added: Added| match added.setup_token {
        Some(token) if added.status == "invited" => {
            session.screen.remark(&format!(
                "Invited {email} as {}. The e-mail address is not verified, so the user needs this token for\n\
                 `launchway invitations accept`. It works once, within 7 days, and is not shown again:",
                value_name(&role)
            ));
            format!("{token}\n")
        }
        Some(token) => {
            session.screen.remark(&format!(
                "Created an account for {email}. The user needs this token for `launchway join {url}`.\n\
                 It works once, within 24 hours, and is not shown again:"
            ));
            format!("{token}\n")
        }
        None => {
            session.screen.remark(&format!("Invited {email} as {}", value_name(&role)));
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
        (Some(_), Some(_)) => Err(Failure::new(Kind::Usage, format!("several members are named `{who}`"))
            .hint("use the e-mail address")),
        (None, _) => Err(Failure::new(Kind::Missing, format!("there is no member named `{who}`"))
            .hint("`launchway members list` lists the members")),
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
    session.screen.remark(&format!("Withdrew the invitation of {username}"));
    Ok(())
}
