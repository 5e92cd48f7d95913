//! Deployments inside another service, with only a keeper of records and a host.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    collections::BTreeMap,
    net::IpAddr,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex as StdMutex},
};

use async_trait::async_trait;
use launchway_application::{
    Error,
    applications::NewApplication,
    embedded::{Embedded, Host, NoSecrets, RecordKeeper, Version, Visit},
};
use launchway_domain::{
    applications::{Application, ApplicationState, Blueprint, BuildPack, ImageRef, Port, Repository},
    auth::Actor,
    deployments::{Deployment, DeploymentState, ProbeTarget, StepError},
    ids::DeploymentId,
    records::Records,
    routes::{Route, Target},
    store::StoreError,
};
use launchway_testkit::{
    CountingIds, FixedClock,
    builders::{an_actor, parsed},
};
use tokio::sync::Mutex;

use crate::sealed_values::a_box;

const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// Records that outlive the runs of the service.
#[derive(Clone)]
struct Shelf(Arc<Mutex<Records>>);

#[async_trait]
impl RecordKeeper for Shelf {
    async fn visit(&self, visit: Visit<'_>) -> Result<(), StoreError> {
        visit(&mut *self.0.lock().await)
    }
}

/// A host that records its calls, and fails as configured.
#[derive(Clone, Default)]
struct Machine(Arc<StdMutex<State>>);

#[derive(Default)]
struct State {
    running: BTreeMap<DeploymentId, ImageRef>,
    variables: Vec<String>,
    routes: Vec<Target>,
    refusal: Option<StepError>,
    illness: Option<String>,
}

impl Machine {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn running(&self) -> Vec<DeploymentId> {
        self.state().running.keys().copied().collect()
    }
}

#[async_trait]
impl Host for Machine {
    async fn start(&self, version: &Version) -> Result<IpAddr, StepError> {
        let mut state = self.state();
        if let Some(refusal) = state.refusal.clone() {
            return Err(refusal);
        }
        state.running.insert(version.deployment, version.image.clone());
        state.variables.extend(version.environment.iter().map(|(name, value)| format!("{name}={value}")));
        Ok(ADDRESS)
    }

    async fn find(&self, deployment: DeploymentId) -> Result<Option<IpAddr>, StepError> {
        Ok(self.state().running.get(&deployment).map(|_running| ADDRESS))
    }

    async fn end(&self, deployment: DeploymentId) -> Result<(), StepError> {
        self.state().running.remove(&deployment);
        Ok(())
    }

    async fn check(&self, _: &ProbeTarget) -> Result<(), String> {
        self.state().illness.clone().map_or(Ok(()), Err)
    }

    async fn route_to(&self, route: &Route) -> Result<(), StepError> {
        self.state().routes.push(route.target.clone());
        Ok(())
    }
}

fn service(shelf: &Shelf, machine: &Machine) -> Embedded {
    Embedded::new(shelf.clone(), machine.clone(), NoSecrets, FixedClock::default(), CountingIds::default())
}

fn fresh() -> (Embedded, Machine, Shelf) {
    let shelf = Shelf(Arc::new(Mutex::new(Records::of(&[&ada()]))));
    let machine = Machine::default();
    (service(&shelf, &machine), machine, shelf)
}

fn ada() -> Actor {
    an_actor().build()
}

fn web() -> NewApplication {
    let port = Port::try_from(80).unwrap();
    Blueprint::of_image(parsed("web"), parsed("production"), parsed("nginx:1"), port).into()
}

/// Returns the created application and its first deployment.
async fn made(service: &Embedded, new: NewApplication) -> (Application, Deployment) {
    let (detail, _) = service.applications.create(&ada(), new, None).await.unwrap();
    (detail.summary.application, detail.deployments.into_iter().next().unwrap())
}

