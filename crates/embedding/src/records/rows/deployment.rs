//! The stored form of deployments.

use std::net::IpAddr;

use launchway_domain::{
    applications::{ImageRef, Port},
    deployments::{BuildCache, ContainerRecord, Deployment, DeploymentKind, DeploymentStatus},
    ids::DeploymentId,
};
use serde::{Deserialize, Serialize};

use super::{Invalid, Value, id, micros, optional, text, timestamp};

#[derive(Serialize, Deserialize)]
pub(super) struct DeploymentValue {
    id: String,
    application_id: String,
    organization_id: String,
    /// The deployment that it rolls back to.
    rollback_to: Option<String>,
    requested_by: String,
    /// Absent unless the build ignores the cache.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    no_cache: bool,
    job_id: String,
    status_id: String,
    state: String,
    state_created_at: i64,
    state_updated_at: i64,
    commit: Option<String>,
    /// Absent unless its source is an upload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_digest: Option<String>,
    image: Option<String>,
    container: Option<ContainerValue>,
    /// Absent in records of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    further_copies: Vec<ContainerValue>,
    breakdown: Option<String>,
    created_at: i64,
    updated_at: i64,
}

#[derive(Serialize, Deserialize)]
struct ContainerValue {
    id: String,
    name: String,
    state: String,
    address: Option<IpAddr>,
    port: u16,
}

impl From<&Deployment> for DeploymentValue {
    fn from(one: &Deployment) -> Self {
        let rollback_to = match one.kind {
            DeploymentKind::Fresh => None,
            DeploymentKind::Rollback { to } => Some(to.to_string()),
        };
        Self {
            id: one.id.to_string(),
            application_id: one.application_id.to_string(),
            organization_id: one.organization_id.to_string(),
            rollback_to,
            requested_by: one.requested_by.clone(),
            no_cache: one.build_cache == BuildCache::Ignore,
            job_id: one.job_id.to_string(),
            status_id: one.status.id.to_string(),
            state: one.status.state.as_str().to_owned(),
            state_created_at: micros(one.status.created_at),
            state_updated_at: micros(one.status.updated_at),
            commit: one.commit.as_ref().map(ToString::to_string),
            source_digest: one.source_digest.as_ref().map(ToString::to_string),
            image: one.image.as_ref().map(ToString::to_string),
            container: one.container.as_ref().map(ContainerValue::from),
            further_copies: one.further_copies.iter().map(ContainerValue::from).collect(),
            breakdown: one.breakdown.clone(),
            created_at: micros(one.created_at),
            updated_at: micros(one.updated_at),
        }
    }
}

impl Value<Deployment> for DeploymentValue {
    fn into_record(self) -> Result<Deployment, Invalid> {
        let to = self.rollback_to.as_deref().map(id).transpose()?;
        Ok(Deployment {
            id: id(&self.id)?,
            application_id: id(&self.application_id)?,
            organization_id: id(&self.organization_id)?,
            kind: to.map_or(DeploymentKind::Fresh, |to| DeploymentKind::Rollback { to }),
            requested_by: self.requested_by,
            build_cache: if self.no_cache { BuildCache::Ignore } else { BuildCache::Use },
            job_id: id(&self.job_id)?,
            status: DeploymentStatus {
                id: id(&self.status_id)?,
                state: text(self.state)?,
                created_at: timestamp(self.state_created_at)?,
                updated_at: timestamp(self.state_updated_at)?,
            },
            commit: optional(self.commit)?,
            source_digest: optional(self.source_digest)?,
            image: optional(self.image)?,
            container: self.container.map(ContainerValue::into_record).transpose()?,
            further_copies: self
                .further_copies
                .into_iter()
                .map(ContainerValue::into_record)
                .collect::<Result<_, _>>()?,
            breakdown: self.breakdown,
            created_at: timestamp(self.created_at)?,
            updated_at: timestamp(self.updated_at)?,
        })
    }
}

impl From<&ContainerRecord> for ContainerValue {
    fn from(container: &ContainerRecord) -> Self {
        Self {
            id: container.id.to_string(),
            name: container.name.clone(),
            state: container.state.as_str().to_owned(),
            address: container.address,
            port: container.port.get(),
        }
    }
}

impl ContainerValue {
    fn into_record(self) -> Result<ContainerRecord, Invalid> {
        Ok(ContainerRecord {
            id: text(self.id)?,
            name: self.name,
            state: text(self.state)?,
            address: self.address,
            port: Port::try_from(self.port)?,
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct ArtifactValue {
    deployment: String,
    image: String,
}

impl ArtifactValue {
    pub(super) fn of(deployment: DeploymentId, image: &ImageRef) -> Self {
        Self { deployment: deployment.to_string(), image: image.to_string() }
    }
}

impl Value<(DeploymentId, ImageRef)> for ArtifactValue {
    fn into_record(self) -> Result<(DeploymentId, ImageRef), Invalid> {
        Ok((id(&self.deployment)?, text(self.image)?))
    }
}
