//! Checks of the front proxy.

use std::os::unix::fs::MetadataExt as _;

use launchway_domain::diagnostics::HealthReport;
use launchway_infrastructure::{data_dir::DataDir, sites::SITES};
use launchway_proxy::control::{Client, ControlError, Credentials, Status};

use super::describe;
use crate::{
    config::{Config, ProxyConfig},
    front_proxy::{self, external},
};

/// Checks that the front proxy runs, and one of another user that it can do its work.
pub(super) async fn check(config: &Config, data: &DataDir, report: &mut HealthReport) {
    let Some(proxy) = &config.proxy else {
        report.ok("front proxy", "is off (LAUNCHWAY_PROXY_BIND)".to_owned());
        return;
    };
    let control = Client::at(front_proxy::folder(config, data));
    let is_external = proxy.folder.is_some();
    match control.status().await {
        Ok(status) => {
            check_routes(&status, report);
            if is_external {
                check_settings(config, proxy, &status, report);
                check_user(&control, data, report).await;
            }
        }
        Err(ControlError::Absent) => {
            let hint = if is_external {
                format!("`{}`", external::START)
            } else {
                "start the server, or `launchway proxy run`".to_owned()
            };
            report.fail("front proxy", "does not run".to_owned(), &hint);
        }
        Err(error @ ControlError::Refused(_)) if is_external => {
            let hint = format!(
                "set LAUNCHWAY_PROXY_CONTROL_USER of the proxy to the server's user, and run `{}`",
                external::RESTART
            );
            report.fail("front proxy", describe(&error), &hint);
        }
        Err(error) if is_external => {
            let hint = format!("`{}`, and run this as root or as the server's user", external::RESTART);
            report.fail("front proxy", describe(&error), &hint);
        }
        Err(error) => report.fail("front proxy", describe(&error), "restart it: `launchway proxy stop`"),
    }
}

fn check_routes(status: &Status, report: &mut HealthReport) {
    if status.is_trusted {
        let addresses: Vec<String> = status.addresses.iter().map(ToString::to_string).collect();
        report.ok("front proxy", format!("serves {} routes at {}", status.routes, addresses.join(", ")));
    } else {
        report.warn(
            "front proxy",
            "runs, but answers 503 for containers until the server has sent all routes".to_owned(),
            "start the server",
        );
    }
}

fn check_settings(config: &Config, proxy: &ProxyConfig, status: &Status, report: &mut HealthReport) {
    let hint = format!("`{}`", external::RESTART);
    if !front_proxy::listens(status, proxy.bind) {
        let text = format!("does not listen on {} (LAUNCHWAY_PROXY_BIND)", proxy.bind);
        report.warn("front proxy", text, &hint);
    }
    match front_proxy::version(config, proxy) {
        Ok(version) if version != status.version => {
            let text = format!(
                "is version `{}`, but this program with these settings is `{version}`",
                status.version
            );
            report.warn("front proxy", text, &hint);
        }
        Ok(_) => {}
        Err(error) => report.fail("front proxy", describe(&error), ""),
    }
}

/// Checks that the proxy has a user of its own, and can read published sites all the same.
async fn check_user(control: &Client, data: &DataDir, report: &mut HealthReport) {
    let found = std::fs::metadata(data.path())
        .and_then(|folder| Ok((folder, std::fs::metadata(data.path().join(SITES))?)));
    let (credentials, (folder, sites)) = match (control.credentials().await, found) {
        (Ok(credentials), Ok(found)) => (credentials, found),
        (Err(error), _) => return report.fail("front proxy user", describe(&error), ""),
        (_, Err(error)) => {
            return report.warn("front proxy user", describe(&error), "start the server");
        }
    };
    let Credentials { user, group } = credentials;
    if user == folder.uid() || user == 0 {
        report.warn(
            "front proxy user",
            format!("runs as user {user}, who has access to the key, the database and the engine"),
            "run it as a separate user: see The units in docs/operations.md",
        );
        return;
    }
    let is_passed = folder.gid() == group && folder.mode() & 0o010 != 0;
    let is_read = sites.gid() == group && sites.mode() & 0o050 == 0o050;
    if is_passed && is_read {
        report.ok("front proxy user", format!("runs as user {user}, and can read published sites"));
    } else {
        let text = format!(
            "group {group} of the front proxy cannot read published sites, which belong to group {}",
            sites.gid()
        );
        report.fail("front proxy user", text, "run both with the same group, and restart both");
    }
}
