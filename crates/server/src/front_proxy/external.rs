//! A front proxy that the server does not run, such as a systemd unit with a user of its own. The server never starts
//! one there, and asks one of another version to replace itself.

use std::{net::SocketAddr, path::Path, time::Duration};

use launchway_proxy::control::{Client, ControlError, Status};
use tokio::time::{Instant, sleep};

use super::{TIMEOUT, listens};

/// The time that a proxy which is started beside the server has until it answers. The server goes on without it.
const START_TIMEOUT: Duration = Duration::from_secs(5);
/// The time after which a proxy that was asked to replace itself has the settings of its unit: its predecessor answers
/// running requests for up to 30 seconds before the unit starts the next one.
const REPLACE_TIMEOUT: Duration = Duration::from_secs(60);

/// The command of an operator whose proxy does not answer.
pub(crate) const START: &str = "systemctl start launchway-proxy";
/// The command of an operator whose proxy cannot replace itself.
pub(crate) const RESTART: &str = "systemctl restart launchway-proxy";

/// Finds the proxy, asks one of another version to replace itself, and returns the address to announce.
pub(super) async fn find(control: &Client, version: &str, bind: SocketAddr) -> SocketAddr {
    let status = match wait_for_status(control, START_TIMEOUT, |_| true).await {
        Ok(status) => status,
        Err(error) => {
            tracing::warn!(%error, hint = START, "front proxy does not answer");
            return bind;
        }
    };
    if !listens(&status, bind) {
        // Another address cannot be handed over.
        tracing::warn!(addresses = ?status.addresses, expected = %bind, hint = RESTART, "front proxy listens elsewhere");
    } else if status.version == version {
        tracing::info!(process = status.process, "front proxy answers");
    } else {
        replace(control, &status, version).await;
    }
    status.addresses.first().copied().unwrap_or(bind)
}

/// Asks the proxy to start its successor, and waits until that one answers.
async fn replace(control: &Client, old: &Status, version: &str) {
    let replaced = match control.replace().await {
        Ok(()) => wait_for_status(control, TIMEOUT, |status| status.process != old.process).await,
        Err(error) => Err(error),
    };
    match replaced {
        Ok(new) => {
            tracing::info!(from = old.process, to = new.process, "front proxy replaced itself");
            tokio::spawn(check_version(control.clone(), version.to_owned()));
        }
        Err(error) => tracing::warn!(%error, hint = RESTART, "front proxy does not replace itself"),
    }
}

/// The successor has the environment of its predecessor. A unit starts another one with its present settings when the
/// predecessor has ended.
async fn check_version(control: Client, version: String) {
    sleep(REPLACE_TIMEOUT).await;
    match control.status().await {
        Ok(status) if status.version != version => {
            tracing::warn!(
                process = status.process,
                found = status.version,
                expected = version,
                hint = RESTART,
                "front proxy has other settings"
            );
        }
        // The server looks every second whether it answers.
        _ => {}
    }
}

async fn wait_for_status(
    control: &Client,
    timeout: Duration,
    is_expected: impl Fn(&Status) -> bool,
) -> Result<Status, ControlError> {
    let deadline = Instant::now() + timeout;
    loop {
        match control.status().await {
            Ok(status) if is_expected(&status) => return Ok(status),
            Ok(_) if Instant::now() >= deadline => {
                let text = "no successor answers".to_owned();
                return Err(ControlError::Refused(text));
            }
            Err(error) if Instant::now() >= deadline => return Err(error),
            _ => sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Stops a proxy that an earlier version ran in the data directory as the server's user: it holds the address of the
/// external one. Without the folder of the external one it keeps running, because none would replace it.
pub(super) async fn end_previous(previous: &Path, folder: &Path) {
    if previous == folder || !folder.is_dir() {
        return;
    }
    match Client::at(previous).stop().await {
        Ok(()) => tracing::info!("front proxy of the server's user ends; another user runs it now"),
        Err(ControlError::Absent) => {}
        Err(error) => tracing::warn!(%error, "front proxy of the server's user does not end"),
    }
}
