//! Notification channels and deliveries.

use clap::{Subcommand, ValueEnum};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    cli::value_name,
    failure::{Failure, Kind, Outcome},
    names,
    records::{self, Pagination},
    screen::tone_of,
    session::Session,
    table::{Cell, Table},
    when::ago,
};

/// A notification channel.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Channel {
    Slack,
    Discord,
    /// A custom webhook receiver
    Generic,
    /// E-mail
    Smtp,
}

#[derive(Debug, Subcommand)]
pub enum NotificationsVerb {
    /// List notification channels
    List,
    /// Send a test notification, and show the result
    Test {
        /// Notification channel
        #[arg(value_enum)]
        channel: Channel,
    },
    /// List deliveries of notifications
    Deliveries {
        /// Show only deliveries in this state: pending, sending, delivered or dead
        #[arg(long)]
        state: Option<String>,
        /// Show only deliveries of this channel
        #[arg(long, value_enum)]
        channel: Option<Channel>,
        /// Page number
        #[arg(long, default_value_t = 1)]
        page: u32,
    },
    /// Retry a dead delivery
    Replay {
        /// Id of the delivery
        delivery: String,
    },
}

#[derive(Deserialize)]
struct Deliveries {
    deliveries: Vec<Delivery>,
    pagination: Pagination,
}

#[derive(Deserialize)]
struct Delivery {
    id: String,
    event: String,
    #[serde(rename = "type")]
    channel: String,
    status: String,
    reason: String,
    attempts: Vec<Value>,
    created_at: String,
}

#[derive(Deserialize)]
struct AttemptResult {
    delivered: bool,
    error: String,
}

pub(crate) fn run(verb: NotificationsVerb, session: &Session<'_>) -> Outcome {
    match verb {
        NotificationsVerb::List => list(session),
        NotificationsVerb::Test { channel } => test(channel, session),
        NotificationsVerb::Deliveries { state, channel, page } => deliveries(state, channel, page, session),
        NotificationsVerb::Replay { delivery } => {
            let path = format!("/notification/deliveries/{}/replay", names::id(&delivery)?);
            let data = session.server.post(&path).body(json!({})).send()?;
            if session.screen.is_for_programs() {
                return session.screen.json(&data);
            }
            session.screen.remark("Retrying the delivery");
            Ok(())
        }
    }
}

/// Lists the configured channels. JSON output is the API's records, by channel.
fn list(session: &Session<'_>) -> Outcome {
    let mut found = serde_json::Map::new();
    for channel in Channel::value_variants() {
        let path = match channel {
            Channel::Smtp => "/notification/smtp".to_owned(),
            channel => format!("/notification/webhook/{}", value_name(channel)),
        };
        match session.server.get(&path).send() {
            Ok(config) => drop(found.insert(value_name(channel), config)),
            Err(failure) if failure.kind == Kind::Missing => {}
            Err(failure) => return Err(failure),
        }
    }
    if session.screen.is_for_programs() {
        return session.screen.json(&Value::Object(found));
    }
    let mut table = Table::new(&["CHANNEL", "ON", "WHERE"], "No notification channels");
    for (channel, config) in &found {
        let is_on = if config["is_active"] == true { "yes" } else { "no" };
        let place = config["webhook_url"].as_str().or(config["host"].as_str()).unwrap_or_default();
        table.row([channel.as_str().into(), is_on.into(), place.into()]);
    }
    session.screen.print(&session.screen.table(&table))
}

fn test(channel: Channel, session: &Session<'_>) -> Outcome {
    let data =
        session.server.post("/notification/test").body(json!({"type": value_name(&channel)})).send()?;
    let tried: AttemptResult = records::read(data.clone())?;
    if session.screen.is_for_programs() {
        session.screen.json(&data)?;
    }
    match tried.delivered {
        true => session.screen.remark("The notification was delivered"),
        false => {
            return Err(Failure::new(
                Kind::Failed,
                format!("the notification was not delivered: {}", tried.error),
            ));
        }
    }
    Ok(())
}

fn deliveries(state: Option<String>, channel: Option<Channel>, page: u32, session: &Session<'_>) -> Outcome {
    let data = session
        .server
        .get("/notification/deliveries")
        .with_some("status", state)
        .with_some("type", channel.as_ref().map(value_name).as_deref())
        .with("page", page)
        .with("page_size", 100)
        .send()?;
    session.screen.show(data, |listed: Deliveries| {
        let headings = ["ID", "EVENT", "CHANNEL", "STATE", "TRIES", "WHEN", "REASON"];
        let mut table = Table::new(&headings, "No deliveries");
        for one in &listed.deliveries {
            table.row([
                one.id.as_str().into(),
                one.event.as_str().into(),
                one.channel.as_str().into(),
                Cell::toned(&one.status, tone_of(&one.status)),
                one.attempts.len().to_string().into(),
                ago(&one.created_at).into(),
                one.reason.as_str().into(),
            ]);
        }
        session.screen.table(&table) + &listed.pagination.more(page)
    })
}
