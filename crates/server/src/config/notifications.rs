//! The settings of notifications.

use std::time::Duration;

use launchway_domain::{
    network::{AllowedEndpoint, OutboundPolicy},
    notifications::RetrySchedule,
};

use super::{reader::Reader, values};

/// The settings of notifications.
#[derive(Debug, Clone)]
pub(crate) struct NotificationConfig {
    pub(crate) policy: OutboundPolicy,
    pub(crate) retries: RetrySchedule,
    pub(crate) timeout: Duration,
}

impl NotificationConfig {
    /// Reads the settings; `None` if one is invalid.
    pub(super) fn read(read: &mut Reader) -> Option<Self> {
        let allow = read.setting::<Vec<AllowedEndpoint>>("LAUNCHWAY_OUTBOUND_ALLOW", "", values::endpoints);
        let retries =
            read.setting("LAUNCHWAY_NOTIFICATION_RETRIES", "5s,5m,30m,2h,5h,10h", values::durations);
        let timeout = read.setting("LAUNCHWAY_NOTIFICATION_TIMEOUT", "15s", values::duration);
        Some(Self {
            policy: OutboundPolicy::allowing(allow?),
            retries: RetrySchedule::new(retries?),
            timeout: timeout?,
        })
    }
}
