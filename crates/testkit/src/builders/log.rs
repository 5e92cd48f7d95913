//! Lines of logs.

use launchway_domain::{
    clock::Timestamp,
    deployments::Deployment,
    logs::{Level, LogLine, NewLine},
};

use super::a_deployment;
use crate::clock::{NEW_YEAR, moment};

/// The first line of [`a_deployment`]: "hello", level info, at [`NEW_YEAR`].
pub fn a_log_line() -> LogLineBuilder {
    LogLineBuilder {
        number: 1,
        deployment: a_deployment().build(),
        level: Level::Info,
        text: "hello".to_owned(),
        at: moment(NEW_YEAR),
    }
}

/// Builds a [`LogLine`] or a [`NewLine`].
#[derive(Debug, Clone)]
#[must_use]
pub struct LogLineBuilder {
    number: i64,
    deployment: Deployment,
    level: Level,
    text: String,
    at: Timestamp,
}

impl LogLineBuilder {
    /// Sets the position in the log of the application.
    pub fn numbered(mut self, number: i64) -> Self {
        self.number = number;
        self
    }

    /// Sets the deployment.
    pub fn of(mut self, deployment: &Deployment) -> Self {
        self.deployment = deployment.clone();
        self
    }

    /// Sets the level.
    pub fn at_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Sets the text.
    pub fn saying(mut self, text: &str) -> Self {
        text.clone_into(&mut self.text);
        self
    }

    /// Sets the time.
    pub fn at(mut self, at: Timestamp) -> Self {
        self.at = at;
        self
    }

    /// Returns the stored line.
    #[must_use]
    pub fn build(self) -> LogLine {
        let number = self.number;
        let NewLine { application_id, deployment_id, level, text, at } = self.new_line();
        LogLine { number, application_id, deployment_id, level, text, at }
    }

    /// Returns the line before it is stored.
    #[must_use]
    pub fn new_line(self) -> NewLine {
        let Deployment { id: deployment_id, application_id, .. } = self.deployment;
        NewLine { application_id, deployment_id, level: self.level, text: self.text, at: self.at }
    }
}
