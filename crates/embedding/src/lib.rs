#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod absent;
mod builder;
mod caught;
#[cfg(feature = "conformance")]
pub mod conformance;
mod embedded;
mod handles;
mod host;
mod hosted;
mod probe;
mod records;
mod repositories;
mod store;

pub use launchway_application::{
    Error,
    applications::{ApplicationChange, NewApplication},
};
pub use launchway_domain::{
    applications::{Application, ApplicationState, Blueprint, CopyCount, ImageRef, Port, Variables},
    auth::Actor,
    deployments::{Deployment, DeploymentState, KeptVersions, PrintedLine, ProbeTarget, StepError},
    idempotency::{BodyHash, IdempotencyKey, IdempotencyName},
    ids::{ApplicationId, DeploymentId},
    logs::{LogLine, LogLineId},
    organizations::{Organization, Role},
    page::{Page, PageRequest},
    routes::{Endpoint, Route, Target},
    secret::SecretBox,
    store::StoreError,
    users::User,
};

#[cfg(feature = "docker")]
pub use launchway_docker::{ContainerLimits, DockerOptions};
#[cfg(feature = "testing")]
pub use launchway_domain::fixtures;

#[cfg(feature = "docker")]
pub use self::host::DockerHost;
#[cfg(feature = "sqlite")]
pub use self::store::SqliteStore;
pub use self::{
    absent::NoSecrets,
    builder::{Builder, Limits},
    embedded::Embedded,
    handles::{Applications, Audit, Created, Deployments, Logs},
    host::{Host, HostLimits, ProcessHost, ProcessHostBuilder, ProcessSpec, Version, VersionId},
    records::{FORMAT, Records, Retention, Row, UnreadableRow},
    store::{Change, FileStore, MemoryStore, OpenError, Query, Store},
};
