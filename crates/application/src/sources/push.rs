//! Receives pushes.

use launchway_domain::{
    applications::{Application, Branch, GitUrl},
    auth::Actor,
    deployments::{CommitHash, StepError},
    idempotency::IdempotencyKey,
    ids::{ApplicationId, DeploymentId},
    sources::{PendingSource, PushRequest, Received, RefUpdate, Report, branch_reference, upload_reference},
};

use super::{
    CREATE, CommitOrigin, Describe, NewSource, SourceTarget, Sources, TargetName, is_hosted, refused,
    sentence,
};
use crate::{
    Error,
    applications::{APPLICATION, SentCommit},
};

/// The result of a push.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pushed {
    /// The answer of git.
    pub report: Report,
    /// Sentences for the user.
    pub lines: Vec<String>,
    /// The deployment of the push.
    pub deployment: Option<DeploymentId>,
}

impl Pushed {
    fn refusal(push: &PushRequest, reason: &str) -> Self {
        Self { report: Report::refusal(push, reason), lines: vec![reason.to_owned()], deployment: None }
    }
}

impl Sources {
    /// Receives a push, and deploys it if it moves the branch that the application follows. Either the branch moves and a
    /// deployment exists, or neither.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `deploy:create`, [`Error::Conflict`] if the servers of this installation
    /// do not share their repositories. What git refuses is part of the result.
    pub async fn push(
        &self,
        actor: &Actor,
        target: &SourceTarget,
        (push, body): (PushRequest, Received),
        describe: &Describe,
    ) -> Result<Pushed, Error> {
        actor.require(CREATE)?;
        self.require_one_place()?;
        if let Some(wrong) = push.updates.iter().find(|update| !update.is_allowed()) {
            let name: String = wrong.name.escape_debug().take(100).collect();
            return Ok(Pushed::refusal(&push, &format!("{name} is neither a branch nor a tag")));
        }
        let _turn = self.turns.wait(target.id()).await;
        match target {
            SourceTarget::Existing(application) => {
                // Another push may have changed it while this one waited.
                let scope = actor.require(CREATE)?;
                let application = self.ports.applications.get(scope, application.id).await?;
                self.push_to(actor, &application.ok_or(APPLICATION)?, push, body).await
            }
            SourceTarget::New { id, name } => self.push_new(actor, (*id, name), (push, body), describe).await,
        }
    }

    /// Receives a push to an existing application.
    async fn push_to(
        &self,
        actor: &Actor,
        application: &Application,
        push: PushRequest,
        body: Received,
    ) -> Result<Pushed, Error> {
        let branch = application.blueprint.branch.clone().filter(|_| is_hosted(application));
        let followed = branch.as_ref().and_then(|branch| update_of(&push, branch)).cloned();
        let (Some(branch), Some(update)) = (branch, followed) else {
            return self.store(application, &push, body).await;
        };
        let Some(new) = update.new.clone() else {
            let reason = format!("{branch} is deployed, and cannot be deleted: change the branch first");
            return Ok(Pushed::refusal(&push, &reason));
        };
        if !application.blueprint.auto_deploy {
            return self.store(application, &push, body).await;
        }
        let pending = PendingSource {
            organization: application.organization_id,
            application: application.id,
            deployment: self.context.ids.next().into(),
            reference: update.name.clone(),
            old: update.old.clone(),
            new,
            by: actor.user().username.as_str().to_owned(),
            digest: None,
            key: None,
        };
        self.ports.repositories.begin(&pending).await.map_err(refused)?;
        let pushed = self.receive_and_deploy(actor, application, (&push, body), &pending, &branch).await;
        if pushed.is_ok() {
            self.ports.repositories.end(&pending).await.map_err(refused)?;
        }
        pushed
    }

