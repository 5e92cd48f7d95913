//! The stored form of log lines and of the audit log.

use std::{collections::BTreeMap, net::IpAddr};

use launchway_domain::{
    audit::{Chain, Entry},
    logs::LogLine,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Invalid, Value, id, micros, text, timestamp};

#[derive(Serialize, Deserialize)]
pub(super) struct LineValue {
    application_id: String,
    number: i64,
    deployment_id: String,
    level: String,
    text: String,
    at: i64,
}

impl From<&LogLine> for LineValue {
    fn from(line: &LogLine) -> Self {
        Self {
            application_id: line.application_id.to_string(),
            number: line.number,
            deployment_id: line.deployment_id.to_string(),
            level: line.level.as_str().to_owned(),
            text: line.text.clone(),
            at: micros(line.at),
        }
    }
}

impl Value<LogLine> for LineValue {
    fn into_record(self) -> Result<LogLine, Invalid> {
        Ok(LogLine {
            number: self.number,
            application_id: id(&self.application_id)?,
            deployment_id: id(&self.deployment_id)?,
            level: text(self.level)?,
            text: self.text,
            at: timestamp(self.at)?,
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct EntryValue {
    number: u64,
    id: String,
    chain: Uuid,
    actor: String,
    actor_id: Option<String>,
    action: String,
    resource: String,
    resource_id: String,
    message: String,
    metadata: BTreeMap<String, String>,
    request_id: String,
    address: Option<IpAddr>,
    at: i64,
}

impl EntryValue {
    pub(super) fn of(number: u64, entry: &Entry) -> Self {
        Self {
            number,
            id: entry.id.to_string(),
            chain: entry.chain.id(),
            actor: entry.actor.clone(),
            actor_id: entry.actor_id.as_ref().map(ToString::to_string),
            action: entry.action.as_str().to_owned(),
            resource: entry.resource.as_str().to_owned(),
            resource_id: entry.resource_id.clone(),
            message: entry.message.clone(),
            metadata: entry.metadata.clone(),
            request_id: entry.request_id.clone(),
            address: entry.address,
            at: micros(entry.at),
        }
    }
}

impl Value<(u64, Entry)> for EntryValue {
    fn into_record(self) -> Result<(u64, Entry), Invalid> {
        let entry = Entry {
            id: id(&self.id)?,
            chain: Chain::from(self.chain),
            actor: self.actor,
            actor_id: self.actor_id.as_deref().map(id).transpose()?,
            action: text(self.action)?,
            resource: text(self.resource)?,
            resource_id: self.resource_id,
            message: self.message,
            metadata: self.metadata,
            request_id: self.request_id,
            address: self.address,
            at: timestamp(self.at)?,
        };
        Ok((self.number, entry))
    }
}
