//! Measures the processor time of a deployment and of an idle second at different numbers of records.

#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "here is the clock, and the screen")]

use std::{
    collections::BTreeMap,
    error::Error,
    net::SocketAddr,
    sync::Mutex,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use chrono::{SubsecRound as _, Utc};
use launchway_embedding::{
    Actor, ApplicationId, Blueprint, DeploymentState, Embedded, FileStore, Host, Organization, ProbeTarget,
    Role, StepError, User, Version, VersionId,
};
use uuid::Uuid;

/// A host that costs nothing.
#[derive(Default)]
struct Nothing(Mutex<BTreeMap<VersionId, SocketAddr>>);

impl Nothing {
    fn running(&self) -> std::sync::MutexGuard<'_, BTreeMap<VersionId, SocketAddr>> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[async_trait]
impl Host for Nothing {
    async fn start(&self, version: &Version) -> Result<SocketAddr, StepError> {
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        self.running().insert(version.id, address);
        Ok(address)
    }

    async fn list(&self) -> Result<Vec<(VersionId, SocketAddr)>, StepError> {
        Ok(self.running().iter().map(|(id, address)| (*id, *address)).collect())
    }

    async fn end(&self, id: VersionId) -> Result<(), StepError> {
        self.running().remove(&id);
        Ok(())
    }

    async fn check(&self, _: &ProbeTarget) -> Result<(), String> {
        Ok(())
    }
}

/// Deploys that many times, and waits for the last one.
async fn deploy(
    launchway: &Embedded,
    ada: &Actor,
    web: ApplicationId,
    times: usize,
) -> Result<(), Box<dyn Error>> {
    for _ in 0..times {
        let id = launchway.deployments().request(ada, web).await?.id;
        while launchway.deployments().get(ada, id).await?.status.state != DeploymentState::Deployed {
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("cost-{}", Uuid::now_v7()));
    let now = Utc::now().trunc_subsecs(6);
    let engines = Organization::new(Uuid::now_v7().into(), "Engines".parse()?, "".parse()?, now);
    let ada = User::invited(Uuid::now_v7().into(), "ada".parse()?, "ada@example.com".parse()?, now);
    let ada = Actor::vouched_for(ada, engines, Role::Admin);
    let launchway = Embedded::builder(FileStore::open(&path).await?, Nothing::default());
    // Nothing is trimmed, and a version counts as stable at once.
    let launchway = launchway.limits(|limits| limits.stable = Duration::ZERO).build();
    let measured = Box::pin(async {
        let blueprint = |name: &str| -> Result<_, Box<dyn Error>> {
            Ok(Blueprint::of_image(name.parse()?, "test".parse()?, "web:1".parse()?, 80.try_into()?))
        };
        println!("{:>8}  {:>12}  {:>12}", "records", "deployment", "file");
        let mut number = 0;
        for goal in [10, 1_000, 10_000, 100_000] {
            while launchway.records().await?.values().sum::<usize>() < goal {
                number += 1;
                let web = launchway.applications().create(&ada, blueprint(&format!("web-{number}"))?).await?;
                deploy(&launchway, &ada, web.application.id, 20).await?;
            }
            let web = launchway.applications().create(&ada, blueprint(&format!("probe-{goal}"))?).await?;
            deploy(&launchway, &ada, web.application.id, 1).await?;
            let began = Instant::now();
            deploy(&launchway, &ada, web.application.id, 20).await?;
            let took = began.elapsed() / 20;
            let (records, bytes) =
                (launchway.records().await?.values().sum::<usize>(), std::fs::metadata(&path)?.len());
            println!("{records:>8}  {:>9.2} ms  {:>8} KiB", took.as_secs_f64() * 1000.0, bytes / 1024);
        }
        Ok::<_, Box<dyn Error>>(())
    });
    let mut outcome = Ok(());
    launchway.run(async { outcome = measured.await }).await?;
    for file in [path.clone(), path.with_extension("lock")] {
        std::fs::remove_file(file).or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
    }
    outcome
}
