//! The events of ended deployments, ended runs and logins.
//!
//! **Invariant:** these functions alone decide which end and which login emit which event, with which
//! fields. The store collects the data in the transaction of the change, and stores the event there.

use super::{DEVICE_KNOWN_FOR, Event, EventKind, Fact};
use crate::{
    auth::Session,
    clock::Timestamp,
    deployments::{DeploymentState, EndCause},
    extensions::ExecutionState,
    ids::{ApplicationId, DeploymentId, EventId, ExecutionId, OrganizationId},
    users::User,
};

impl EventKind {
    /// Returns the event of a deployment that enters `state`, if there is one.
    #[must_use]
    pub fn of_deployment(state: DeploymentState) -> Option<Self> {
        match state {
            DeploymentState::Deployed => Some(Self::DeploymentSucceeded),
            DeploymentState::Failed => Some(Self::DeploymentFailed),
            DeploymentState::Cancelled => Some(Self::DeploymentCancelled),
            DeploymentState::Queued
            | DeploymentState::Cloning
            | DeploymentState::Building
            | DeploymentState::Deploying => None,
        }
    }

    /// Returns the event of a run that enters `state`, if there is one. A cancelled run has none: the user
    /// who cancelled it knows.
    #[must_use]
    pub fn of_execution(state: ExecutionState) -> Option<Self> {
        match state {
            ExecutionState::Completed => Some(Self::ExtensionCompleted),
            ExecutionState::Failed => Some(Self::ExtensionFailed),
            ExecutionState::Cancelled | ExecutionState::Pending | ExecutionState::Running => None,
        }
    }
}

/// A deployment that ended, with the data of its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedDeployment {
    /// The id of the deployment.
    pub id: DeploymentId,
    /// The organization that it belongs to.
    pub organization_id: OrganizationId,
    /// The name of the organization.
    pub organization: String,
    /// The id of the application.
    pub application_id: ApplicationId,
    /// The name of the application.
    pub application: String,
    /// The environment of the application.
    pub environment: String,
    /// The host at which the application is reached.
    pub host: String,
    /// The earlier deployment that it rolls back to.
    pub rollback_to: Option<DeploymentId>,
    /// The branch of the application.
    pub branch: Option<String>,
    /// The commit that it is built from.
    pub commit: Option<String>,
    /// The user or program that requested it.
    pub requested_by: String,
    /// When it was requested.
    pub created_at: Timestamp,
    /// The state that it ended in.
    pub state: DeploymentState,
    /// The cause of its end.
    pub cause: EndCause,
}

impl EndedDeployment {
    /// Returns the event of the end at the time `at`, if there is one.
    #[must_use]
    pub fn event(self, id: EventId, at: Timestamp) -> Option<Event> {
        let kind = EventKind::of_deployment(self.state)?;
        let event = Event::new(id, self.organization_id, kind, at)
            .with(Fact::Organization, self.organization)
            .with(Fact::Application, self.application)
            .with(Fact::ApplicationId, self.application_id)
            .with(Fact::Environment, self.environment)
            .with(Fact::Host, self.host)
            .with(Fact::DeploymentId, self.id)
            .with(Fact::RollbackTo, self.rollback_to.map(|id| id.to_string()).unwrap_or_default())
            .with(Fact::Branch, self.branch.unwrap_or_default())
            .with(Fact::Commit, self.commit.unwrap_or_default())
            .with(Fact::RequestedBy, self.requested_by)
            .with(Fact::Seconds, seconds(self.created_at, at))
            .with(Fact::Reason, self.cause.describe(self.state));
        Some(event)
    }
}

/// A run that ended, with the data of its event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedExecution {
    /// The id of the run.
    pub id: ExecutionId,
    /// The organization that it belongs to.
    pub organization_id: OrganizationId,
    /// The name of the organization.
    pub organization: String,
    /// The name of the extension.
    pub extension: String,
    /// The key of the extension.
    pub extension_key: String,
    /// The user who requested it.
    pub requested_by: String,
    /// When it was requested.
    pub created_at: Timestamp,
    /// The state that it ended in.
    pub state: ExecutionState,
    /// The exit code of the step that failed; 0 otherwise.
    pub exit_code: i32,
    /// The reason of the failure; empty otherwise.
    pub error_message: String,
}

