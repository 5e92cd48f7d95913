//! The log lines and the audit log of the records.

use launchway_domain::{
    audit::{Chain, Entry, Filter},
    clock::Timestamp,
    ids::{ApplicationId, DeploymentId},
    logs::{Level, LogFilter, LogLine, NewLine},
    organizations::Scope,
};

use super::Records;

impl Records {
    /// Appends lines to the logs of their applications. Those of an unknown application are dropped.
    pub(crate) fn append(&mut self, lines: &[NewLine]) {
        for line in lines.iter().filter(|line| self.applications.contains(&line.application_id)) {
            let number = self.lines_of(line.application_id).next_back().map_or(1, |last| last.number + 1);
            let line = LogLine {
                number,
                application_id: line.application_id,
                deployment_id: line.deployment_id,
                level: line.level,
                text: line.text.clone(),
                at: line.at,
            };
            self.lines.insert((line.application_id, number), line);
        }
    }

    /// Returns the lines of an application, oldest first.
    pub fn lines_of(&self, application: ApplicationId) -> impl DoubleEndedIterator<Item = &LogLine> {
        let range = (application, i64::MIN)..=(application, i64::MAX);
        self.lines.range(range).map(|(_, line)| line)
    }

    /// Returns the newest `limit` lines of an application that fulfil `is_wanted`, oldest first.
    pub(crate) fn newest_lines(
        &self,
        application: ApplicationId,
        limit: i64,
        is_wanted: impl Fn(&LogLine) -> bool,
    ) -> Vec<LogLine> {
        let limit = usize::try_from(limit).unwrap_or_default();
        let newest = self.lines_of(application).rev().filter(|line| is_wanted(line)).take(limit);
        let mut lines: Vec<LogLine> = newest.cloned().collect();
        lines.reverse();
        lines
    }

    /// Returns the lines of an application after the line `after` that match, oldest first.
    pub(crate) fn lines_after<'a>(
        &'a self,
        application: ApplicationId,
        filter: &'a LogFilter,
        after: i64,
    ) -> impl DoubleEndedIterator<Item = &'a LogLine> {
        let range = (application, after.saturating_add(1))..=(application, i64::MAX);
        self.lines.range(range).map(|(_, line)| line).filter(|line| matches(filter, line))
    }

    /// Returns the time of the last line that a version printed.
    pub(crate) fn last_printed(&self, deployment: DeploymentId) -> Option<Timestamp> {
        let application = self.deployments.get(&deployment)?.application_id;
        let is_printed = |line: &&LogLine| line.deployment_id == deployment && line.level == Level::Runtime;
        self.lines_of(application).rev().find(is_printed).map(|line| line.at)
    }

    /// Returns the entries of the audit log of an organization that match, newest first.
    pub(crate) fn audit_log<'a>(
        &'a self,
        scope: Scope,
        filter: &'a Filter,
    ) -> impl Iterator<Item = &'a Entry> {
        let chain = Chain::Organization(scope.id());
        self.audit_log.values().rev().filter(move |entry| entry.chain == chain && is_searched(filter, entry))
    }
}

fn matches(filter: &LogFilter, line: &LogLine) -> bool {
    let contains = |text: &String| line.text.to_lowercase().contains(&text.to_lowercase());
    filter.search.as_ref().is_none_or(contains)
        && filter.level.is_none_or(|level| level == line.level)
        && filter.from.is_none_or(|from| line.at >= from)
        && filter.to.is_none_or(|to| line.at <= to)
        && filter.deployment.is_none_or(|deployment| deployment == line.deployment_id)
}

fn is_searched(filter: &Filter, entry: &Entry) -> bool {
    let contains = |text: &String| entry.message.to_lowercase().contains(&text.to_lowercase());
    filter.search.as_ref().is_none_or(contains)
        && filter.resource.is_none_or(|resource| resource == entry.resource)
        && filter.action.is_none_or(|action| action == entry.action)
        && filter.actor.as_ref().is_none_or(|actor| actor.to_lowercase() == entry.actor.to_lowercase())
        && filter.from.is_none_or(|from| entry.at >= from)
        && filter.to.is_none_or(|to| entry.at <= to)
}
