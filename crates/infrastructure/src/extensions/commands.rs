//! Steps that run a shell command.

use std::{os::unix::process::ExitStatusExt as _, process::ExitStatus, sync::Arc, time::Duration};

use launchway_domain::{
    deployments::{Output, StepError},
    extensions::{Run, WORKSPACE, environment_name},
};

use super::{HostRunner, not_run};

/// The timeout of a program. The step itself times out before.
pub(super) const LONGEST: Duration = Duration::from_secs(60 * 60);

impl HostRunner {
    /// Runs `text`, which contains no values, in a shell that gets the values in its environment.
    pub(super) async fn command(
        &self,
        run: &Run,
        text: &str,
        output: Arc<dyn Output>,
    ) -> Result<i32, StepError> {
        let workspace = self.workspaces.of(run.execution);
        if !workspace.is_dir() {
            return Err(StepError::Retryable("the workspace of the run is not there".to_owned()));
        }
        let mut shell = self
            .host
            .call("/bin/sh")
            .args(["-c", "--", text])
            .in_folder(&workspace)
            .env("HOME", &workspace)
            .env("LANG", "C.UTF-8");
        for (name, value) in run.values.expose() {
            shell = shell.env(environment_name(name), value);
        }
        shell = shell.env(environment_name(WORKSPACE), &workspace);
        let finished = shell.run_into(output).await.map_err(not_run)?;
        Ok(exit_code(finished.status))
    }
}

/// Returns the exit code of a program; 128 plus the number of a signal, as shells report it.
pub(super) fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}
