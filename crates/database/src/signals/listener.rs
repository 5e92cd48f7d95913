//! The connection that receives the notifications of PostgreSQL.
//!
//! Diesel reads notifications without waiting for them, and does not expose the socket. So a thread polls.

use std::{
    thread::{self, sleep},
    time::Duration,
};

use diesel::{
    QueryableByName, RunQueryDsl as _, connection::SimpleConnection as _, pg::PgConnection, sql_query,
    sql_types::Text,
};
use launchway_domain::{error_chain::ErrorChain, signals::Signal};

use super::Publisher;
use crate::{error::QueryError, server_lock};

/// The name of the connection for operators.
const NAME: &str = "launchway signals";
/// The pause between two looks for notifications.
const POLL: Duration = Duration::from_millis(50);
/// The pause between two attempts to connect.
const RETRY: Duration = Duration::from_millis(200);

/// The channel that the triggers use.
const LISTEN: &str =
    "SELECT 'LISTEN ' || quote_ident(('launchway_' || current_schema())::name::text) AS statement";

#[derive(QueryableByName)]
struct Statement {
    #[diesel(sql_type = Text)]
    statement: String,
}

/// Starts the thread, which ends when the publisher is closed.
pub(super) fn start(url: &str, publisher: Publisher) {
    let url = server_lock::session_url(url, NAME);
    let thread =
        thread::Builder::new().name("database-signals".to_owned()).spawn(move || listen(&url, &publisher));
    if let Err(error) = thread {
        tracing::error!(%error, "signals are not received");
    }
}

fn listen(url: &str, publisher: &Publisher) {
    while !publisher.is_closed() {
        match connect(url) {
            Ok(mut connection) => {
                // From now on nothing is missed, but something may have been before.
                publisher.publish_all();
                if let Err(error) = receive(&mut connection, publisher) {
                    tracing::warn!(error = %ErrorChain(&error), "connection for signals lost");
                }
            }
            Err(error) => tracing::debug!(error = %ErrorChain(&error), "connection for signals failed"),
        }
        sleep(RETRY);
    }
}

fn connect(url: &str) -> Result<PgConnection, server_lock::ServerLockError> {
    let mut connection = server_lock::connect(url)?;
    let Statement { statement } = sql_query(LISTEN).get_result(&mut connection)?;
    connection.batch_execute(&statement)?;
    Ok(connection)
}

/// Publishes what arrives until the publisher is closed.
fn receive(connection: &mut PgConnection, publisher: &Publisher) -> Result<(), QueryError> {
    while !publisher.is_closed() {
        for notification in connection.notifications_iter() {
            match notification?.payload.as_str() {
                "jobs" => publisher.publish(Signal::Jobs),
                "routes" => publisher.publish(Signal::Routes),
                _ => {}
            }
        }
        sleep(POLL);
    }
    Ok(())
}
