//! The request for a deployment, as the writes that record it.

use launchway_domain::{
    applications::{Application, BuildPack},
    auth::Actor,
    deployments::{BuildCache, CommitHash, Deployment, DeploymentKind, SourceDigest, Write},
    ids::DeploymentId,
    jobs::{JobKind, NewJob, Pool, Write as JobWrite},
    logs::{Level, NewLine, Write as LogWrite},
    organizations::Scope,
    quotas::{Quotas, Resource as Limited},
    store,
};

use crate::ServiceContext;

/// A requested deployment, and its job.
pub(crate) struct Request {
    pub(crate) deployment: Deployment,
    job: NewJob,
}

impl Request {
    /// Returns a pending deployment of `application`.
    pub(crate) fn of(application: &Application, kind: DeploymentKind, context: &ServiceContext) -> Self {
        let mut job = job_about(application, JobKind::Deploy, context);
        let ids = (context.ids.next().into(), context.ids.next().into());
        let whose = (application.organization_id, application.id);
        let deployment = Deployment::new(ids, whose, kind, job.id, context.clock.now());
        job.payload = deployment.id.to_string();
        Self { deployment, job }
    }

    /// Returns the same deployment with this use of the build cache.
    pub(crate) fn with_cache(mut self, cache: BuildCache) -> Self {
        self.deployment.build_cache = cache;
        self
    }

    /// Returns a pending deployment of a commit that was sent to this server.
    pub(crate) fn of_commit(
        application: &Application,
        id: DeploymentId,
        commit: CommitHash,
        context: &ServiceContext,
    ) -> Self {
        let mut request = Self::of(application, DeploymentKind::Fresh, context);
        request.deployment.id = id;
        request.deployment.commit = Some(commit);
        request.job.payload = id.to_string();
        request
    }

    /// Returns the same deployment with the digest of the upload that its commit was made of.
    pub(crate) fn with_digest(mut self, digest: Option<SourceDigest>) -> Self {
        self.deployment.source_digest = digest;
        self
    }

    /// Returns the guard that fails when the deployment makes an image, and the organization's images take
    /// as many bytes as they may. The size of the image is not known before it is made.
    pub(crate) fn image_room(
        &self,
        quotas: Quotas,
        application: &Application,
        context: &ServiceContext,
    ) -> Option<store::Write> {
        let makes_image = self.deployment.kind == DeploymentKind::Fresh
            && application.blueprint.build_pack != BuildPack::Static;
        let scope = Scope::of_record(application.organization_id);
        let guard = makes_image.then(|| quotas.require(scope, Limited::ImageBytes, 1, context.clock.now()));
        guard.flatten().map(Into::into)
    }

    /// Returns the writes that make it durable. It replaces a pending one of the same application.
    pub(crate) fn writes(self, actor: &Actor, context: &ServiceContext) -> Vec<store::Write> {
        let username = actor.user().username.as_str();
        self.writes_because(username, &format!("by {username}"), context)
    }

    /// Returns the same writes for a request by `by`, who is not a user of Launchway; `reason` is logged.
    pub(crate) fn writes_because(
        mut self,
        by: &str,
        reason: &str,
        context: &ServiceContext,
    ) -> Vec<store::Write> {
        self.deployment.requested_by = by.to_owned();
        let text = match self.deployment.kind {
            DeploymentKind::Fresh if self.deployment.build_cache == BuildCache::Ignore => {
                format!("Deployment without the build cache requested {reason}")
            }
            DeploymentKind::Fresh => format!("Deployment requested {reason}"),
            DeploymentKind::Rollback { to } => format!("Rollback to deployment {to} requested {reason}"),
        };
        let at = context.clock.now();
        let line = NewLine {
            application_id: self.deployment.application_id,
            deployment_id: self.deployment.id,
            level: Level::Info,
            text,
            at,
        };
        let application = Some(self.deployment.application_id);
        vec![
            JobWrite::Enqueue(self.job).into(),
            Write::Insert(self.deployment).into(),
            Write::FollowJobs { application, at }.into(),
            LogWrite::Append(vec![line]).into(),
        ]
    }
}

/// Returns a job on `application`. A newer one of its kind replaces it while it is pending.
pub(crate) fn job_about(application: &Application, kind: JobKind, context: &ServiceContext) -> NewJob {
    let now = context.clock.now();
    NewJob {
        id: context.ids.next().into(),
        kind,
        scope: Scope::of_record(application.organization_id),
        subject: application.id.into(),
        replaceable: true,
        payload: String::new(),
        pool: pool(application, kind),
        run_at: now,
        enqueued_at: now,
    }
}

/// Returns the worker pool of a job on `application`.
fn pool(application: &Application, kind: JobKind) -> Pool {
    match (kind, application.blueprint.build_pack) {
        (JobKind::RunExtension | JobKind::UninstallExtension, _) => Pool::Extensions,
        // The version before it became a site may still be on the engine.
        (JobKind::Remove | JobKind::Reconcile, _) => Pool::Operations,
        (JobKind::Deploy | JobKind::Restart | JobKind::Stop, BuildPack::Static) => Pool::Sites,
        (JobKind::Deploy, _) => Pool::Builds,
        (JobKind::Restart | JobKind::Stop, _) => Pool::Operations,
    }
}

#[cfg(test)]
mod tests {
    use launchway_testkit::builders::an_application;

    use super::*;

    #[test]
    fn jobs_on_sites_wait_for_no_engine_unless_they_remove() {
        let mut site = an_application().build();
        site.blueprint.build_pack = BuildPack::Static;
        let pools = |application: &Application| JobKind::ALL.map(|kind| pool(application, kind));
        let of_container = [
            Pool::Builds,
            Pool::Operations,
            Pool::Operations,
            Pool::Operations,
            Pool::Operations,
            Pool::Extensions,
            Pool::Extensions,
        ];
        assert_eq!(pools(&an_application().build()), of_container);
        let of_site = [
            Pool::Sites,
            Pool::Sites,
            Pool::Sites,
            Pool::Operations,
            Pool::Operations,
            Pool::Extensions,
            Pool::Extensions,
        ];
        assert_eq!(pools(&site), of_site);
    }
}
