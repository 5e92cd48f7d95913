//! Records for the tests. Every arrangement has ids of its own, so that tests share a place.

use std::sync::atomic::{AtomicU64, Ordering};

use launchway_domain::{
    applications::{Application, ApplicationSecrets, Blueprint, ImageRef, Write as ApplicationWrite},
    audit::{self, Event},
    auth::Actor,
    clock::Timestamp,
    deployments::{Deployment, DeploymentKind, DeploymentState, Progress, Write as DeploymentWrite},
    ids::{ApplicationId, DeploymentId, JobId},
    jobs::{ClaimLimits, JobKind, NewJob, Pool, WorkerId, Write as JobWrite},
    logs::{Level, NewLine},
    organizations::{Description, Organization, Role, Scope},
    secret::Sealed,
    store::Write,
    users::User,
};
use uuid::Uuid;

/// The time of the tests.
pub(super) const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// Higher limits than any test reaches.
pub(super) const LIMITS: ClaimLimits = ClaimLimits { builds: 1000, operations: 1000, per_organization: 1000 };

/// Returns an id that was not returned before, in this run or another.
pub(super) fn id<T: From<Uuid>>() -> T {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut random = [0; 8];
    // Without randomness, ids of another run may return, and tests fail with a message about it.
    getrandom::fill(&mut random).ok();
    T::from(Uuid::from_u64_pair(number, u64::from_le_bytes(random)))
}

/// Returns a time that many seconds later.
pub(super) fn at(seconds: i64) -> Timestamp {
    NOW + chrono::TimeDelta::seconds(seconds)
}

/// Returns a value of text that is known to be valid.
pub(super) fn text<T: std::str::FromStr<Err: std::fmt::Debug>>(raw: &str) -> T {
    raw.parse().unwrap_or_else(|error| panic!("{raw} is refused: {error:?}"))
}

/// An organization with a member, and an application.
pub(super) struct Tenant {
    pub(super) actor: Actor,
    pub(super) application: Application,
}

impl Tenant {
    pub(super) fn new() -> Self {
        let (organization, user): (_, Uuid) = (id(), id());
        let name = format!("o{}", user.simple());
        let organization = Organization::new(organization, text(&name), Description::default(), NOW);
        let email = format!("{}@example.com", user.simple());
        let user = User::invited(user.into(), text("ada"), text(&email), NOW);
        let actor = Actor::vouched_for(user.clone(), organization.clone(), Role::Admin);
        let application = Self::application(&organization, &user, "web");
        Self { actor, application }
    }

    pub(super) fn application(organization: &Organization, user: &User, name: &str) -> Application {
        let port = 80.try_into().unwrap_or_else(|_| panic!("80 is a port"));
        let image: ImageRef = text("nginx:1");
        let blueprint = Blueprint::of_image(text(name), text("production"), image, port);
        let sealed = || Sealed(String::new());
        let secrets = ApplicationSecrets {
            build_variables: sealed(),
            environment_variables: sealed(),
            credentials: None,
        };
        Application::new((id(), id()), organization, user.id, blueprint, secrets, NOW)
    }

    /// Returns another application of the organization.
    pub(super) fn another(&self, name: &str) -> Application {
        let organization = &self.actor.profile().memberships[0].organization;
        Self::application(organization, self.actor.user(), name)
    }

    pub(super) fn scope(&self) -> Scope {
        Scope::of_record(self.application.organization_id)
    }

    pub(super) fn id(&self) -> ApplicationId {
        self.application.id
    }

    pub(super) fn entry(&self) -> Write {
        let (action, resource) = (audit::Action::Create, audit::Resource::Application);
        let event = Event::new(action, resource, self.id(), "did something");
        audit::Write::Append(audit::Entry::new(id(), self.actor.author(), event, NOW)).into()
    }

    pub(super) fn insert(&self) -> Vec<Write> {
        vec![ApplicationWrite::Insert(Box::new(self.application.clone())).into(), self.entry()]
    }

    /// Returns a deployment of the application, and the writes that request it.
    pub(super) fn request(&self) -> (DeploymentId, JobId, Vec<Write>) {
        let (deployment, job): (DeploymentId, JobId) = (id(), id());
        let new = NewJob {
            id: job,
            kind: JobKind::Deploy,
            scope: self.scope(),
            subject: self.id().into(),
            replaceable: true,
            payload: deployment.to_string(),
            pool: Pool::Builds,
            run_at: NOW,
            enqueued_at: NOW,
        };
        let whose = (self.application.organization_id, self.id());
        let record = Deployment::new((deployment, id()), whose, DeploymentKind::Fresh, job, NOW);
        let writes = vec![
            JobWrite::Enqueue(new).into(),
            DeploymentWrite::Insert(record).into(),
            DeploymentWrite::FollowJobs { application: Some(self.id()), at: NOW }.into(),
            self.entry(),
        ];
        (deployment, job, writes)
    }

    pub(super) fn follow(&self) -> Write {
        DeploymentWrite::FollowJobs { application: Some(self.id()), at: NOW }.into()
    }

    pub(super) fn line(&self, deployment: DeploymentId, text: &str) -> NewLine {
        let (application_id, deployment_id) = (self.id(), deployment);
        NewLine { application_id, deployment_id, level: Level::Info, text: text.to_owned(), at: NOW }
    }
}

pub(super) fn advance(deployment: DeploymentId, to: DeploymentState) -> Write {
    let progress = Progress { state: Some(to), ..Progress::default() };
    DeploymentWrite::Advance { id: deployment, progress, at: NOW }.into()
}

/// Returns a worker of one instance, in its run `boot`.
pub(super) fn worker(boot: u128) -> WorkerId {
    WorkerId { instance: Uuid::from_u128(1).into(), boot: Uuid::from_u128(boot).into(), worker: 1 }
}
