//! Waits until a version is healthy.

use std::sync::Arc;

use launchway_domain::{
    applications::{HealthCheckPath, Port},
    deployments::{
        Condition, Container, Deployer, EngineInventory, Exit, HealthProbe, Output as _, ProbeTarget,
        StepError,
    },
    logs::Level,
};
use tokio::{
    task::JoinSet,
    time::{Duration, Instant},
};

use super::{super::log::DeploymentLog, HealthTimings, workload::panicked};
use crate::Terms;

/// The interval of checks that the container still runs. They are rare because requests to the engine are
/// slow.
const LOOK_EVERY: Duration = Duration::from_millis(400);
/// The pause before the second check. Each pause is twice as long as the last, up to that of the
/// installation: most versions respond soon, and a long first pause would delay them.
const FIRST_PAUSE: Duration = Duration::from_millis(2);

/// The number of lines of a container's output that are logged when it fails.
const TAIL_LINES: usize = 50;

/// Checks the health of new versions.
pub(super) struct HealthCheck {
    pub(super) probe: Arc<dyn HealthProbe>,
    pub(super) deployer: Arc<dyn Deployer>,
    pub(super) inventory: Arc<dyn EngineInventory>,
    pub(super) timings: HealthTimings,
    pub(super) terms: Terms,
}

/// A copy that did not become healthy.
pub(super) struct UnhealthyCopy {
    pub(super) container: Container,
    pub(super) error: StepError,
}

impl HealthCheck {
    /// Returns when all `containers` respond on `port`. Fails with the first one that does not.
    pub(super) async fn wait_until_all_healthy(
        self: &Arc<Self>,
        containers: &[Container],
        port: Port,
        path: Option<HealthCheckPath>,
    ) -> Result<(), Box<UnhealthyCopy>> {
        let unhealthy =
            |container: &Container, error| Box::new(UnhealthyCopy { container: container.clone(), error });
        if let [only] = containers {
            return self.wait_until_healthy(only, port, path).await.map_err(|error| unhealthy(only, error));
        }
        let mut checks = JoinSet::new();
        for (number, container) in containers.iter().enumerate() {
            let (this, container, path) = (Arc::clone(self), container.clone(), path.clone());
            checks.spawn(async move { (number, this.wait_until_healthy(&container, port, path).await) });
        }
        let mut failure = None;
        while let Some(ended) = checks.join_next().await {
            let failed = match ended {
                Ok((_, Ok(()))) => None,
                Ok((number, Err(error))) => containers.get(number).map(|one| unhealthy(one, error)),
                Err(error) => containers.first().map(|one| unhealthy(one, panicked(error))),
            };
            if failed.is_some() {
                failure = failed;
                break;
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Returns when `container` responds on `port`, and rejects it if it exits or the time limit passes.
    /// Without an HTTP health check, it has to stay up for a while too.
    pub(super) async fn wait_until_healthy(
        &self,
        container: &Container,
        port: Port,
        path: Option<HealthCheckPath>,
    ) -> Result<(), StepError> {
        let (is_asked, instance) = (path.is_some(), self.terms.instance);
        let target = ProbeTarget { address: container.endpoint(port), path };
        let deadline = Instant::now() + self.timings.limit;
        let (mut next_look, mut answered_since) = (Instant::now() + LOOK_EVERY, None);
        let mut pause = FIRST_PAUSE.min(self.timings.pause);
        loop {
            let probed = self.probe.probe(&target).await;
            let now = Instant::now();
            match &probed {
                Ok(()) if is_asked => return Ok(()),
                Ok(()) => {
                    let since = *answered_since.get_or_insert(now);
                    if now - since >= self.timings.stability {
                        return self.require_running(container).await;
                    }
                }
                Err(_) => answered_since = None,
            }
            if now >= next_look {
                self.require_running(container).await?;
                next_look = Instant::now() + LOOK_EVERY;
            }
            if now >= deadline {
                let seconds = self.timings.limit.as_secs_f64();
                let what = probed.err().unwrap_or_else(|| format!("the {instance} keeps restarting"));
                return Err(StepError::Rejected(format!("not healthy within {seconds} s: {what}")));
            }
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(self.timings.pause);
        }
    }

    async fn require_running(&self, container: &Container) -> Result<(), StepError> {
        let instance = self.terms.instance;
        let reason = match self.deployer.condition(&container.id).await? {
            Condition::Running { .. } => return Ok(()),
            Condition::Exited(exit) | Condition::Restarting(exit) if exit.out_of_memory => {
                format!("the {instance} was killed because it exceeded its memory limit")
            }
            Condition::Exited(Exit { code, .. }) | Condition::Restarting(Exit { code, .. }) => {
                format!("the {instance} exited with code {code} before it was healthy")
            }
            Condition::Paused => format!("the {instance} was paused"),
            Condition::Detached => format!("the {instance} was disconnected from its network"),
            Condition::Created => format!("the {instance} was not started"),
            Condition::Gone => format!("the {instance} is gone"),
        };
        Err(StepError::Rejected(reason))
    }

    /// Logs the last lines of the output of a container.
    pub(super) async fn log_tail(&self, log: &Arc<DeploymentLog>, container: &Container) {
        let instance = self.terms.instance;
        match self.inventory.tail_logs(&container.id, TAIL_LINES).await {
            Ok(lines) if lines.is_empty() => {
                log.write_line(Level::Info, format!("The {instance} log is empty")).await
            }
            Ok(lines) => {
                log.write_line(Level::Info, format!("The last lines of the {instance} log:")).await;
                let output = log.output(Level::Runtime);
                for line in lines {
                    output.write(&line.text).await;
                    output.finish().await;
                }
            }
            Err(error) => {
                log.write_line(Level::Warn, format!("The {instance} log cannot be read: {error}")).await
            }
        }
    }
}
