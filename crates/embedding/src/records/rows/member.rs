//! The stored form of organizations and users.

use launchway_domain::{organizations::Organization, users::User};
use serde::{Deserialize, Serialize};

use super::{Invalid, Value, id, micros, text, timestamp, timestamps};

#[derive(Serialize, Deserialize)]
pub(super) struct OrganizationValue {
    id: String,
    name: String,
    description: String,
    created_at: i64,
    updated_at: i64,
    deleted_at: Option<i64>,
}

impl From<&Organization> for OrganizationValue {
    fn from(one: &Organization) -> Self {
        Self {
            id: one.id.to_string(),
            name: one.name.to_string(),
            description: one.description.to_string(),
            created_at: micros(one.created_at),
            updated_at: micros(one.updated_at),
            deleted_at: one.deleted_at.map(micros),
        }
    }
}

impl Value<Organization> for OrganizationValue {
    fn into_record(self) -> Result<Organization, Invalid> {
        Ok(Organization {
            id: id(&self.id)?,
            name: text(self.name)?,
            description: text(self.description)?,
            created_at: timestamp(self.created_at)?,
            updated_at: timestamp(self.updated_at)?,
            deleted_at: timestamps(self.deleted_at)?,
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct UserValue {
    id: String,
    username: String,
    email: String,
    avatar: String,
    kind: String,
    is_verified: bool,
    two_factor_enabled: bool,
    idp_user_id: String,
    created_at: i64,
    updated_at: i64,
    deleted_at: Option<i64>,
}

impl From<&User> for UserValue {
    fn from(one: &User) -> Self {
        Self {
            id: one.id.to_string(),
            username: one.username.to_string(),
            email: one.email.as_str().to_owned(),
            avatar: one.avatar.clone(),
            kind: one.kind.as_str().to_owned(),
            is_verified: one.is_verified,
            two_factor_enabled: one.two_factor_enabled,
            idp_user_id: one.idp_user_id.clone(),
            created_at: micros(one.created_at),
            updated_at: micros(one.updated_at),
            deleted_at: one.deleted_at.map(micros),
        }
    }
}

impl Value<User> for UserValue {
    fn into_record(self) -> Result<User, Invalid> {
        Ok(User {
            id: id(&self.id)?,
            username: text(self.username)?,
            email: text(self.email)?,
            avatar: self.avatar,
            kind: self.kind.parse()?,
            is_verified: self.is_verified,
            two_factor_enabled: self.two_factor_enabled,
            idp_user_id: self.idp_user_id,
            created_at: timestamp(self.created_at)?,
            updated_at: timestamp(self.updated_at)?,
            deleted_at: timestamps(self.deleted_at)?,
        })
    }
}