    async fn receive_and_deploy(
        &self,
        actor: &Actor,
        application: &Application,
        (push, body): (&PushRequest, Received),
        pending: &PendingSource,
        branch: &Branch,
    ) -> Result<Pushed, Error> {
        let repositories = &self.ports.repositories;
        let report = match self.receive(application.id, push, body).await? {
            Ok(report) => report,
            Err(pushed) => return Ok(pushed),
        };
        let accepted = (pending.reference.as_str(), &pending.new);
        if !self.is_accepted(application.id, (push, &report), accepted).await? {
            // Git refused the branch, and says why.
            return Ok(Pushed { report, ..Pushed::default() });
        }
        if let Some(deployed) = self.unchanged_since(application, &pending.new).await? {
            self.forget_upload(application.id, branch).await?;
            let (name, commit) = (&application.blueprint.name, pending.new.short());
            let lines = vec![
                format!(
                    "Ignored {commit} of {branch}: no path of watch_paths changed since {}",
                    deployed.short()
                ),
                format!("`launchway deploy {name}` deploys it"),
            ];
            return Ok(Pushed { report, lines, deployment: None });
        }
        let how = CommitOrigin::push(branch);
        if let Err(error) = self.deploy(application, pending, actor.author(), &how).await {
            let error = Error::from(error);
            let (old, new) = (pending.old.clone(), Some(pending.new.clone()));
            let moved_back = repositories.move_reference(application.id, &pending.reference, new, old).await;
            moved_back.map_err(refused)?;
            return Ok(Pushed { report, ..Pushed::refusal(push, &sentence(&error)) }.refused(push));
        }
        self.forget_upload(application.id, branch).await?;
        let lines = vec![format!("Deploying {} of {branch}", pending.new.short())];
        Ok(Pushed { report, lines, deployment: Some(pending.deployment) })
    }

    /// Stores a push that deploys nothing, and says what to do.
    async fn store(
        &self,
        application: &Application,
        push: &PushRequest,
        body: Received,
    ) -> Result<Pushed, Error> {
        let report = match self.receive(application.id, push, body).await? {
            Ok(report) => report,
            Err(pushed) => return Ok(pushed),
        };
        let lines = match push.updates.is_empty() {
            true => Vec::new(),
            false => advice(application, push),
        };
        Ok(Pushed { report, lines, deployment: None })
    }

    /// Creates an application by its first push.
    async fn push_new(
        &self,
        actor: &Actor,
        (id, name): (ApplicationId, &TargetName),
        (push, body): (PushRequest, Received),
        describe: &Describe,
    ) -> Result<Pushed, Error> {
        if push.updates.is_empty() {
            return self.store_nothing(push, body).await;
        }
        let Some((branch, commit)) = branch_to_follow(&push) else {
            return Ok(Pushed::refusal(&push, "the first push to an application needs a branch"));
        };
        let created =
            self.create_by_push(actor, (id, name), (&push, body), (&branch, &commit), describe).await;
        if !created.as_ref().is_ok_and(|pushed| pushed.deployment.is_some()) {
            self.ports.repositories.remove(id).await.map_err(refused)?;
        }
        created
    }

    async fn create_by_push(
        &self,
        actor: &Actor,
        (id, name): (ApplicationId, &TargetName),
        (push, body): (&PushRequest, Received),
        (branch, commit): (&Branch, &CommitHash),
        describe: &Describe,
    ) -> Result<Pushed, Error> {
        let report = match self.receive(id, push, body).await? {
            Ok(report) => report,
            Err(pushed) => return Ok(pushed),
        };
        if !self.is_accepted(id, (push, &report), (branch_reference(branch).as_str(), commit)).await? {
            return Ok(Pushed { report, ..Pushed::default() });
        }
        match self
            .create(actor, (id, name), (branch, commit), (&CommitOrigin::push(branch), None), describe)
            .await
        {
            Ok(deployment) => {
                let TargetName { name, environment } = name;
                let lines = vec![
                    format!("Created the application {name} ({environment})"),
                    format!("Deploying {} of {branch}", commit.short()),
                ];
                Ok(Pushed { report, lines, deployment: Some(deployment) })
            }
            Err(error) => Ok(Pushed { report, ..Pushed::refusal(push, &sentence(&error)) }.refused(push)),
        }
    }

    /// Creates an application with the source that is in its repository, and returns its first deployment.
    pub(super) async fn create(
        &self,
        actor: &Actor,
        (id, name): (ApplicationId, &TargetName),
        (branch, commit): (&Branch, &CommitHash),
        (how, key): (&CommitOrigin, Option<IdempotencyKey>),
        describe: &Describe,
    ) -> Result<DeploymentId, Error> {
        let files = self.ports.repositories.top_files(id, commit).await.map_err(refused)?;
        let repository = GitUrl::hosted(id);
        let source = NewSource { name: name.clone(), repository, branch: branch.clone(), files };
        let new = describe(&source).map_err(Error::Invalid)?;
        let deployment: DeploymentId = self.context.ids.next().into();
        let (digest, what) = (how.digest.clone(), how.what.clone());
        let sent = SentCommit { deployment, commit: commit.clone(), digest, what };
        self.applications.create_from_source(actor, id, new, sent, key).await?;
        Ok(deployment)
    }

