//! The record of a deployment.

use std::net::IpAddr;

use super::DeploymentState;
use crate::{
    applications::Port,
    clock::Timestamp,
    ids::{ApplicationId, DeploymentId, DeploymentStatusId, JobId, OrganizationId},
    value::{InvalidValue, parsed_by_conversion, text_value},
};

/// The deployment of one version of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// The id of the deployment.
    pub id: DeploymentId,
    /// The id of the application.
    pub application_id: ApplicationId,
    /// The organization that it belongs to.
    pub organization_id: OrganizationId,
    /// The kind of deployment.
    pub kind: DeploymentKind,
    /// The user or program that requested it, for display; empty for records from before this was stored.
    pub requested_by: String,
    /// The use of cached steps by its build.
    pub build_cache: BuildCache,
    /// The job that runs it.
    pub job_id: JobId,
    /// Its current status.
    pub status: DeploymentStatus,
    /// The commit that it is built from; `None` for a prebuilt image, or before it is known.
    pub commit: Option<CommitHash>,
    /// The digest of the upload that its commit was made of; `None` if its source is no upload.
    pub source_digest: Option<SourceDigest>,
    /// The image that it runs, once there is one.
    pub image: Option<ImageName>,
    /// The container that runs it, once there is one; the first of several copies.
    pub container: Option<ContainerRecord>,
    /// The containers of its copies after the first one.
    pub further_copies: Vec<ContainerRecord>,
    /// The reason why its version does not serve although it is live, or not by all of its copies; `None`
    /// while it does.
    pub breakdown: Option<String>,
    /// When it was requested.
    pub created_at: Timestamp,
    /// When anything about it last changed.
    pub updated_at: Timestamp,
}

impl Deployment {
    /// Returns whether the version has several services, which may share volumes with another version.
    #[must_use]
    pub fn is_composition(&self) -> bool {
        self.image.as_ref().is_some_and(ImageName::is_of_service)
    }

    /// Returns the containers of its copies, whose numbers are counted from 1; none for a site.
    pub fn copies(&self) -> impl Iterator<Item = &ContainerRecord> {
        self.container.iter().chain(&self.further_copies)
    }

    /// Returns the copies with their numbers.
    pub fn numbered_copies(&self) -> impl Iterator<Item = (u16, &ContainerRecord)> {
        (1..).zip(self.copies())
    }

    /// Creates a deployment that is queued.
    #[must_use]
    pub fn new(
        (id, status_id): (DeploymentId, DeploymentStatusId),
        (organization_id, application_id): (OrganizationId, ApplicationId),
        kind: DeploymentKind,
        job_id: JobId,
        now: Timestamp,
    ) -> Self {
        let state = DeploymentState::Queued;
        Self {
            id,
            application_id,
            organization_id,
            kind,
            requested_by: String::new(),
            build_cache: BuildCache::default(),
            job_id,
            status: DeploymentStatus { id: status_id, state, created_at: now, updated_at: now },
            commit: None,
            source_digest: None,
            image: None,
            container: None,
            further_copies: Vec::new(),
            breakdown: None,
            created_at: now,
            updated_at: now,
        }
    }
}

/// The kind of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeploymentKind {
    /// Deploys the current source.
    Fresh,
    /// Deploys the artifact of an earlier deployment.
    Rollback {
        /// The id of the earlier deployment.
        to: DeploymentId,
    },
}

/// The use of cached steps by a build.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BuildCache {
    /// Steps that did not change are taken from earlier builds of the application.
    #[default]
    Use,
    /// Every step is run.
    Ignore,
}

/// The status of a deployment, as a record of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeploymentStatus {
    /// The id of the deployment status.
    pub id: DeploymentStatusId,
    /// The current state.
    pub state: DeploymentState,
    /// When the deployment was requested.
    pub created_at: Timestamp,
    /// When the state last changed.
    pub updated_at: Timestamp,
}

/// The container of a deployment, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerRecord {
    /// The engine's id of it.
    pub id: ContainerId,
    /// Its name.
    pub name: String,
    /// The last known state.
    pub state: ContainerState,
    /// The address at which it is reached while it runs. No other container gets it as long as it is
    /// recorded.
    pub address: Option<IpAddr>,
    /// The port that it listens on. That of the application may be another by now.
    pub port: Port,
}

/// The state of a container, as it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContainerState {
    /// It was created, but not started.
    Created,
    /// It runs.
    Running,
    /// It is stopped, and can be started again.
    Exited,
    /// It does not exist any more.
    Removed,
}

impl ContainerState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Created, Self::Running, Self::Exited, Self::Removed];

    /// Returns the name used in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Running => "running",
            Self::Exited => "exited",
            Self::Removed => "removed",
        }
    }
}

parsed_by_conversion!(ContainerState);

impl TryFrom<String> for ContainerState {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == raw)
            .ok_or_else(|| InvalidValue::text("the state of a container", &raw))
    }
}

