//! The words of log lines and reasons for the place where versions run.

/// The words of log lines, reasons and audit entries for the platform and its engine; those of the server by
/// default. An embedding service has no containers, and its users do not know the platform by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Terms {
    /// The noun for a running version.
    pub instance: &'static str,
    /// The noun for the artifact that a version is started from.
    pub artifact: &'static str,
    /// The noun for the engine that runs versions.
    pub engine: &'static str,
    /// The verb of a running version that does not exist any more: "was removed".
    pub vanished: &'static str,
    /// The author of audit entries that no user caused.
    pub platform: &'static str,
}

impl Terms {
    /// The words of a service that runs versions on a host of any kind.
    pub const NEUTRAL: Self = Self {
        instance: "version",
        artifact: "artifact",
        engine: "host",
        vanished: "ended",
        platform: "system",
    };
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            instance: "container",
            artifact: "image",
            engine: "Docker engine",
            vanished: "was removed",
            platform: "launchway",
        }
    }
}
