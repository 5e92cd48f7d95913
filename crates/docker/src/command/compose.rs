//! The commands of docker compose, as a plugin of the client or as a program of its own.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use launchway_domain::deployments::{Output, ServiceName};
use launchway_system::process::{Invocation, ProcessError};

use super::{Docker, answer};

use crate::errors::EngineError;

/// The compose that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Compose {
    /// `docker compose`: version 2 and later.
    Plugin,
    /// `docker-compose`: version 1, or a later one on its own.
    Program(PathBuf),
}

/// A project whose services are to be started.
#[derive(Debug)]
pub(crate) struct NewProject<'a> {
    /// A name of our own making.
    pub(crate) name: &'a str,
    /// The compose file, also of our own making. It contains secrets, so it is never written to disk.
    pub(crate) file: Vec<u8>,
    /// The services to start, with their dependencies; all if empty.
    pub(crate) services: &'a [&'a ServiceName],
    /// The working directory of the client: a folder of ours without a `.env`.
    pub(crate) folder: &'a Path,
}

impl Docker {
    /// Looks for compose: the plugin first, then `program`. Asks no engine.
    pub(crate) async fn find_compose(&self, program: &Path) -> Result<Option<Compose>, EngineError> {
        if Self::is_there(self.call(&["compose", "version", "--short"])).await? {
            return Ok(Some(Compose::Plugin));
        }
        let call = self.call_of(program, self.limit).args(["version", "--short"]);
        Ok(Self::is_there(call).await?.then(|| Compose::Program(program.to_owned())))
    }

    /// Creates and starts services. Those that run already with the same configuration are left alone.
    pub(crate) async fn compose_up(
        &self,
        compose: &Compose,
        project: &NewProject<'_>,
        limit: Duration,
        output: Arc<dyn Output>,
    ) -> Result<(), EngineError> {
        let call = match compose {
            Compose::Plugin => self.call_within(limit, &["compose"]),
            Compose::Program(program) => self.call_of(program, limit),
        };
        let call = call
            .args(["--project-name", project.name, "--file", "-"])
            .args(["up", "--detach", "--no-build"])
            .args(project.services.iter().map(|service| service.as_str()))
            .in_folder(project.folder)
            .input(project.file.as_slice());
        self.stream(call, output).await
    }

    fn call_of(&self, program: &Path, limit: Duration) -> Invocation {
        let call = Invocation::new(program, limit);
        self.environment.iter().fold(call, |call, (name, value)| call.env(name, value))
    }

    /// Returns whether the client answers a request for its version. Does not involve the engine.
    async fn is_there(call: Invocation) -> Result<bool, EngineError> {
        match answer(call).await {
            Ok(version) => {
                let version = version.trim().trim_start_matches('v');
                Ok(version.starts_with(|c: char| c.is_ascii_digit()))
            }
            Err(EngineError::Message(_) | EngineError::Client(ProcessError::NotInstalled(_))) => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}