text_value!(
    /// A commit, by its full hash.
    ///
    /// ```
    /// use launchway_domain::deployments::CommitHash;
    ///
    /// let commit: CommitHash = "2c26b46b68ffc68ff99b453c1d30413413422d70".parse().unwrap();
    /// assert_eq!(commit.short(), "2c26b46");
    /// assert!("main".parse::<CommitHash>().is_err());
    /// ```
    CommitHash,
    |raw| {
        let is_hash = matches!(raw.len(), 40 | 64)
            && raw.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'));
        if is_hash { Ok(raw) } else { Err(InvalidValue::text("the hash of a commit", &raw)) }
    }
);

impl CommitHash {
    /// Returns an abbreviated hash for display.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.as_str()[..7]
    }
}

text_value!(
    /// A container, by the engine's id: 64 hexadecimal digits, or the 25 digits and letters of a Swarm service that runs
    /// one container.
    ContainerId,
    |raw| {
        let is_container = raw.len() == 64 && raw.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_service = raw.len() == LENGTH_OF_A_SWARM_ID
            && raw.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase());
        let is_id = is_container || is_service;
        if is_id { Ok(raw) } else { Err(InvalidValue::text("the id of a container", &raw)) }
    }
);

impl ContainerId {
    /// Returns whether it is the id of a Swarm service.
    #[must_use]
    pub fn is_service(&self) -> bool {
        self.0.len() == LENGTH_OF_A_SWARM_ID
    }
}

/// The length of an id of Swarm in characters.
const LENGTH_OF_A_SWARM_ID: usize = 25;

text_value!(
    /// The content of an image in a registry: `sha256:` and 64 hexadecimal digits.
    ImageDigest,
    |raw| match is_digest(&raw) {
        true => Ok(raw),
        false => Err(InvalidValue::text("the digest of an image", &raw)),
    }
);

text_value!(
    /// The content of an upload: `sha256:` and 64 hexadecimal digits.
    SourceDigest,
    |raw| match is_digest(&raw) {
        true => Ok(raw),
        false => Err(InvalidValue::text("the digest of an upload", &raw)),
    }
);

impl SourceDigest {
    /// Returns the hexadecimal digits, without the name of the algorithm.
    #[must_use]
    pub fn digits(&self) -> &str {
        self.0.trim_start_matches("sha256:")
    }

    /// Returns an abbreviated digest for display.
    #[must_use]
    pub fn short(&self) -> &str {
        self.digits().get(..12).unwrap_or_default()
    }
}

/// Returns whether a text is the digest of some content.
fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
    })
}

text_value!(
    /// One of the services of a compose file, by the name that it has there.
    ServiceName,
    |raw| {
        let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let begins_well = raw.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins_well && raw.len() <= 63 && raw.bytes().all(is_of_names) {
            Ok(raw)
        } else {
            Err(InvalidValue::text(
                "a letter or digit, and then at most 62 of letters, digits, `.`, `_` and `-`",
                &raw,
            ))
        }
    }
);

text_value!(
    /// The image of a deployment: a name that Launchway generates, so that no one else retags it. One that was pushed to
    /// a registry ends with `@` and its digest there.
    ImageName,
    |raw| {
        let (name, digest) = raw.split_once('@').map_or((raw.as_str(), None), |(name, digest)| (name, Some(digest)));
        let is_name = name.starts_with("launchway/")
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b':' | b'-' | b'.' | b'_'))
            && digest.is_none_or(|digest| digest.parse::<ImageDigest>().is_ok());
        if is_name { Ok(raw) } else { Err(InvalidValue::text("the name of a deployment's image", &raw)) }
    }
);

impl ImageName {
    /// Returns the name of the image that `deployment` of `application` builds.
    #[must_use]
    pub fn of(application: ApplicationId, deployment: DeploymentId) -> Self {
        Self(format!("launchway/{application}:{deployment}"))
    }

    /// Returns the name of the image that `deployment` of `application` builds for one of several services.
    #[must_use]
    pub fn of_service(application: ApplicationId, deployment: DeploymentId, service: &ServiceName) -> Self {
        Self(format!("launchway/{application}:{deployment}-{service}"))
    }

    /// Returns the name with the digest that a registry has of the image.
    #[must_use]
    pub fn with_digest(&self, digest: &ImageDigest) -> Self {
        Self(format!("{}@{digest}", self.tagged()))
    }

    /// Returns the name without a digest: the one by which the engine that built the image has it.
    #[must_use]
    pub fn without_digest(&self) -> Self {
        Self(self.tagged().to_owned())
    }

    /// Returns the digest that a registry has of the image; `None` if it is on one engine only.
    #[must_use]
    pub fn digest(&self) -> Option<ImageDigest> {
        self.0.split_once('@')?.1.parse().ok()
    }

    /// Returns the part before the tag.
    #[must_use]
    pub fn repository(&self) -> &str {
        self.tagged().split_once(':').map_or(self.tagged(), |(repository, _)| repository)
    }

    fn tagged(&self) -> &str {
        self.0.split_once('@').map_or(&self.0, |(name, _)| name)
    }

