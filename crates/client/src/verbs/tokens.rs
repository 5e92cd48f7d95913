//! API tokens, for programs that act for a user.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use clap::Subcommand;
use serde::Deserialize;
use serde_json::json;

use crate::{
    failure::{Failure, Kind, Outcome},
    prompt,
    session::Session,
    table::Table,
    when::ago,
};

#[derive(Debug, Subcommand)]
pub enum TokensVerb {
    /// List your API tokens in this organization
    List,
    /// Create an API token for this organization, and print it; it is not shown again
    Create {
        /// Name of the token, such as the program that uses it
        name: String,
        /// Permission, such as deploy:read; can be repeated; by default all of yours. metrics:read is only for
        /// administrators of the installation
        #[arg(long = "permission", value_name = "RESOURCE:ACTION")]
        permissions: Vec<String>,
        /// Expiry: a duration such as 90d or 12h, or a timestamp such as 2030-01-31T00:00:00Z
        #[arg(long, value_name = "WHEN")]
        expires: Option<String>,
    },
    /// Revoke an API token
    Revoke {
        /// Name or id of the token
        token: String,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Deserialize)]
struct Token {
    id: String,
    name: String,
    permissions: Vec<String>,
    expires_at: Option<String>,
    created_at: String,
}

#[derive(Deserialize)]
struct Issued {
    token: String,
}

pub(crate) fn run(verb: TokensVerb, session: &Session<'_>) -> Outcome {
    match verb {
        TokensVerb::List => list(session),
        TokensVerb::Create { name, permissions, expires } => {
            let expires = expires.map(|when| end(&when)).transpose()?;
            let permissions = (!permissions.is_empty()).then_some(permissions);
            let body = json!({"name": name, "permissions": permissions, "expires_at": expires});
            let data = session.server.post("/auth/tokens").body(body).send()?;
            session.screen.remark("The token is not shown again:");
            session.screen.show(data, |Issued { token }| format!("{token}\n"))
        }
        TokensVerb::Revoke { token, yes } => revoke(&token, yes, session),
    }
}

fn list(session: &Session<'_>) -> Outcome {
    let data = session.server.get("/auth/tokens").send()?;
    session.screen.show(data, |tokens: Vec<Token>| {
        let mut table = Table::new(
            &["NAME", "ID", "ISSUED", "ENDS", "MAY"],
            "No API tokens in this organization. `launchway tokens create` creates one",
        );
        for one in &tokens {
            table.row([
                one.name.as_str().into(),
                one.id.as_str().into(),
                ago(&one.created_at).into(),
                one.expires_at.as_deref().map_or("never", |end| end.get(..10).unwrap_or(end)).into(),
                one.permissions.join(" ").into(),
            ]);
        }
        session.screen.table(&table)
    })
}

fn revoke(token: &str, yes: bool, session: &Session<'_>) -> Outcome {
    let tokens: Vec<Token> = session.server.get("/auth/tokens").receive()?;
    // Names of tokens are unique for their owner and organization.
    let one = tokens.iter().find(|one| one.id == token || one.name == token).ok_or_else(|| {
        Failure::new(Kind::Missing, format!("you have no API token named `{token}`"))
            .hint("`launchway tokens list` lists your tokens in this organization")
    })?;
    let question = format!("Programs that use {} stop working. Revoke it?", one.name);
    if !prompt::agreed(session.screen, &question, yes)? {
        return Ok(());
    }
    session.server.delete(&format!("/auth/tokens/{}", one.id)).send()?;
    session.screen.remark(&format!("Revoked {}", one.name));
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "people count from the time of the machine that they sit at")]
fn end(when: &str) -> Outcome<String> {
    end_from(when, Utc::now()).ok_or_else(|| {
        Failure::new(Kind::Usage, format!("`{when}` is not a valid expiry"))
            .hint("use a duration such as 90d, 12h or 30m, or a timestamp such as 2030-01-31T00:00:00Z")
    })
}

/// Parses a duration or a timestamp into the timestamp that the API expects.
fn end_from(when: &str, now: DateTime<Utc>) -> Option<String> {
    if let Ok(moment) = DateTime::parse_from_rfc3339(when) {
        return Some(moment.to_utc().to_rfc3339_opts(SecondsFormat::Secs, true));
    }
    let (count, unit) = when.split_at_checked(when.len().checked_sub(1)?)?;
    let count: u32 = count.parse().ok()?;
    let length = match unit {
        "m" => TimeDelta::try_minutes(count.into()),
        "h" => TimeDelta::try_hours(count.into()),
        "d" => TimeDelta::try_days(count.into()),
        _ => None,
    };
    Some(now.checked_add_signed(length?)?.to_rfc3339_opts(SecondsFormat::Secs, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_a_while_from_now_or_a_moment() {
        let now = DateTime::parse_from_rfc3339("2026-01-31T12:00:00Z").unwrap().to_utc();
        for (when, moment) in [
            ("90d", "2026-05-01T12:00:00Z"),
            ("12h", "2026-02-01T00:00:00Z"),
            ("30m", "2026-01-31T12:30:00Z"),
            ("2030-01-31T01:00:00+01:00", "2030-01-31T00:00:00Z"),
        ] {
            assert_eq!(end_from(when, now).as_deref(), Some(moment));
        }
        for wrong in ["", "d", "90", "-1d", "1y", "soon", "ü", "4294967295d"] {
            assert_eq!(end_from(wrong, now), None, "{wrong}");
        }
    }
}
