//! The settings of quotas.

use launchway_domain::quotas::Quotas;

use super::{reader::Reader, values};

/// Reads the settings; `None` if one is invalid. An organization has one build slot less than the
/// installation, so that it can never block the builds of all others. `log_bytes` is the limit of the
/// logs of an organization.
pub(super) fn read(read: &mut Reader, max_builds: usize, log_bytes: u64) -> Option<Quotas> {
    let places = max_builds.saturating_sub(1).max(1).to_string();
    let applications = read.setting("LAUNCHWAY_QUOTA_APPLICATIONS", "100", values::quota);
    let builds = read.setting("LAUNCHWAY_QUOTA_BUILDS", &places, values::quota);
    let log_streams = read.setting("LAUNCHWAY_QUOTA_LOG_STREAMS", "64", values::quota);
    let user_log_streams = read.setting("LAUNCHWAY_QUOTA_USER_LOG_STREAMS", "16", values::quota);
    let extension_ports = read.setting("LAUNCHWAY_QUOTA_EXTENSION_PORTS", "20", values::quota);
    let extension_forks = read.setting("LAUNCHWAY_QUOTA_EXTENSION_FORKS", "100", values::quota);
    let extension_workspaces = read.setting("LAUNCHWAY_QUOTA_EXTENSION_WORKSPACES", "200", values::quota);
    let image_bytes = read.setting("LAUNCHWAY_QUOTA_IMAGE_SIZE", "200g", values::disk_space);
    Some(Quotas {
        applications: applications?,
        builds: builds?,
        log_streams: log_streams?,
        user_log_streams: user_log_streams?,
        extension_ports: extension_ports?,
        extension_forks: extension_forks?,
        extension_workspaces: extension_workspaces?,
        log_bytes,
        image_bytes: image_bytes?,
    })
}
