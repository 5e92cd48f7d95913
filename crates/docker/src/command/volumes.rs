//! The commands about volumes.

use super::{Docker, with_labels};
use crate::{errors::EngineError, labels::Label};

impl Docker {
    /// Creates a volume with a name of our own making. An existing one is left alone.
    pub(crate) async fn create_volume(&self, name: &str, labels: &[Label]) -> Result<(), EngineError> {
        let mut call = self.call(&["volume", "create"]);
        for label in labels {
            call = call.args(["--label", label.as_str()]);
        }
        self.answer(call.arg(name)).await.map(drop)
    }

    /// Returns the names of the volumes with all of these labels.
    pub(crate) async fn volumes(&self, labels: &[Label]) -> Result<Vec<String>, EngineError> {
        let listed = self.answer(with_labels(self.call(&["volume", "ls", "--quiet"]), labels)).await?;
        // Ours have such names; other volumes with the same labels are not touched.
        let ours = listed.lines().map(str::trim).filter(|name| name.starts_with("launchway-"));
        Ok(ours.map(str::to_owned).collect())
    }

    /// Removes a volume with everything in it.
    pub(crate) async fn remove_volume(&self, name: &str) -> Result<(), EngineError> {
        self.answer(self.call(&["volume", "rm", name])).await.map(drop)
    }
}
