//! Snapshots: readings that the viewers of live pages share.
//!
//! A page that people leave open reads the same records again and again. However many they are, the records are read
//! once a second, and a viewer who has the current version needs nothing.

mod cache;

use std::sync::Arc;

use launchway_domain::{
    applications::{
        Application, ApplicationDetail, ApplicationFilter, ApplicationRepository, ApplicationSummary,
    },
    auth::{Action, Actor, Permission, Resource},
    deployments::{Deployment, DeploymentDetail, DeploymentRepository},
    ids::{ApplicationId, DeploymentId, OrganizationId},
    page::{Page, PageRequest},
};

use self::cache::SnapshotCache;
pub use self::cache::{Freshness, Snapshot};
use crate::{Error, applications::APPLICATION, deployments::DEPLOYMENT, routes::Routes};

const READ: Permission = Permission::new(Resource::Deploy, Action::Read);

/// The ports of snapshots.
pub struct SnapshotPorts {
    /// Reads applications.
    pub applications: Arc<dyn ApplicationRepository>,
    /// Reads deployments.
    pub deployments: Arc<dyn DeploymentRepository>,
    /// Knows the URLs of applications.
    pub routes: Arc<Routes>,
}

/// An application of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedApplication {
    /// The application, with its organization and its creator.
    pub summary: ApplicationSummary,
    /// Its newest deployment.
    pub newest: Option<Deployment>,
    /// Its URL; `None` if no traffic is routed.
    pub url: Option<String>,
}

/// An application with its newest deployments and log lines, and its URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownApplication {
    /// The application, with its newest deployments and log lines.
    pub detail: ApplicationDetail,
    /// Its URL; `None` if no traffic is routed.
    pub url: Option<String>,
}

/// The list, its filter and its page, which are the key of its snapshot.
type ListKey = (OrganizationId, String);

/// Reads what live pages show. The variables of applications are not part of it.
pub struct Snapshots {
    ports: SnapshotPorts,
    lists: SnapshotCache<ListKey, Page<ListedApplication>>,
    applications: SnapshotCache<(OrganizationId, ApplicationId), ShownApplication>,
    deployments: SnapshotCache<(OrganizationId, DeploymentId), DeploymentDetail>,
}

impl Snapshots {
    /// Returns the use cases over `ports`.
    #[must_use]
    pub fn new(ports: SnapshotPorts) -> Self {
        let (lists, applications, deployments) = Default::default();
        Self { ports, lists, applications, deployments }
    }

    /// Returns a page of the applications of the actor's organization, newest first.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `deploy:read`.
    pub async fn applications(
        &self,
        actor: &Actor,
        filter: &ApplicationFilter,
        page: PageRequest,
        freshness: Freshness,
    ) -> Result<Snapshot<Page<ListedApplication>>, Error> {
        let scope = actor.require(READ)?;
        let key = (scope.id(), format!("{filter:?} {page:?}"));
        let read = async || {
            let Page { items, request, total } = self.ports.applications.page(scope, filter, page).await?;
            let ids: Vec<_> = items.iter().map(|summary| summary.application.id).collect();
            let mut newest = self.ports.deployments.newest(scope, &ids).await?;
            let items = items.into_iter().map(|summary| {
                let id = summary.application.id;
                let place = newest.iter().position(|deployment| deployment.application_id == id);
                ListedApplication {
                    url: self.url(&summary.application),
                    newest: place.map(|place| newest.swap_remove(place)),
                    summary,
                }
            });
            Ok(Page { items: items.collect(), request, total })
        };
        self.lists.get(key, freshness, read).await
    }

    /// Returns an application of the actor's organization, with its newest deployments and log lines.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that id, [`Error::Forbidden`] without the permission
    /// `deploy:read`.
    pub async fn application(
        &self,
        actor: &Actor,
        id: ApplicationId,
        freshness: Freshness,
    ) -> Result<Snapshot<ShownApplication>, Error> {
        let scope = actor.require(READ)?;
        let read = async || {
            let detail = self.ports.applications.detail(scope, id).await?.ok_or(APPLICATION)?;
            let url = self.url(&detail.summary.application);
            Ok(ShownApplication { detail, url })
        };
        self.applications.get((scope.id(), id), freshness, read).await
    }

    /// Returns a deployment of the actor's organization, with its application and its newest log lines.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that id, [`Error::Forbidden`] without the permission
    /// `deploy:read`.
    pub async fn deployment(
        &self,
        actor: &Actor,
        id: DeploymentId,
        freshness: Freshness,
    ) -> Result<Snapshot<DeploymentDetail>, Error> {
        let scope = actor.require(READ)?;
        let read = async || self.ports.deployments.detail(scope, id).await?.ok_or(DEPLOYMENT);
        self.deployments.get((scope.id(), id), freshness, read).await
    }

    fn url(&self, application: &Application) -> Option<String> {
        self.ports.routes.url(application)
    }
}