    /// Returns whether it was built for one of several services.
    #[must_use]
    pub fn is_of_service(&self) -> bool {
        self.whose().is_some()
            && self.tagged().split_once(':').is_some_and(|(_, tag)| tag.len() > LENGTH_OF_AN_ID)
    }

    /// Returns the application and the deployment that it belongs to; `None` for a name that neither
    /// function above returned.
    #[must_use]
    pub fn whose(&self) -> Option<(ApplicationId, DeploymentId)> {
        let (application, tag) = self.tagged().strip_prefix("launchway/")?.split_once(':')?;
        let (deployment, service) = tag.split_at_checked(LENGTH_OF_AN_ID)?;
        let is_whole = service.is_empty() || service.strip_prefix('-')?.parse::<ServiceName>().is_ok();
        is_whole.then_some(())?;
        Some((application.parse().ok()?, deployment.parse().ok()?))
    }
}

/// The length of an id in characters.
const LENGTH_OF_AN_ID: usize = 36;

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_commit_is_a_whole_hash() {
        for hash in ["a".repeat(40), "0".repeat(64)] {
            assert_eq!(hash.parse::<CommitHash>().unwrap().short(), &hash[..7]);
        }
        for hash in ["", "abc1234", "-", &"A".repeat(40), &"g".repeat(40), &"a".repeat(41)] {
            assert!(hash.parse::<CommitHash>().is_err(), "{hash:?}");
        }
    }

    #[test]
    fn a_container_id_is_of_a_container_or_of_a_service() {
        for (id, is_service) in [("f".repeat(64).as_str(), false), ("qk9ltvpzp6r2r8lz1sm1imk1x", true)] {
            assert_eq!(id.parse::<ContainerId>().unwrap().is_service(), is_service, "{id:?}");
        }
        let wrong = ["", "--help", &"f".repeat(63), &"z".repeat(64), &"z".repeat(24), &"Z".repeat(25)];
        for id in wrong {
            assert!(id.parse::<ContainerId>().is_err(), "{id:?}");
        }
    }

    #[test]
    fn the_image_of_a_deployment_survives_being_parsed_again() {
        let image = ImageName::of(Uuid::max().into(), Uuid::nil().into());
        assert_eq!(image.as_str().parse(), Ok(image.clone()));
        for name in ["nginx", "launchway/$(id)", "-launchway/x"] {
            assert!(name.parse::<ImageName>().is_err(), "{name:?}");
        }
    }

    #[test]
    fn the_image_in_a_registry_has_a_digest() {
        let image = ImageName::of(Uuid::max().into(), Uuid::nil().into());
        let digest: ImageDigest = format!("sha256:{}", "0a".repeat(32)).parse().unwrap();
        let pushed = image.with_digest(&digest);
        assert_eq!(pushed.as_str().parse(), Ok(pushed.clone()));
        assert_eq!((pushed.digest(), image.digest()), (Some(digest.clone()), None));
        assert_eq!((pushed.without_digest(), pushed.whose()), (image.clone(), image.whose()));
        assert_eq!(pushed.with_digest(&digest), pushed);
        assert_eq!(pushed.repository(), format!("launchway/{}", Uuid::max()));
        assert!(!pushed.is_of_service());
        for digest in ["", "sha256:1", &format!("sha256:{}", "0A".repeat(32)), "latest"] {
            assert!(format!("{image}@{digest}").parse::<ImageName>().is_err(), "{digest:?}");
        }
    }

    #[test]
    fn the_image_of_a_service_names_its_owner() {
        let (application, deployment) = (Uuid::max().into(), Uuid::nil().into());
        for service in ["web", "a.b_c-d", "Task-1"] {
            let image = ImageName::of_service(application, deployment, &service.parse().unwrap());
            assert_eq!(image.as_str().parse(), Ok(image.clone()));
            assert_eq!(image.whose(), Some((application, deployment)));
            assert!(image.is_of_service());
        }
        assert!(!ImageName::of(application, deployment).is_of_service());
        assert_eq!(ImageName::of(application, deployment).whose(), Some((application, deployment)));
        for name in ["launchway/a:b", "launchway/x", &format!("launchway/{}:{}x", Uuid::max(), Uuid::nil())] {
            assert_eq!(name.parse::<ImageName>().unwrap().whose(), None, "{name}");
        }
    }

    #[test]
    fn a_service_has_a_short_plain_name() {
        assert!("x".repeat(63).parse::<ServiceName>().is_ok());
        for name in ["", "-x", ".x", "_x", "a b", "a/b", "a$b", "ä", &"x".repeat(64)] {
            assert!(name.parse::<ServiceName>().is_err(), "{name:?}");
        }
    }

    #[test]
    fn container_states_are_read_as_they_are_written() {
        for state in ContainerState::ALL {
            assert_eq!(ContainerState::try_from(state.as_str().to_owned()), Ok(state));
        }
        assert!(ContainerState::try_from("dead".to_owned()).is_err());
    }
}
