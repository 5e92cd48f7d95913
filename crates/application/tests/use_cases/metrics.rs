//! The recent metrics of applications.

use std::{sync::Arc, time::Duration};

use launchway_application::{
    Error,
    metrics::{ApplicationMetrics, Metrics, Sample},
};
use launchway_domain::{
    applications::Application,
    deployments::{Deployment, StepError},
    metrics::{ContainerUsage, MockContainerStatistics},
};
use launchway_testkit::builders::{
    a_container, a_deployment, a_profile, an_actor, an_application, an_organization,
};
use mockall::Sequence;
use tokio::time::advance;

const MEBIBYTE: u64 = 1 << 20;

fn application() -> Application {
    an_application().build()
}

fn live() -> Deployment {
    a_deployment().of(&application()).run_by(a_container("web")).build()
}

/// Statistics of these samples in turn: processor time in milliseconds, and memory in mebibytes.
fn statistics(samples: &[Result<Option<(u64, u64)>, StepError>]) -> Metrics {
    let mut statistics = MockContainerStatistics::new();
    let mut order = Sequence::new();
    for sample in samples.iter().cloned() {
        let usage = sample.map(|found| {
            found.map(|(cpu, memory)| ContainerUsage {
                cpu_time: Duration::from_millis(cpu),
                memory: memory * MEBIBYTE,
            })
        });
        statistics.expect_usage().once().in_sequence(&mut order).return_once(move |_| usage);
    }
    Metrics::new(Some(Arc::new(statistics)))
}

async fn of(metrics: &Metrics) -> ApplicationMetrics {
    metrics
        .of(&an_actor().build(), &application(), Some(&live()))
        .await
        .unwrap_or_else(|error| panic!("{error}"))
}

fn values(samples: &[Sample]) -> Vec<f64> {
    samples.iter().map(|sample| sample.value).collect()
}

#[tokio::test(start_paused = true)]
async fn containers_are_asked_while_somebody_looks() {
    let metrics = statistics(&[Ok(Some((1000, 10))), Ok(Some((3500, 20)))]);
    for _ in 0..50 {
        assert_eq!(values(&of(&metrics).await.memory), [10.0 * MEBIBYTE as f64]);
    }
    advance(Duration::from_millis(4999)).await;
    assert_eq!(of(&metrics).await.memory.len(), 1, "not more often than every five seconds");
    advance(Duration::from_millis(1)).await;
    let seen = of(&metrics).await;
    assert_eq!(values(&seen.cpu), [50.0], "2.5 s of processor time in 5 s");
    assert_eq!(seen.memory[0].age, Duration::from_secs(5));
    assert_eq!(values(&seen.memory), [10, 20].map(|size| (size * MEBIBYTE) as f64));
}

#[tokio::test(start_paused = true)]
async fn a_container_that_started_again_has_no_processor_time_before() {
    let metrics = statistics(&[Ok(Some((5000, 10))), Ok(Some((100, 10))), Ok(Some((600, 10)))]);
    for _ in 0..3 {
        of(&metrics).await;
        advance(Duration::from_secs(5)).await;
    }
    let without_engine = Metrics::new(None);
    assert_eq!(of(&without_engine).await, ApplicationMetrics::default());
}

#[tokio::test(start_paused = true)]
async fn a_failed_sample_is_missing() {
    let unavailable = StepError::Unavailable("no answer".to_owned());
    let metrics = statistics(&[Err(unavailable), Ok(None), Ok(Some((1000, 10)))]);
    for expected in [0, 0, 1] {
        assert_eq!(of(&metrics).await.memory.len(), expected);
        advance(Duration::from_secs(5)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_a_rate_over_ten_seconds() {
    let (metrics, id) = (Metrics::new(None), application().id);
    for total in [100, 103, 110] {
        metrics.record_requests([(id, total)]);
        advance(Duration::from_secs(5)).await;
    }
    assert_eq!(values(&of(&metrics).await.requests), [60.0]);
    // The front proxy was started again.
    for total in [0, 5] {
        metrics.record_requests([(id, total)]);
        advance(Duration::from_secs(5)).await;
    }
    assert_eq!(values(&of(&metrics).await.requests), [60.0, 30.0]);
    metrics.record_requests([]);
    assert_eq!(of(&metrics).await.requests, []);
}

#[tokio::test]
async fn metrics_are_for_members_of_the_organization() {
    let other = an_organization().named("Compilers").build();
    let role = launchway_domain::organizations::Role::Admin;
    let stranger = an_actor().of(a_profile().member_of(&other, role).build()).build();
    let refused = Metrics::new(None).of(&stranger, &application(), None).await;
    assert!(matches!(refused, Err(Error::NotFound("the application"))));
    let nobody = an_actor().of(a_profile().build()).build();
    let refused = Metrics::new(None).of(&nobody, &application(), None).await;
    assert!(matches!(refused, Err(Error::Forbidden(_))));
}
