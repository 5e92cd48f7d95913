//! Previews of pull and merge requests: their settings, and what code hosts report about requests.
//!
//! **Invariant:** the variables of a preview are composed in `start` only: those of the preview settings, and those of
//! the application whose names are marked as shared.
//!
//! **Invariant:** a commit of a fork is deployed only by `approve`, with the commit that the member saw.

mod approval;
mod expiry;
mod report;
mod settings;
mod start;
mod statuses;
mod tokens;

use std::sync::Arc;

use launchway_domain::{
    applications::ApplicationRepository,
    auth::{Action, Actor, Permission, Resource},
    ids::ApplicationId,
    notifications::WebhookSender,
    organizations::Scope,
    previews::{PreviewRepository, PreviewSummary},
    quotas::Quotas,
    secret::SecretBox,
    webhooks::WebhookRepository,
};

pub(crate) use self::report::RequestReport;
pub use self::settings::{PreviewChange, ShownPreviewSettings};
use crate::{
    Error, ServiceContext,
    applications::{APPLICATION, Vault},
    routes::Routes,
    webhooks::PathWatcher,
};

const CREATE: Permission = Permission::new(Resource::Deploy, Action::Create);
const READ: Permission = Permission::new(Resource::Deploy, Action::Read);
const UPDATE: Permission = Permission::new(Resource::Deploy, Action::Update);

/// The number of attempts at a change while the records change concurrently.
const ATTEMPTS: u32 = 5;

/// The ports of the use cases of previews.
pub struct PreviewPorts {
    /// Reads previews and their settings.
    pub previews: Arc<dyn PreviewRepository>,
    /// Reads applications.
    pub applications: Arc<dyn ApplicationRepository>,
    /// Reads accepted deliveries.
    pub webhooks: Arc<dyn WebhookRepository>,
    /// Encrypts and decrypts variables.
    pub secrets: Arc<dyn SecretBox>,
    /// Compares requests with the paths that applications watch.
    pub watcher: PathWatcher,
    /// Routes the traffic of previews.
    pub routes: Arc<Routes>,
    /// Sends commit statuses to code hosts.
    pub sender: Arc<dyn WebhookSender>,
}

/// Changes the preview settings of applications, and makes, updates and removes previews.
pub struct Previews {
    ports: PreviewPorts,
    vault: Vault,
    quotas: Quotas,
    context: ServiceContext,
}

/// A preview, and its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownPreview {
    /// The preview, and the application that runs it.
    pub summary: PreviewSummary,
    /// The address of it, if it has an application and traffic is routed.
    pub url: Option<String>,
}

impl Previews {
    /// Returns the use cases over `ports`, within `quotas`.
    pub fn new(ports: PreviewPorts, quotas: Quotas, context: ServiceContext) -> Self {
        let vault = Vault::new(Arc::clone(&ports.secrets));
        Self { ports, vault, quotas, context }
    }

    /// Returns the previews of an application of the actor's organization that are active or wait for an approval, in
    /// the order of their numbers.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no application with that id, [`Error::Forbidden`] without the permission
    /// `deploy:read`.
    pub async fn list(&self, actor: &Actor, id: ApplicationId) -> Result<Vec<ShownPreview>, Error> {
        let scope = actor.require(READ)?;
        self.ports.applications.get(scope, id).await?.ok_or(APPLICATION)?;
        self.shown(scope, id).await
    }

    async fn shown(&self, scope: Scope, id: ApplicationId) -> Result<Vec<ShownPreview>, Error> {
        let found = self.ports.previews.of_application(scope, id).await?;
        let shown = found.into_iter().map(|summary| {
            let url = summary.application.as_ref().and_then(|application| self.ports.routes.url(application));
            ShownPreview { summary, url }
        });
        Ok(shown.collect())
    }
}
