//! The scenarios of every engine.

use launchway_testkit::repository::Repository;
use serde_json::Value;

use super::stage::SwarmStage;
use crate::docker::deployments::{
    scenarios::{EngineStage, run},
    stage::Stage,
};

impl EngineStage for SwarmStage {
    fn stage(&self) -> &Stage {
        &self.stage
    }

    fn repository(&self, name: &str) -> Repository {
        self.repository(name)
    }

    fn spec(&self, name: &str) -> Value {
        self.spec(name, 1)
    }

    fn instances(&self) -> usize {
        self.services().len()
    }
}

#[test]
fn applications_live_on_swarm_as_documented() {
    run(&SwarmStage::start(1));
}
