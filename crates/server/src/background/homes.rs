//! The homes of what ran on this machine before the engine was `swarm`.

use std::{sync::Arc, time::Duration};

use launchway_application::Homes;
use launchway_domain::{deployments::StepError, store::StoreError};
use launchway_infrastructure::{database::Database, docker::DockerEngine};
use tokio::{
    task::{JoinHandle, spawn},
    time::{sleep, timeout},
};

use crate::{assembly::Assembly, engine::Engine};

/// The time in which the engine has to answer, and the delay before it is asked again.
const PAUSE: Duration = Duration::from_secs(10);

/// Records this machine as the home of applications with a compose file and extensions that ran on it before the engine was
/// `swarm`. If the engine does not answer, a task asks it again.
pub(super) async fn adopt(assembly: &Assembly, engine: &Engine) {
    if engine.swarm().is_none() {
        return;
    }
    let adoption = Arc::new(Adoption {
        database: assembly.database.clone(),
        engine: Arc::clone(engine.docker()),
        homes: assembly.context.homes.clone(),
    });
    let run = move || {
        let adoption = Arc::clone(&adoption);
        async move { adoption.run().await }
    };
    drop(try_until_done(run).await);
}

struct Adoption {
    database: Database,
    engine: Arc<DockerEngine>,
    homes: Homes,
}

impl Adoption {
    async fn run(&self) -> Result<(), StepError> {
        for application in self.database.compositions_without_home().await.map_err(unreadable)? {
            if self.engine.has_application(application).await? {
                self.homes.adopt_application(application).await?;
                tracing::info!(
                    application.id = %application,
                    "this machine is the home of an application with a compose file, which ran here before"
                );
            }
        }
        for organization in self.database.extensions_without_home().await.map_err(unreadable)? {
            if self.engine.has_extensions(organization).await? {
                self.homes.adopt_extensions(organization).await?;
                tracing::warn!(
                    organization.id = %organization,
                    "extensions ran before the engine was `swarm`: run them again to connect them to other machines"
                );
            }
        }
        Ok(())
    }
}

/// Runs `adopt` once, and if that fails, again and again in the returned task.
async fn try_until_done<F, T>(adopt: F) -> Option<JoinHandle<()>>
where
    F: Fn() -> T + Send + 'static,
    T: Future<Output = Result<(), StepError>> + Send + 'static,
{
    if is_done(adopt()).await {
        return None;
    }
    Some(spawn(async move {
        loop {
            sleep(PAUSE).await;
            if is_done(adopt()).await {
                break;
            }
        }
    }))
}

async fn is_done(adopted: impl Future<Output = Result<(), StepError>>) -> bool {
    let answer = timeout(PAUSE, adopted).await;
    let answer = answer.unwrap_or_else(|_elapsed| {
        Err(StepError::Unavailable(format!("the engine did not answer within {} s", PAUSE.as_secs())))
    });
    if let Err(error) = &answer {
        tracing::warn!(%error, "homes of applications and extensions could not be recorded yet");
    }
    answer.is_ok()
}

fn unreadable(error: StoreError) -> StepError {
    StepError::failed("the database cannot be read", error)
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use tokio::time::Instant;

    use super::*;

    fn unavailable() -> Result<(), StepError> {
        Err(StepError::Unavailable("the engine is down".to_owned()))
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_is_down_is_asked_again_later() {
        let (calls, began) = (Arc::new(AtomicUsize::new(0)), Instant::now());
        let counted = Arc::clone(&calls);
        let task = try_until_done(move || {
            let call = counted.fetch_add(1, Ordering::Relaxed);
            async move { if call < 2 { unavailable() } else { Ok(()) } }
        })
        .await;
        assert_eq!((calls.load(Ordering::Relaxed), began.elapsed()), (1, Duration::ZERO));
        task.unwrap().await.unwrap();
        assert_eq!((calls.load(Ordering::Relaxed), began.elapsed()), (3, 2 * PAUSE));
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_hangs_does_not_hold_up_the_start() {
        let began = Instant::now();
        let task = try_until_done(pending).await;
        assert_eq!(began.elapsed(), PAUSE);
        task.unwrap().abort();
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_asked_again_behind_an_answer() {
        assert!(try_until_done(|| async { Ok(()) }).await.is_none());
    }
}