    /// Receives a push; the inner error is the answer to one that cannot be received.
    async fn receive(
        &self,
        id: ApplicationId,
        push: &PushRequest,
        body: Received,
    ) -> Result<Result<Report, Pushed>, Error> {
        match self.ports.repositories.receive(id, body).await {
            Ok(output) => Ok(Ok(Report::read(&output, push))),
            Err(StepError::Rejected(reason)) => Ok(Err(Pushed::refusal(push, &reason))),
            Err(error) => Err(refused(error)),
        }
    }

    /// Answers a client that only asks whether it may push: nothing is created.
    async fn store_nothing(&self, push: PushRequest, _body: Received) -> Result<Pushed, Error> {
        Ok(Pushed { report: Report::refusal(&push, ""), ..Pushed::default() })
    }

    /// Returns whether git moved the reference. Its results decide: another push of the same commit may have been faster.
    async fn is_accepted(
        &self,
        id: ApplicationId,
        (push, report): (&PushRequest, &Report),
        (reference, commit): (&str, &CommitHash),
    ) -> Result<bool, Error> {
        if push.has_report {
            return Ok(report.accepts(reference));
        }
        Ok(self.head(id, reference).await?.as_ref() == Some(commit))
    }

    pub(super) async fn head(&self, id: ApplicationId, reference: &str) -> Result<Option<CommitHash>, Error> {
        self.ports.repositories.resolve(id, reference).await.map_err(refused)
    }

    /// Makes a redeployment use the branch again, after an upload.
    pub(super) async fn forget_upload(&self, id: ApplicationId, branch: &Branch) -> Result<(), Error> {
        let reference = upload_reference(branch);
        if let Some(upload) = self.head(id, &reference).await? {
            let removed = self.ports.repositories.move_reference(id, &reference, Some(upload), None).await;
            removed.map_err(refused)?;
        }
        Ok(())
    }
}

impl Pushed {
    /// Replaces the results of git by a refusal, and keeps its text.
    fn refused(self, push: &PushRequest) -> Self {
        let reason = self.lines.first().cloned().unwrap_or_default();
        let results = Report::refusal(push, &reason).results;
        Self { report: Report { results, ..self.report }, ..self }
    }
}

fn update_of<'a>(push: &'a PushRequest, branch: &Branch) -> Option<&'a RefUpdate> {
    let name = branch_reference(branch);
    push.updates.iter().find(|update| update.name == name)
}

/// Returns the branch that an application follows after its first push.
fn branch_to_follow(push: &PushRequest) -> Option<(Branch, CommitHash)> {
    let branches = push.updates.iter().filter_map(|update| Some((update.branch()?, update.new.clone()?)));
    let rank = |branch: &Branch| match branch.as_str() {
        "main" => 0,
        "master" => 1,
        _ => 2,
    };
    branches.min_by_key(|(branch, _)| rank(branch))
}

/// Says what deploys the source of a push that deployed nothing.
fn advice(application: &Application, push: &PushRequest) -> Vec<String> {
    let name = &application.blueprint.name;
    let followed = application.blueprint.branch.as_ref();
    if !is_hosted(application) {
        let (id, repository) = (application.id, application.blueprint.repository.as_str());
        return vec![
            format!("Stored, but not deployed: {name} is deployed from {repository}"),
            format!(
                "`launchway app edit {name} --repository {}` deploys from here",
                GitUrl::hosted(id).as_str()
            ),
        ];
    }
    let is_followed = followed.is_some_and(|branch| update_of(push, branch).is_some());
    if is_followed {
        return vec![format!("Stored, but not deployed: `launchway deploy {name}` deploys it")];
    }
    let Some(branch) = followed else { return Vec::new() };
    let pushed = push.updates.iter().find_map(RefUpdate::branch);
    let mut lines = vec![format!("Stored, but not deployed: {name} follows the branch {branch}")];
    if let Some(pushed) = pushed {
        lines.push(format!("`git push launchway {pushed}:{branch}` deploys it"));
    }
    lines
}
