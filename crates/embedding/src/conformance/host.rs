//! Tests of a host.

use std::{pin::Pin, sync::Arc, time::Duration};

use launchway_domain::{applications::ImageRef, deployments::ProbeTarget};
use tokio::time::{sleep, timeout};

use super::{
    Failures, Outcome, Test,
    fixtures::{Tenant, id},
    require, run, said,
};
use crate::host::{Host, Version, VersionId};

/// A host that is being opened.
pub(super) type Opening<'a> = Pin<Box<dyn Future<Output = Arc<dyn Host>> + Send + 'a>>;
/// Opens a host.
type Open<'a> = &'a (dyn Fn() -> Opening<'a> + Send + Sync);

/// The time that a version gets to become healthy.
const HEALTHY: Duration = Duration::from_secs(10);

pub(super) async fn check<'a>(open: Open<'a>, image: &'a ImageRef) -> Result<(), Failures> {
    let tests: Vec<(&'static str, Test<'a>)> = vec![
        ("a started version is listed and healthy", Box::pin(is_listed(open, image))),
        ("an ended version is not there", Box::pin(is_ended(open, image))),
        ("the end of an unknown version is no error", Box::pin(is_idempotent(open))),
        ("two attempts run beside each other", Box::pin(runs_beside(open, image))),
        ("a version is started again in its own place", Box::pin(is_replaced(open, image))),
        ("a version is found again by the next run", Box::pin(is_found(open, image))),
        ("an interrupted start can be ended", Box::pin(is_interrupted(open, image))),
    ];
    run(tests).await
}

fn version(image: &ImageRef) -> Version {
    let application = Tenant::new().application;
    let (port, id) = (application.blueprint.port, VersionId { deployment: id(), attempt: 1 });
    Version { id, application, image: image.clone(), environment: Default::default(), port }
}

async fn ids(host: &Arc<dyn Host>) -> Result<Vec<VersionId>, String> {
    Ok(host.list().await.map_err(said)?.into_iter().map(|(id, _)| id).collect())
}

/// Starts a version, and waits until it is healthy.
async fn start(host: &Arc<dyn Host>, version: &Version) -> Result<ProbeTarget, String> {
    let address = host.start(version).await.map_err(said)?;
    let listed = host.list().await.map_err(said)?;
    require(listed.contains(&(version.id, address)), "a started version is not listed with its address")?;
    let target = ProbeTarget { address, path: None };
    let healthy = async {
        while let Err(reason) = host.check(&target).await {
            tracing::debug!(reason, "not healthy yet");
            sleep(Duration::from_millis(20)).await;
        }
    };
    let is_healthy = timeout(HEALTHY, healthy).await.is_ok();
    require(is_healthy, "a started version does not become healthy")?;
    Ok(target)
}

async fn end(host: &Arc<dyn Host>, id: VersionId) -> Outcome {
    host.end(id).await.map_err(said)?;
    require(!ids(host).await?.contains(&id), "an ended version is listed")
}

async fn is_listed(open: Open<'_>, image: &ImageRef) -> Outcome {
    let (host, version) = (open().await, version(image));
    start(&host, &version).await?;
    end(&host, version.id).await
}

async fn is_ended(open: Open<'_>, image: &ImageRef) -> Outcome {
    let (host, version) = (open().await, version(image));
    let target = start(&host, &version).await?;
    end(&host, version.id).await?;
    end(&host, version.id).await?;
    require(host.check(&target).await.is_err(), "an ended version still responds")
}

async fn is_idempotent(open: Open<'_>) -> Outcome {
    let host = open().await;
    end(&host, VersionId { deployment: id(), attempt: 1 }).await
}

async fn runs_beside(open: Open<'_>, image: &ImageRef) -> Outcome {
    let (host, first) = (open().await, version(image));
    let second = Version { id: VersionId { attempt: 2, ..first.id }, ..first.clone() };
    start(&host, &first).await?;
    start(&host, &second).await?;
    require(ids(&host).await?.contains(&first.id), "the second attempt has ended the first one")?;
    end(&host, first.id).await?;
    require(ids(&host).await?.contains(&second.id), "the end of the first attempt has ended the second one")?;
    end(&host, second.id).await
}

async fn is_replaced(open: Open<'_>, image: &ImageRef) -> Outcome {
    let (host, version) = (open().await, version(image));
    start(&host, &version).await?;
    start(&host, &version).await?;
    let copies = ids(&host).await?.into_iter().filter(|id| *id == version.id).count();
    require(copies == 1, "a version that was started twice runs twice")?;
    end(&host, version.id).await
}

async fn is_found(open: Open<'_>, image: &ImageRef) -> Outcome {
    let (host, version) = (open().await, version(image));
    start(&host, &version).await?;
    drop(host);
    let host = open().await;
    require(ids(&host).await?.contains(&version.id), "a running version is unknown to the next run")?;
    end(&host, version.id).await
}

/// Drops the call at different moments, and ends what it may have started.
async fn is_interrupted(open: Open<'_>, image: &ImageRef) -> Outcome {
    let host = open().await;
    for milliseconds in [0, 1, 2, 5, 10, 20] {
        let version = version(image);
        // The result does not matter: the call may have been faster.
        timeout(Duration::from_millis(milliseconds), host.start(&version)).await.ok();
        end(&host, version.id).await?;
        sleep(Duration::from_millis(50)).await;
        require(!ids(&host).await?.contains(&version.id), "an ended version has come back")?;
    }
    Ok(())
}
