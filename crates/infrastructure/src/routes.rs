//! The routing of traffic, and the certificates of it: by the front proxy, or none.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use launchway_domain::{
    applications::Hostname,
    certificates::{CertificateServer, Challenge, HstsMaxAge, ServedCertificate},
    deployments::{ContainerId, StepError},
    ids::ApplicationId,
    routes::{Endpoint, Route, Target, TrafficRouter},
};
use launchway_proxy::{
    certificates as tls,
    control::{Client, ControlError},
    routes as wire,
};

use crate::certificates::tls_challenge;

/// The front proxy, controlled by its socket.
#[derive(Debug, Clone)]
pub struct FrontProxy {
    control: Client,
    /// The timeout of draining requests before their container is stopped.
    max_wait: Duration,
    /// The process id of the proxy that last got all routes; 0 for none.
    confirmed: Arc<AtomicU32>,
    /// That proxy knows that its routes do not expire.
    is_endless: Arc<AtomicBool>,
    /// The route of the API.
    api: Option<wire::Route>,
}

/// The name of the route of the API, which no application has: theirs are ids.
const API: &str = "api";

impl FrontProxy {
    /// Returns the proxy whose control socket is in `folder`.
    #[must_use]
    pub fn at(folder: &Path, max_wait: Duration) -> Self {
        let control = Client::at(folder);
        Self { control, max_wait, confirmed: Arc::default(), is_endless: Arc::default(), api: None }
    }

    /// Also routes `domain` to the API at `address`, over HTTPS only.
    #[must_use]
    pub fn with_api(self, domain: &Hostname, address: SocketAddr) -> Self {
        let endpoint = wire::Endpoint { id: API.to_owned(), address };
        let api = wire::Route {
            application: API.to_owned(),
            hosts: vec![domain.as_str().to_owned()],
            target: wire::Target::Endpoints(vec![endpoint]),
            https_only: true,
        };
        Self { api: Some(api), ..self }
    }
}

#[async_trait]
impl TrafficRouter for FrontProxy {
    async fn set(&self, route: &Route) -> Result<(), StepError> {
        self.control.set(to_wire(route)).await.map_err(fault)
    }

    async fn remove(&self, application: ApplicationId) -> Result<(), StepError> {
        self.control.remove(&application.to_string()).await.map_err(fault)
    }

    async fn replace_all(&self, routes: &[Route]) -> Result<(), StepError> {
        self.confirmed.store(0, Ordering::Relaxed);
        let status = self.control.status().await.map_err(fault)?;
        let routes = routes.iter().map(to_wire).chain(self.api.clone());
        self.control.replace_all(routes.collect()).await.map_err(fault)?;
        self.confirmed.store(status.process, Ordering::Relaxed);
        self.is_endless.store(false, Ordering::Relaxed);
        Ok(())
    }

    async fn is_current(&self) -> Result<bool, StepError> {
        let status = self.control.status().await.map_err(fault)?;
        Ok(status.is_trusted && status.process == self.confirmed.load(Ordering::Relaxed))
    }

    async fn lease(&self, lease: Option<Duration>) -> Result<(), StepError> {
        if lease.is_none() && self.is_endless.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.control.lease(lease).await {
            // A proxy of an earlier version does not know leases: its routes do not expire.
            Err(ControlError::Refused(_)) if lease.is_none() => {}
            outcome => outcome.map_err(fault)?,
        }
        self.is_endless.store(lease.is_none(), Ordering::Relaxed);
        Ok(())
    }

    async fn drain(
        &self,
        application: ApplicationId,
        container: Option<ContainerId>,
    ) -> Result<(), StepError> {
        let container = container.as_ref().map(ContainerId::as_str);
        let drained = self.control.drain(&application.to_string(), container, self.max_wait).await;
        let is_drained = drained.map_err(fault)?;
        if !is_drained {
            tracing::info!(application.id = %application, "drain timed out, open requests are closed");
        }
        Ok(())
    }
}

#[async_trait]
impl CertificateServer for FrontProxy {
    async fn revision(&self) -> Result<Option<String>, StepError> {
        Ok(self.control.status().await.map_err(fault)?.certificates)
    }

    async fn set_certificates(
        &self,
        revision: &str,
        certificates: Vec<ServedCertificate>,
    ) -> Result<(), StepError> {
        let certificates = certificates.into_iter().map(|one| tls::Certificate {
            names: vec![one.domain.as_str().to_owned()],
            chain: one.chain,
            key: one.key.expose().clone(),
            not_after: u64::try_from(one.not_after.timestamp()).unwrap_or_default(),
            hsts_seconds: one.hsts.map(HstsMaxAge::get),
        });
        self.control.set_certificates(revision, certificates.collect()).await.map_err(fault)
    }

    async fn set_challenges(&self, challenges: Vec<Challenge>) -> Result<(), StepError> {
        let (mut over_http, mut over_tls) = (Vec::new(), Vec::new());
        for Challenge { token, key_authorization, tls_domain } in challenges {
            match tls_domain {
                None => over_http.push(tls::Challenge { token, key_authorization }),
                Some(domain) => over_tls.push(challenge_certificate(&domain, &key_authorization)?),
            }
        }
        self.control.set_challenges(over_http, over_tls).await.map_err(fault)
    }
}

fn to_wire(route: &Route) -> wire::Route {
    let target = match &route.target {
        Target::Endpoints(endpoints) => {
            let endpoints = endpoints.iter();
            let endpoints = endpoints.map(|Endpoint { id, address }| wire::Endpoint {
                id: id.as_str().to_owned(),
                address: *address,
            });
            wire::Target::Endpoints(endpoints.collect())
        }
        Target::Site(folder) => wire::Target::Site { folder: folder.clone() },
        Target::Stopped => wire::Target::Stopped,
        Target::Absent => wire::Target::Absent,
    };
    let (application, hosts) = (route.subject.to_string(), route.hosts.clone());
    wire::Route { application, hosts, target, https_only: false }
}

fn challenge_certificate(domain: &Hostname, key_authorization: &str) -> Result<tls::Certificate, StepError> {
    let (chain, key) = tls_challenge::certificate(domain, key_authorization)
        .map_err(|error| StepError::failed("the answer to a challenge cannot be created", error))?;
    Ok(tls::Certificate {
        names: vec![domain.as_str().to_owned()],
        chain,
        key,
        // It is removed with its challenge.
        not_after: i64::MAX.unsigned_abs(),
        hsts_seconds: None,
    })
}

fn fault(error: ControlError) -> StepError {
    StepError::failed("the front proxy cannot be updated", error)
}

/// No proxy: an application is reached at its container's own address, which is in its log, and a site in
/// its folder.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProxy;

#[async_trait]
impl TrafficRouter for NoProxy {
    fn is_there(&self) -> bool {
        false
    }

    async fn set(&self, _: &Route) -> Result<(), StepError> {
        Ok(())
    }

    async fn remove(&self, _: ApplicationId) -> Result<(), StepError> {
        Ok(())
    }

    async fn replace_all(&self, _: &[Route]) -> Result<(), StepError> {
        Ok(())
    }

    async fn drain(&self, _: ApplicationId, _: Option<ContainerId>) -> Result<(), StepError> {
        Ok(())
    }
}
