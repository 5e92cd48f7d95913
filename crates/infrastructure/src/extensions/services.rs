//! Steps about services of this machine.

use std::sync::Arc;

use launchway_domain::{
    deployments::{Output, StepError},
    extensions::{ServiceVerb, UnitName},
};
use launchway_system::process::ProcessError;
use serde_json::{Value, json};

use super::{Host, commands::exit_code, not_run, notes::StepNotes};

impl Host {
    /// Runs `systemctl` for a service. Returns its exit code.
    pub(super) async fn run_systemctl(
        &self,
        notes: &StepNotes,
        unit: &UnitName,
        verb: ServiceVerb,
        output: Arc<dyn Output>,
    ) -> Result<i32, StepError> {
        if let Some(question) = question(verb) {
            let was = self.systemctl(question, unit, None).await? == 0;
            notes.once(json!({ "was": was })).await?;
        }
        self.systemctl(verb.as_str(), unit, Some(output)).await
    }

    /// Reverts an operation on a service, if it changed anything.
    pub(super) async fn take_back_service(
        &self,
        notes: &StepNotes,
        unit: &UnitName,
        verb: ServiceVerb,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let Some(opposite) = verb.opposite() else { return Ok(()) };
        let was = notes.read().await?.and_then(|note| note.get("was").and_then(Value::as_bool));
        let wanted = matches!(verb, ServiceVerb::Start | ServiceVerb::Enable);
        if was.is_some_and(|was| was != wanted) {
            let code = self.systemctl(opposite.as_str(), unit, Some(output)).await?;
            if code != 0 {
                let opposite = opposite.as_str();
                return Err(StepError::Rejected(format!(
                    "`systemctl {opposite} {unit}` ended with exit code {code}"
                )));
            }
        }
        notes.forget().await
    }

    async fn systemctl(
        &self,
        verb: &str,
        unit: &UnitName,
        output: Option<Arc<dyn Output>>,
    ) -> Result<i32, StepError> {
        let call = self.call("systemctl").args([verb, "--", unit.as_str()]).env("LANG", "C.UTF-8");
        let finished = match output {
            Some(output) => call.run_into(output).await,
            None => call.run().await,
        };
        match finished {
            Ok(finished) => Ok(exit_code(finished.status)),
            Err(ProcessError::NotInstalled(program)) if program == "systemctl" => Err(StepError::Rejected(
                "this machine has no `systemctl`: steps about services need systemd".to_owned(),
            )),
            Err(error) => Err(not_run(error)),
        }
    }
}

/// Returns the query for the state that a verb changes; `None` for verbs that change no state.
fn question(verb: ServiceVerb) -> Option<&'static str> {
    match verb {
        ServiceVerb::Start | ServiceVerb::Stop => Some("is-active"),
        ServiceVerb::Enable | ServiceVerb::Disable => Some("is-enabled"),
        ServiceVerb::Restart | ServiceVerb::Reload => None,
    }
}
