//! The records of the API, as far as the client shows them.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::failure::{Failure, Kind, Outcome};

/// Deserializes the data of a response.
pub(crate) fn read<T: DeserializeOwned>(data: Value) -> Outcome<T> {
    serde_json::from_value(data).map_err(|error| {
        Failure::new(Kind::Failed, format!("cannot parse the response of the server: {error}"))
            .hint("the versions of server and client may differ: see `launchway --version`")
    })
}

#[derive(Debug, Deserialize)]
pub(crate) struct User {
    pub(crate) username: String,
    pub(crate) email: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Organization {
    pub(crate) id: String,
    pub(crate) name: String,
}

/// A membership of a user in an organization.
#[derive(Debug, Deserialize)]
pub(crate) struct Membership {
    pub(crate) organization: Option<Organization>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Pagination {
    pub(crate) total_count: u64,
    pub(crate) has_next: bool,
}

impl Pagination {
    /// Returns the remark below a page if there is another one.
    pub(crate) fn more(&self, page: u32) -> String {
        match self.has_next {
            true => format!("{} in total; --page {} shows more\n", self.total_count, page + 1),
            false => String::new(),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Applications {
    pub(crate) applications: Vec<Application>,
    pub(crate) pagination: Pagination,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Application {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) environment: String,
    pub(crate) build_pack: String,
    pub(crate) repository: String,
    pub(crate) branch: String,
    pub(crate) domains: Vec<String>,
    pub(crate) port: u16,
    pub(crate) status: Option<Status>,
    pub(crate) updated_at: String,
}

/// The status of an application or of a deployment.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Status {
    pub(crate) status: String,
    /// The time of the last change.
    pub(crate) updated_at: String,
}

impl Application {
    /// Returns the state.
    pub(crate) fn state(&self) -> &str {
        self.status.as_ref().map_or("", |status| &status.status)
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Logs {
    pub(crate) logs: Vec<LogLine>,
    pub(crate) pagination: Pagination,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct LogLine {
    pub(crate) id: String,
    pub(crate) level: String,
    pub(crate) log: String,
    pub(crate) created_at: String,
    /// The other fields, for JSON output.
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Deployments {
    pub(crate) deployments: Vec<Deployment>,
    pub(crate) pagination: Pagination,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Deployment {
    pub(crate) id: String,
    pub(crate) application_id: String,
    pub(crate) commit_hash: String,
    /// Absent in responses of earlier servers.
    #[serde(default)]
    pub(crate) source_digest: String,
    pub(crate) status: Option<Status>,
    pub(crate) created_at: String,
}

impl Deployment {
    /// Returns a short name of the source: the digest of an upload, or else the commit.
    pub(crate) fn source(&self) -> String {
        match self.source_digest.strip_prefix("sha256:") {
            Some(digits) => format!("upload {}", digits.chars().take(12).collect::<String>()),
            None => self.commit_hash.chars().take(7).collect(),
        }
    }

    /// Returns the state.
    pub(crate) fn state(&self) -> &str {
        self.status.as_ref().map_or("", |status| &status.status)
    }

    /// Returns whether the state is final.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self.state(), "deployed" | "failed" | "cancelled")
    }

    /// Returns the time of the last change of state.
    pub(crate) fn since(&self) -> &str {
        self.status.as_ref().map_or(&self.created_at, |status| &status.updated_at)
    }
}
