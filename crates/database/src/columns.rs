//! Column types that each database represents in its own way.
//!
//! | type   | PostgreSQL    | SQLite                                  |
//! | ------ | ------------- | --------------------------------------- |
//! | [`Id`] | `uuid`        | 16 bytes                                |
//! | [`Ts`] | `timestamptz` | microseconds since 1970, as an integer  |

use std::{error::Error, io::Write as _, str::FromStr};

use chrono::DateTime;
use diesel::{
    backend::Backend,
    deserialize::{self, FromSql, FromSqlRow},
    expression::AsExpression,
    pg::{Pg, PgValue},
    query_builder::QueryId,
    serialize::{self, IsNull, Output, ToSql},
    sql_types::{BigInt, HasSqlType, SqlType, Text},
    sqlite::Sqlite,
};
use launchway_domain::{
    clock::Timestamp,
    ids::{
        ApiTokenId, ApplicationId, ApplicationStatusId, AuditEntryId, BootId, DeliveryId, DeploymentId,
        DeploymentStatusId, EventId, ExecutionId, ExecutionStepId, ExtensionId, ExtensionRouteId,
        ExtensionVariableId, InstanceId, InvitationId, JobId, LoginAttemptId, MembershipId, OrganizationId,
        SessionId, SettingsId, SigningSecretId, SiteUploadId, SmtpConfigId, SubjectId, UserId,
        WebhookConfigId, WebhookSecretId,
    },
};
use uuid::Uuid;

use super::connection::MultiBackend;

/// The SQL type of an id.
#[derive(Debug, Clone, Copy, Default, QueryId, SqlType)]
#[diesel(postgres_type(oid = 2950, array_oid = 2951), sqlite_type(name = "Binary"))]
pub struct Id;

/// The SQL type of a timestamp.
#[derive(Debug, Clone, Copy, Default, QueryId, SqlType)]
#[diesel(postgres_type(oid = 1184, array_oid = 1185), sqlite_type(name = "Long"))]
pub struct Ts;

/// An id in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, AsExpression, FromSqlRow)]
#[diesel(sql_type = Id)]
pub struct DbId(pub Uuid);

/// A timestamp in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, AsExpression, FromSqlRow)]
#[diesel(sql_type = Ts)]
pub struct DbTs(pub Timestamp);

macro_rules! stored_as_id {
    ($($id:ident),*) => {$(
        impl From<$id> for DbId {
            fn from(id: $id) -> Self {
                Self(id.into())
            }
        }

        impl From<DbId> for $id {
            fn from(stored: DbId) -> Self {
                stored.0.into()
            }
        }
    )*};
}
stored_as_id!(
    ApiTokenId,
    ApplicationId,
    ApplicationStatusId,
    AuditEntryId,
    BootId,
    DeliveryId,
    DeploymentId,
    DeploymentStatusId,
    EventId,
    ExecutionId,
    ExecutionStepId,
    ExtensionId,
    ExtensionRouteId,
    ExtensionVariableId,
    InstanceId,
    InvitationId,
    JobId,
    LoginAttemptId,
    MembershipId,
    OrganizationId,
    SessionId,
    SettingsId,
    SigningSecretId,
    SiteUploadId,
    SmtpConfigId,
    SubjectId,
    UserId,
    WebhookConfigId,
    WebhookSecretId
);

impl From<Timestamp> for DbTs {
    fn from(moment: Timestamp) -> Self {
        Self(moment)
    }
}

impl From<DbTs> for Timestamp {
    fn from(stored: DbTs) -> Self {
        stored.0
    }
}

impl ToSql<Id, Pg> for DbId {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        out.write_all(self.0.as_bytes())?;
        Ok(IsNull::No)
    }
}

impl FromSql<Id, Pg> for DbId {
    fn from_sql(stored: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(Uuid::from_slice(stored.as_bytes())?))
    }
}

impl ToSql<Id, Sqlite> for DbId {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
        out.set_value(self.0.as_bytes().as_slice());
        Ok(IsNull::No)
    }
}

impl FromSql<Id, Sqlite> for DbId {
    fn from_sql(mut stored: <Sqlite as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(Uuid::from_slice(stored.read_blob())?))
    }
}

/// PostgreSQL counts from the beginning of the year 2000.
const POSTGRES_EPOCH_MICROSECONDS: i64 = 946_684_800_000_000;

fn moment(microseconds: Option<i64>) -> deserialize::Result<DbTs> {
    microseconds
        .and_then(DateTime::from_timestamp_micros)
        .map(DbTs)
        .ok_or_else(|| "a stored moment is out of range".into())
}

impl ToSql<Ts, Pg> for DbTs {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        let microseconds = self.0.timestamp_micros() - POSTGRES_EPOCH_MICROSECONDS;
        out.write_all(&microseconds.to_be_bytes())?;
        Ok(IsNull::No)
    }
}

impl FromSql<Ts, Pg> for DbTs {
    fn from_sql(stored: PgValue<'_>) -> deserialize::Result<Self> {
        let microseconds = <i64 as FromSql<BigInt, Pg>>::from_sql(stored)?;
        moment(microseconds.checked_add(POSTGRES_EPOCH_MICROSECONDS))
    }
}

impl ToSql<Ts, Sqlite> for DbTs {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Sqlite>) -> serialize::Result {
        out.set_value(self.0.timestamp_micros());
        Ok(IsNull::No)
    }
}

impl FromSql<Ts, Sqlite> for DbTs {
    fn from_sql(stored: <Sqlite as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        moment(Some(<i64 as FromSql<BigInt, Sqlite>>::from_sql(stored)?))
    }
}

/// A text in a row, which is parsed where it lies.
#[derive(Debug, Clone, Copy, FromSqlRow)]
pub(crate) struct Parsed<T>(pub(crate) T);

impl<T: FromStr<Err: Error + Send + Sync + 'static>> FromSql<Text, Pg> for Parsed<T> {
    fn from_sql(stored: PgValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(str::from_utf8(stored.as_bytes())?.parse()?))
    }
}

impl<T: FromStr<Err: Error + Send + Sync + 'static>> FromSql<Text, Sqlite> for Parsed<T> {
    fn from_sql(mut stored: <Sqlite as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        Ok(Self(stored.read_text().parse()?))
    }
}

impl<T: FromStr<Err: Error + Send + Sync + 'static>> FromSql<Text, MultiBackend> for Parsed<T> {
    fn from_sql(stored: <MultiBackend as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
        stored.from_sql::<Self, Text>()
    }
}

/// Lets the same query use a type on either database.
macro_rules! on_either_backend {
    ($value:ty, $sql:ident) => {
        impl HasSqlType<$sql> for MultiBackend {
            fn metadata(lookup: &mut Self::MetadataLookup) -> Self::TypeMetadata {
                Self::lookup_sql_type::<$sql>(lookup)
            }
        }

        impl ToSql<$sql, MultiBackend> for $value {
            fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, MultiBackend>) -> serialize::Result {
                out.set_value(($sql, self));
                Ok(IsNull::No)
            }
        }

        impl FromSql<$sql, MultiBackend> for $value {
            fn from_sql(stored: <MultiBackend as Backend>::RawValue<'_>) -> deserialize::Result<Self> {
                stored.from_sql::<Self, $sql>()
            }
        }
    };
}
on_either_backend!(DbId, Id);
on_either_backend!(DbTs, Ts);