/// Returns the state of a deployment, and the last line of its log.
async fn ended(service: &Embedded, id: DeploymentId) -> (DeploymentState, String) {
    let detail = service.deployments.detail(&ada(), id).await.unwrap();
    (detail.deployment.status.state, detail.logs.last().map(|line| line.text.clone()).unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn a_version_is_started_checked_led_to_and_live() {
    let (service, machine, _) = fresh();
    let (application, first) = made(&service, web()).await;
    assert_eq!(ended(&service, first.id).await.0, DeploymentState::Queued);
    service.worker.drain().await;
    assert_eq!(ended(&service, first.id).await.0, DeploymentState::Deployed);
    assert_eq!(machine.state().running.get(&first.id).map(ImageRef::as_str), Some("nginx:1"));
    assert!(
        matches!(machine.state().routes.last(), Some(Target::Container { address, .. }) if address.ip() == ADDRESS)
    );
    let (detail, _) = service.applications.detail(&ada(), application.id).await.unwrap();
    assert_eq!(detail.summary.application.status.state, ApplicationState::Running);
}

#[tokio::test(start_paused = true)]
async fn the_next_version_takes_the_place_of_the_one_before() {
    let (service, machine, _) = fresh();
    let (application, _first) = made(&service, web()).await;
    service.worker.drain().await;
    let second = service.deployments.redeploy(&ada(), application.id, None).await.unwrap().deployment;
    service.worker.drain().await;
    assert_eq!(ended(&service, second.id).await.0, DeploymentState::Deployed);
    assert_eq!(machine.running(), [second.id]);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_does_not_work_leaves_the_live_one_as_it_is() {
    let (service, machine, _) = fresh();
    let (application, first) = made(&service, web()).await;
    service.worker.drain().await;
    machine.state().illness = Some("it answers 500".to_owned());
    let second = service.deployments.redeploy(&ada(), application.id, None).await.unwrap().deployment;
    service.worker.drain().await;
    let (state, why) = ended(&service, second.id).await;
    assert_eq!(state, DeploymentState::Failed);
    assert!(why.contains("it answers 500"), "{why}");
    assert_eq!(machine.running(), [first.id]);
}

#[tokio::test(start_paused = true)]
async fn what_the_host_refuses_fails_and_a_fault_is_tried_again() {
    let (service, machine, shelf) = fresh();
    machine.state().refusal = Some(StepError::Rejected("there is no such image".to_owned()));
    let (application, first) = made(&service, web()).await;
    service.worker.drain().await;
    let expected = (DeploymentState::Failed, "Failed: there is no such image".to_owned());
    assert_eq!(ended(&service, first.id).await, expected);

    machine.state().refusal = Some(StepError::Retryable("it does not answer".to_owned()));
    let second = service.deployments.redeploy(&ada(), application.id, None).await.unwrap().deployment;
    service.worker.drain().await;
    assert_eq!(ended(&service, second.id).await.0, DeploymentState::Queued, "it waits for its time");
    let records = shelf.0.lock().await;
    let job = records.job(ada().organization().unwrap(), second.job_id).unwrap();
    assert_eq!((job.attempt, job.reason.as_deref()), (1, Some("it does not answer")));
}

#[tokio::test(start_paused = true)]
async fn one_that_waits_can_be_cancelled() {
    let (service, machine, _) = fresh();
    let (_, first) = made(&service, web()).await;
    service.deployments.cancel(&ada(), first.id).await.unwrap();
    service.worker.drain().await;
    assert_eq!(ended(&service, first.id).await, (DeploymentState::Cancelled, "Cancelled".to_owned()));
    assert_eq!(machine.running(), []);
}

#[tokio::test(start_paused = true)]
async fn an_application_that_is_stopped_or_deleted_does_not_run() {
    let (service, machine, _) = fresh();
    let (application, _first) = made(&service, web()).await;
    service.worker.drain().await;
    service.applications.stop(&ada(), application.id).await.unwrap();
    service.worker.drain().await;
    assert_eq!(machine.running(), []);
    service.deployments.redeploy(&ada(), application.id, None).await.unwrap();
    service.worker.drain().await;
    assert_eq!(machine.running().len(), 1);
    service.applications.delete(&ada(), application.id).await.unwrap();
    service.worker.drain().await;
    assert_eq!(machine.running(), []);
    let gone = service.applications.detail(&ada(), application.id).await;
    assert!(matches!(gone, Err(Error::NotFound(_))), "{gone:?}");
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_run_left_under_way_is_taken_over() {
    let (service, machine, shelf) = fresh();
    let (_, first) = made(&service, web()).await;
    // The earlier run starts, and ends before its version is healthy.
    machine.state().illness = Some("not yet".to_owned());
    let max_wait = std::time::Duration::from_secs(5);
    assert!(tokio::time::timeout(max_wait, service.worker.drain()).await.is_err());
    drop(service);
    machine.state().illness = None;
    let later = Embedded::new(shelf, machine.clone(), NoSecrets, FixedClock::default(), later_ids());
    later.worker.drain().await;
    assert_eq!(ended(&later, first.id).await.0, DeploymentState::Deploying, "its lease holds");
    later.take_over().await.unwrap();
    assert_eq!(ended(&later, first.id).await.0, DeploymentState::Queued);
    later.worker.drain().await;
    assert_eq!(ended(&later, first.id).await.0, DeploymentState::Deployed);
    assert_eq!(machine.running(), [first.id]);
}

/// Returns ids that no earlier run has used.
fn later_ids() -> impl Fn() -> uuid::Uuid + Send + Sync {
    let ids = CountingIds::default();
    move || uuid::Uuid::from_u128(launchway_domain::ids::Ids::next(&ids).as_u128() + 1_000_000)
}

#[tokio::test(start_paused = true)]
async fn variables_need_a_box_and_reach_the_version_with_one() {
    let variables = || {
        let map = BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())]);
        NewApplication { environment_variables: map.try_into().unwrap(), ..web() }
    };
    let (service, machine, shelf) = fresh();
    let refused = service.applications.create(&ada(), variables(), None).await;
    assert!(matches!(refused, Err(Error::Internal(_))), "{refused:?}");

    let (clock, ids) = (FixedClock::default(), later_ids());
    let service = Embedded::new(shelf, machine.clone(), a_box(), clock, ids);
    made(&service, variables()).await;
    service.worker.drain().await;
    assert_eq!(machine.state().variables, ["GREETING=hello"]);
}

#[tokio::test(start_paused = true)]
async fn what_needs_an_engine_is_refused_with_a_sentence() {
    let (service, _, _) = fresh();
    let mut source = web();
    source.blueprint.repository =
        Repository::Git("https://git.example.com/analytics/web.git".to_owned().try_into().unwrap());
    source.blueprint.build_pack = BuildPack::Dockerfile;
    source.blueprint.branch = Some(parsed("main"));
    let (_, built) = made(&service, source).await;
    let mut command = web();
    command.blueprint.name = parsed("api");
    command.blueprint.pre_run_command = Some(parsed("true"));
    let (_, prepared) = made(&service, command).await;
    service.worker.drain().await;
    let expected = "Failed: no source is fetched here: only prebuilt images are deployed";
    assert_eq!(ended(&service, built.id).await, (DeploymentState::Failed, expected.to_owned()));
    let expected = "Failed: the pre-run command failed: commands are not supported here";
    assert_eq!(ended(&service, prepared.id).await, (DeploymentState::Failed, expected.to_owned()));
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/embedded.rs")
}

#[test]
fn the_example_has_at_most_60_lines() {
    let lines = std::fs::read_to_string(example()).unwrap().lines().count();
    assert!(lines <= 60, "{lines} lines in {}", example().display());
}

#[test]
fn the_example_deploys() {
    let tests = std::env::current_exe().unwrap();
    let program = tests.parent().and_then(Path::parent).unwrap().join("examples/embedded");
    let run = Command::new(&program).output();
    let run = run.unwrap_or_else(|error| panic!("{}: {error}: build the examples", program.display()));
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let printed = String::from_utf8(run.stdout).unwrap();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.first(), Some(&"Deployment requested by ada"));
    assert_eq!(lines.last(), Some(&"The deployment is deployed"));
}