impl EndedExecution {
    /// Returns the event of the end at the time `at`, if there is one.
    #[must_use]
    pub fn event(self, id: EventId, at: Timestamp) -> Option<Event> {
        let kind = EventKind::of_execution(self.state)?;
        let exit_code = if self.exit_code == 0 { String::new() } else { self.exit_code.to_string() };
        let event = Event::new(id, self.organization_id, kind, at)
            .with(Fact::Organization, self.organization)
            .with(Fact::Extension, self.extension)
            .with(Fact::ExtensionKey, self.extension_key)
            .with(Fact::ExecutionId, self.id)
            .with(Fact::ExitCode, exit_code)
            .with(Fact::RequestedBy, self.requested_by)
            .with(Fact::Seconds, seconds(self.created_at, at))
            .with(Fact::Reason, self.error_message);
        Some(event)
    }
}

/// A login, which the user's organizations are notified of if it is from a new device.
#[derive(Debug, Clone, Copy)]
pub struct Login<'a> {
    /// The session that it opens.
    pub session: &'a Session,
    /// The time of the user's last login, unless that is too long ago to be stored.
    pub last: Option<Timestamp>,
}

impl Login<'_> {
    /// The most organizations that are notified of one login, because the login waits for it.
    pub const MOST_NOTIFIED: u8 = 20;

    /// Returns the time by which a user must have joined an organization for it to be notified: adding a
    /// user to an organization must not reveal where they are, so only organizations that they were a member
    /// of at their last login are. If that is not stored, all of them are.
    #[must_use]
    pub fn joined_by(&self) -> Timestamp {
        self.last.unwrap_or(self.session.created_at)
    }

    /// Returns whether the device is new to the user, who last used a session from there at `seen`.
    #[must_use]
    pub fn is_from_new_device(&self, seen: Option<Timestamp>) -> bool {
        seen.is_none_or(|seen| seen < self.session.created_at - DEVICE_KNOWN_FOR)
    }

    /// Returns the event of a login from a new device for an organization of the user.
    #[must_use]
    pub fn event(&self, id: EventId, (organization, name): (OrganizationId, &str), user: &User) -> Event {
        let Session { client, created_at, .. } = self.session;
        Event::new(id, organization, EventKind::LoginNewDevice, *created_at)
            .with(Fact::Organization, name)
            .about(user)
            .with(Fact::Address, client.address)
            .with(Fact::UserAgent, &client.user_agent)
    }
}

