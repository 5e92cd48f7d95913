//! The writes that make a preview, or deploy it again.

use launchway_domain::{
    applications::{Application, Branch, Write as ApplicationWrite},
    audit::{Action as Did, Author, Event, Resource as Audited},
    clock::Timestamp,
    deployments::{CommitHash, DeploymentKind},
    ids::ApplicationId,
    organizations::Scope,
    previews::{Preview, PreviewSettings, PreviewState, Write},
    quotas::Resource as Limited,
    store,
};

use super::Previews;
use crate::{
    Error,
    applications::{OpenSecrets, titled},
    deployments::Request,
};

/// A preview that is to be deployed.
pub(super) struct Start<'a> {
    /// The application that it is a preview of.
    pub(super) parent: &'a Application,
    /// The preview settings of that application.
    pub(super) settings: &'a PreviewSettings,
    /// The preview as it is to be recorded, with the application that runs it already, if there is one.
    pub(super) preview: Preview,
    /// When its record was last changed.
    pub(super) seen: Option<Timestamp>,
    /// The branch, or the reference of a request from a fork.
    pub(super) branch: Branch,
    /// The approved commit of a fork.
    pub(super) commit: Option<CommitHash>,
    /// The person or program that requests it, and the way in which.
    pub(super) by: String,
    pub(super) reason: String,
    pub(super) author: Author,
}

/// The writes of a preview.
pub(super) struct Started {
    pub(super) application: ApplicationId,
    pub(super) writes: Vec<store::Write>,
    /// The entry of the audit log, which comes last.
    pub(super) entry: store::Write,
}

impl Previews {
    /// Returns the writes that make the preview and its first deployment, or update it and request another one.
    pub(super) async fn start(&self, start: Start<'_>) -> Result<Started, Error> {
        let Start { parent, settings, preview, seen, branch, commit, by, reason, author } = start;
        let scope = Scope::of_record(parent.organization_id);
        let (number, now) = (preview.number, self.context.clock.now());
        let blueprint = settings
            .blueprint(&parent.blueprint, number, branch)
            .map_err(|refused| Error::Invalid(format!("the name of a preview {refused}")))?;
        let secrets = self.secrets_of(parent, settings)?;
        let running = match preview.application {
            // If it was deleted since, its record is gone too, and the guard of the record fails.
            Some(id) => self.ports.applications.get(scope, id).await?,
            None => None,
        };
        let mut writes = Vec::new();
        let (application, did) = match running {
            Some(application) => {
                let secrets = secrets.instead_of(&self.vault.open(&application)?);
                let update = ApplicationWrite::Update {
                    scope,
                    id: application.id,
                    seen: Some(application.updated_at),
                    blueprint: Box::new(blueprint),
                    secrets: self.vault.seal(application.id, &secrets)?,
                    at: now,
                };
                writes.push(update.into());
                (application, Did::Update)
            }
            None => {
                let (id, status_id) = (self.context.ids.next().into(), self.context.ids.next().into());
                let secrets = self.vault.seal(id, &secrets)?;
                let application = parent.beside((id, status_id), blueprint, secrets, now);
                writes.extend(self.quotas.require(scope, Limited::Applications, 1, now).map(Into::into));
                writes.push(ApplicationWrite::Insert(Box::new(application.clone())).into());
                (application, Did::Create)
            }
        };
        let request = match commit {
            None => Request::of(&application, DeploymentKind::Fresh, &self.context),
            Some(commit) => {
                Request::of_commit(&application, self.context.ids.next().into(), commit, &self.context)
            }
        };
        writes.extend(request.image_room(self.quotas, &application, &self.context));
        writes.extend(request.writes_because(&by, &reason, &self.context));
        let preview = Preview {
            application: Some(application.id),
            state: PreviewState::Active,
            expires_at: now + settings.lifetime.duration(),
            updated_at: now,
            ..preview
        };
        let verb = if did == Did::Create { "created" } else { "updated" };
        let (name, title) = (&application.blueprint.name, titled(&parent.blueprint));
        let what = format!("{verb} the preview `{name}` of {title} {reason}");
        let event = Event::new(did, Audited::Application, application.id, what)
            .with("preview_of", parent.id)
            .with("request", number)
            .with("branch", &preview.branch);
        let event = match &preview.head {
            Some(head) => event.with("commit", head),
            None => event,
        };
        writes.push(Write::Put { scope, preview, seen, most: settings.limit.get() }.into());
        Ok(Started { application: application.id, writes, entry: self.context.record(author, event) })
    }

    /// Returns the secrets of a preview: the variables of the settings, those of the parent that are shared, and the
    /// credentials of the repository, which only git gets.
    fn secrets_of(&self, parent: &Application, settings: &PreviewSettings) -> Result<OpenSecrets, Error> {
        let (own, theirs) = (self.variables(settings)?, self.vault.open(parent)?);
        Ok(OpenSecrets {
            build_variables: own.build.with_shared(&theirs.build_variables, &settings.shared),
            environment_variables: own
                .environment
                .with_shared(&theirs.environment_variables, &settings.shared),
            credentials: theirs.credentials,
            former: Vec::new(),
        })
    }

    /// Wakes the workers, and routes the host of a new preview. The change is durable already: if the router cannot be
    /// updated now, the update is retried later.
    pub(super) async fn started(&self, scope: Scope, application: ApplicationId) {
        self.context.wake.notify();
        if let Err(error) = self.ports.routes.follow(scope, application).await {
            tracing::warn!(%error, application.id = %application, "route update failed; it is retried later");
        }
    }
}