/// Formats the seconds between two times.
fn seconds(from: Timestamp, to: Timestamp) -> String {
    format!("{:.1}", (to - from).as_seconds_f64())
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use uuid::Uuid;

    use super::{DeploymentState as D, EventKind as E, ExecutionState as X, *};
    use crate::{
        auth::{Client, TokenHash},
        jobs::JobState,
        users::UserKind,
    };

    const AT: Timestamp = Timestamp::UNIX_EPOCH;
    const NIL: &str = "00000000-0000-0000-0000-000000000000";

    fn facts(event: &Event) -> Vec<(&str, &str)> {
        event.facts.iter().map(|(fact, value)| (fact.as_str(), value.as_str())).collect()
    }

    #[test]
    fn final_states_of_deployments_emit_events() {
        for (state, kind) in [
            (D::Queued, None),
            (D::Cloning, None),
            (D::Building, None),
            (D::Deploying, None),
            (D::Deployed, Some(E::DeploymentSucceeded)),
            (D::Failed, Some(E::DeploymentFailed)),
            (D::Cancelled, Some(E::DeploymentCancelled)),
        ] {
            assert_eq!(E::of_deployment(state), kind, "{state:?}");
            assert_eq!(state.is_final(), kind.is_some(), "{state:?}");
            let event = a_deployment(state).event(Uuid::nil().into(), AT);
            assert_eq!(event.map(|event| event.kind), kind, "{state:?}");
        }
    }

    #[test]
    fn outcomes_of_runs_emit_events_and_cancelled_runs_do_not() {
        for (state, kind) in [
            (X::Pending, None),
            (X::Running, None),
            (X::Completed, Some(E::ExtensionCompleted)),
            (X::Failed, Some(E::ExtensionFailed)),
            (X::Cancelled, None),
        ] {
            assert_eq!(E::of_execution(state), kind, "{state:?}");
            let event = an_execution(state).event(Uuid::nil().into(), AT);
            assert_eq!(event.map(|event| event.kind), kind, "{state:?}");
        }
    }

    fn a_deployment(state: D) -> EndedDeployment {
        let cause =
            EndCause { job: Some(JobState::Failed), reason: Some("no port".to_owned()), replaced_by: None };
        EndedDeployment {
            id: Uuid::nil().into(),
            organization_id: Uuid::nil().into(),
            organization: "Engines".to_owned(),
            application_id: Uuid::nil().into(),
            application: "web".to_owned(),
            environment: "production".to_owned(),
            host: "web.example.com".to_owned(),
            rollback_to: None,
            branch: Some("main".to_owned()),
            commit: None,
            requested_by: "ada".to_owned(),
            created_at: AT,
            state,
            cause,
        }
    }

    #[test]
    fn a_failed_deployment_is_described_by_what_is_known() {
        let at = AT + TimeDelta::milliseconds(2345);
        let event = a_deployment(D::Failed).event(Uuid::nil().into(), at).unwrap();
        assert_eq!(event.at, at);
        let expected = [
            ("organization", "Engines"),
            ("organization_id", NIL),
            ("application", "web"),
            ("application_id", NIL),
            ("environment", "production"),
            ("host", "web.example.com"),
            ("deployment_id", NIL),
            ("branch", "main"),
            ("requested_by", "ada"),
            ("duration_seconds", "2.3"),
            ("reason", "no port"),
        ];
        assert_eq!(facts(&event), expected);
    }

    fn an_execution(state: X) -> EndedExecution {
        EndedExecution {
            id: Uuid::nil().into(),
            organization_id: Uuid::nil().into(),
            organization: "Engines".to_owned(),
            extension: "Postgres".to_owned(),
            extension_key: "postgres".to_owned(),
            requested_by: "ada".to_owned(),
            created_at: AT,
            state,
            exit_code: 3,
            error_message: "step 1 failed".to_owned(),
        }
    }

    #[test]
    fn a_failed_run_is_described_by_what_is_known() {
        let event = an_execution(X::Failed).event(Uuid::nil().into(), AT).unwrap();
        let expected = [
            ("organization", "Engines"),
            ("organization_id", NIL),
            ("extension", "Postgres"),
            ("extension_id", "postgres"),
            ("execution_id", NIL),
            ("exit_code", "3"),
            ("requested_by", "ada"),
            ("duration_seconds", "0.0"),
            ("reason", "step 1 failed"),
        ];
        assert_eq!(facts(&event), expected);
        let completed = EndedExecution { exit_code: 0, ..an_execution(X::Completed) };
        let event = completed.event(Uuid::nil().into(), AT).unwrap();
        assert!(!event.facts.contains_key(&Fact::ExitCode));
    }

    fn a_session() -> Session {
        let client = Client { address: [127, 0, 0, 1].into(), user_agent: "curl".to_owned() };
        Session::open(Uuid::nil().into(), Uuid::nil().into(), TokenHash::of("token"), client, AT)
    }

    #[test]
    fn a_device_is_new_once_it_was_not_seen_for_long() {
        let session = a_session();
        let login = Login { session: &session, last: None };
        for (seen, is_new) in [
            (None, true),
            (Some(AT), false),
            (Some(AT - DEVICE_KNOWN_FOR), false),
            (Some(AT - DEVICE_KNOWN_FOR - TimeDelta::microseconds(1)), true),
        ] {
            assert_eq!(login.is_from_new_device(seen), is_new, "{seen:?}");
        }
    }

    #[test]
    fn organizations_joined_after_the_last_login_are_not_notified() {
        let session = a_session();
        assert_eq!(Login { session: &session, last: None }.joined_by(), AT);
        let last = AT - TimeDelta::days(1);
        assert_eq!(Login { session: &session, last: Some(last) }.joined_by(), last);
    }

    #[test]
    fn a_login_is_described_by_its_user_and_device() {
        let email = "ada@example.com".parse().unwrap();
        let user = User::new(Uuid::nil().into(), "ada".parse().unwrap(), email, UserKind::AppUser, AT);
        let session = a_session();
        let login = Login { session: &session, last: None };
        let event = login.event(Uuid::nil().into(), (Uuid::nil().into(), "Engines"), &user);
        assert_eq!((event.kind, event.at), (E::LoginNewDevice, AT));
        let expected = [
            ("organization", "Engines"),
            ("organization_id", NIL),
            ("user", "ada"),
            ("user_id", NIL),
            ("email", "ada@example.com"),
            ("address", "127.0.0.1"),
            ("user_agent", "curl"),
        ];
        assert_eq!(facts(&event), expected);
    }
}
