//! Deployments inside another service, with a store and a host.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex as StdMutex},
    time::Duration,
};

use async_trait::async_trait;
use launchway_domain::{
    applications::Repository,
    page::PageRequest,
    secret::{Sealed, Secret, SecretBoxError},
};
use launchway_embedding::{
    Actor, Application, ApplicationState, Blueprint, Created, Deployment, DeploymentId, DeploymentState,
    Embedded, Error, Host, ImageRef, MemoryStore, NewApplication, Organization, Port, ProbeTarget, Role,
    Route, SecretBox, StepError, Target, User, Version, VersionId,
};
use launchway_testkit::builders::{an_actor, parsed};
use tokio::sync::Notify;

/// A host that records its calls, and fails as configured.
#[derive(Clone, Default)]
struct Machine(Arc<StdMutex<State>>, Arc<Notify>);

#[derive(Default)]
struct State {
    running: BTreeMap<VersionId, (SocketAddr, ImageRef)>,
    ports: u16,
    variables: Vec<String>,
    routes: Vec<Target>,
    refusal: Option<StepError>,
    illness: Option<String>,
    hangs: Option<&'static str>,
    panics: bool,
}

impl Machine {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn running(&self) -> Vec<DeploymentId> {
        self.state().running.keys().map(|id| id.deployment).collect()
    }

    fn images(&self) -> Vec<String> {
        self.state().running.values().map(|(_, image)| image.to_string()).collect()
    }

    async fn hang(&self, call: &'static str) {
        if self.state().hangs == Some(call) {
            std::future::pending().await
        }
    }
}

#[async_trait]
impl Host for Machine {
    async fn start(&self, version: &Version) -> Result<SocketAddr, StepError> {
        self.hang("start").await;
        let mut state = self.state();
        if state.panics {
            drop(state);
            panic!("out of ideas");
        }
        if let Some(refusal) = state.refusal.clone() {
            return Err(refusal);
        }
        state.ports += 1;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 3000 + state.ports));
        state.running.insert(version.id, (address, version.image.clone()));
        state.variables.extend(version.environment.iter().map(|(name, value)| format!("{name}={value}")));
        Ok(address)
    }

    async fn list(&self) -> Result<Vec<(VersionId, SocketAddr)>, StepError> {
        Ok(self.state().running.iter().map(|(id, (address, _))| (*id, *address)).collect())
    }

    async fn end(&self, id: VersionId) -> Result<(), StepError> {
        self.hang("end").await;
        self.state().running.remove(&id);
        Ok(())
    }

    async fn check(&self, _: &ProbeTarget) -> Result<(), String> {
        self.hang("check").await;
        self.state().illness.clone().map_or(Ok(()), Err)
    }

    async fn route(&self, route: &Route) -> Result<(), StepError> {
        self.hang("route").await;
        self.state().routes.push(route.target.clone());
        Ok(())
    }

    async fn changed(&self) {
        self.1.notified().await;
    }
}

fn service(store: &Arc<MemoryStore>, machine: &Machine) -> Embedded {
    Embedded::builder(Arc::clone(store), machine.clone()).clock(clock()).build()
}

/// Returns a clock that goes with the time of the runtime, which tests pause.
fn clock() -> impl Fn() -> chrono::DateTime<chrono::Utc> + Send + Sync {
    let began = tokio::time::Instant::now();
    move || chrono::DateTime::UNIX_EPOCH + began.elapsed()
}

fn fresh() -> (Embedded, Machine, Arc<MemoryStore>) {
    let (store, machine) = (Arc::new(MemoryStore::new()), Machine::default());
    (service(&store, &machine), machine, store)
}

fn ada() -> Actor {
    an_actor().build()
}

fn web() -> NewApplication {
    let port = Port::try_from(80).unwrap();
    Blueprint::of_image(parsed("web"), parsed("production"), parsed("nginx:1"), port).into()
}

async fn made(service: &Embedded, new: NewApplication) -> (Application, Deployment) {
    let Created { application, deployment, .. } = service.applications().create(&ada(), new).await.unwrap();
    (application, deployment)
}

/// Returns the state of a deployment, and the last line of its log.
async fn ended(service: &Embedded, id: DeploymentId) -> (DeploymentState, String) {
    let state = service.deployments().get(&ada(), id).await.unwrap().status.state;
    let lines = service.logs().of_deployment(&ada(), id, None, 1000).await.unwrap();
    (state, lines.last().map(|line| line.text.clone()).unwrap_or_default())
}

/// Runs the service until `done` is, or for ten minutes.
async fn run_until<T>(service: &Embedded, done: impl Future<Output = T>) -> T {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let run = service.run(async { drop(receiver.await) });
    let done = async {
        let done = tokio::time::timeout(Duration::from_secs(600), done).await.unwrap();
        sender.send(()).unwrap();
        done
    };
    tokio::join!(run, done).1
}

async fn is_over(service: &Embedded, id: DeploymentId) -> (DeploymentState, String) {
    loop {
        let (state, line) = ended(service, id).await;
        if state.is_final() {
            return (state, line);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_is_started_checked_routed_to_and_live() {
    let (service, machine, _) = fresh();
    let (application, first) = made(&service, web()).await;
    assert_eq!(ended(&service, first.id).await.0, DeploymentState::Queued);
    service.run_due().await.unwrap();
    assert_eq!(ended(&service, first.id).await.0, DeploymentState::Deployed);
    assert_eq!(machine.images(), ["nginx:1"]);
    // The host has chosen the port.
    assert!(
        matches!(machine.state().routes.last(), Some(Target::Endpoints(all)) if all[0].address.port() == 3001)
    );
    let application = service.applications().get(&ada(), application.id).await.unwrap();
    assert_eq!(application.status.state, ApplicationState::Running);
    let artifact = service.deployments().artifact(&ada(), first.id).await.unwrap();
    assert_eq!(artifact.map(|image| image.to_string()).as_deref(), Some("nginx:1"));
}

#[tokio::test(start_paused = true)]
async fn the_next_version_replaces_the_one_before() {
    let (service, machine, _) = fresh();
    let (application, _first) = made(&service, web()).await;
    service.run_due().await.unwrap();
    let second = service.deployments().request(&ada(), application.id).await.unwrap();
    service.run_due().await.unwrap();
    assert_eq!(ended(&service, second.id).await.0, DeploymentState::Deployed);
    assert_eq!(machine.running(), [second.id]);
}

#[tokio::test(start_paused = true)]
async fn an_unhealthy_version_leaves_the_live_one_as_it_is() {
    let (service, machine, _) = fresh();
    let (application, first) = made(&service, web()).await;
    service.run_due().await.unwrap();
    machine.state().illness = Some("it answers 500".to_owned());
    let second = service.deployments().request(&ada(), application.id).await.unwrap();
    service.run_due().await.unwrap();
    let (state, why) = ended(&service, second.id).await;
    assert_eq!(state, DeploymentState::Failed);
    assert!(why.contains("it answers 500"), "{why}");
    assert_eq!(machine.running(), [first.id]);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_version_fails_and_a_fault_is_retried() {
    let (service, machine, _) = fresh();
    machine.state().refusal = Some(StepError::Rejected("there is no such image".to_owned()));
    let (application, first) = made(&service, web()).await;
    service.run_due().await.unwrap();
    let expected = (DeploymentState::Failed, "Failed: there is no such image".to_owned());
    assert_eq!(ended(&service, first.id).await, expected);

    machine.state().refusal = Some(StepError::Retryable("it does not answer".to_owned()));
    let second = service.deployments().request(&ada(), application.id).await.unwrap();
    service.run_due().await.unwrap();
    let (state, line) = ended(&service, second.id).await;
    assert_eq!((state, line.as_str()), (DeploymentState::Queued, "Attempt failed: it does not answer"));
}

#[tokio::test(start_paused = true)]
async fn a_queued_deployment_can_be_cancelled() {
    let (service, machine, _) = fresh();
    let (_, first) = made(&service, web()).await;
    service.deployments().cancel(&ada(), first.id).await.unwrap();
    service.run_due().await.unwrap();
    assert_eq!(ended(&service, first.id).await, (DeploymentState::Cancelled, "Cancelled".to_owned()));
    assert_eq!(machine.running(), []);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_or_deleted_application_does_not_run() {
    let (service, machine, _) = fresh();
    let (application, _first) = made(&service, web()).await;
    service.run_due().await.unwrap();
    service.applications().stop(&ada(), application.id).await.unwrap();
    service.run_due().await.unwrap();
    assert_eq!(machine.running(), []);
    service.applications().restart(&ada(), application.id).await.unwrap();
    service.run_due().await.unwrap();
    assert_eq!(machine.running().len(), 1);
    service.applications().delete(&ada(), application.id).await.unwrap();
    service.run_due().await.unwrap();
    assert_eq!(machine.running(), []);
    let gone = service.applications().get(&ada(), application.id).await;
    assert!(matches!(gone, Err(Error::NotFound(_))), "{gone:?}");
}

#[tokio::test(start_paused = true)]
async fn a_restart_runs_a_second_copy_before_the_first_ends() {
    let (service, machine, _) = fresh();
    let (application, first) = made(&service, web()).await;
    service.run_due().await.unwrap();
    service.applications().restart(&ada(), application.id).await.unwrap();
    service.run_due().await.unwrap();
    let running: Vec<VersionId> = machine.state().running.keys().copied().collect();
    assert_eq!(running, [VersionId { deployment: first.id, attempt: 2 }]);
    assert!(
        matches!(machine.state().routes.last(), Some(Target::Endpoints(all)) if all[0].address.port() == 3002)
    );
}

#[tokio::test(start_paused = true)]
async fn a_rollback_runs_the_image_of_the_earlier_deployment() {
    let (service, machine, _) = fresh();
    let (application, first) = made(&service, web()).await;
    service.run_due().await.unwrap();
    let change = launchway_embedding::ApplicationChange {
        repository: Some("nginx:2".to_owned()),
        ..Default::default()
    };
    service.applications().update(&ada(), application.id, change).await.unwrap();
    service.run_due().await.unwrap();
    assert_eq!(machine.images(), ["nginx:2"]);
    let back = service.deployments().roll_back(&ada(), first.id).await.unwrap();
    service.run_due().await.unwrap();
    assert_eq!(ended(&service, back.id).await.0, DeploymentState::Deployed);
    assert_eq!(machine.images(), ["nginx:1"]);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_deployment_is_taken_over_by_the_next_run() {
    let (service, machine, store) = fresh();
    let (_, first) = made(&service, web()).await;
    // The earlier run starts, and ends before its version is healthy.
    machine.state().illness = Some("not yet".to_owned());
    assert!(tokio::time::timeout(Duration::from_secs(5), service.run_due()).await.is_err());
    drop(service);
    machine.state().illness = None;
    let later = crate::service(&store, &machine);
    later.run_due().await.unwrap();
    assert_eq!(ended(&later, first.id).await.0, DeploymentState::Deployed);
    assert_eq!(machine.running(), [first.id]);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_ends_by_itself_is_started_again() {
    let (service, machine, _) = fresh();
    let (_, first) = made(&service, web()).await;
    run_until(&service, async {
        is_over(&service, first.id).await;
        machine.state().running.clear();
        machine.1.notify_waiters();
        while machine.running().is_empty() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    })
    .await;
    assert_eq!(machine.running(), [first.id]);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_breaks_is_shown_as_failed_until_it_recovers() {
    let (service, machine, _) = fresh();
    let (application, first) = made(&service, web()).await;
    let becomes = async |state: ApplicationState| {
        while service.applications().get(&ada(), application.id).await.unwrap().status.state != state {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    run_until(&service, async {
        is_over(&service, first.id).await;
        // A version has to pass a check before a failed one counts.
        tokio::time::sleep(Duration::from_secs(60)).await;
        machine.state().illness = Some("it answers 500".to_owned());
        becomes(ApplicationState::Failed).await;
        machine.state().illness = None;
        becomes(ApplicationState::Running).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_host_fails_the_deployment() {
    let (service, machine, _) = fresh();
    machine.state().panics = true;
    let (application, first) = made(&service, web()).await;
    let (state, why) = run_until(&service, is_over(&service, first.id)).await;
    let expected = "Failed: the host panicked when it had to start the version: out of ideas";
    assert_eq!((state, why.as_str()), (DeploymentState::Failed, expected));
    machine.state().panics = false;
    let second = service.deployments().request(&ada(), application.id).await.unwrap();
    assert_eq!(run_until(&service, is_over(&service, second.id)).await.0, DeploymentState::Deployed);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_hangs_holds_up_nothing_for_long() {
    for call in ["start", "check", "route", "end"] {
        let (store, machine) = (Arc::new(MemoryStore::new()), Machine::default());
        let limit = |limits: &mut launchway_embedding::Limits| {
            limits.healthy = Duration::from_secs(20);
            limits.host.start = Duration::from_secs(20);
        };
        let service = Embedded::builder(store, machine.clone()).clock(clock()).limits(limit).build();
        let (application, first) = made(&service, web()).await;
        run_until(&service, is_over(&service, first.id)).await;
        machine.state().hangs = Some(call);
        let began = tokio::time::Instant::now();
        let second = service.deployments().request(&ada(), application.id).await.unwrap();
        let (state, why) = run_until(&service, is_over(&service, second.id)).await;
        let took = began.elapsed();
        let expected = match call {
            "start" | "check" => DeploymentState::Failed,
            _ => DeploymentState::Deployed,
        };
        assert_eq!(state, expected, "{call}: {why}");
        assert!(took < Duration::from_secs(120), "{call}: {took:?}");
        machine.state().hangs = None;
        let third = service.deployments().request(&ada(), application.id).await.unwrap();
        let (state, why) = run_until(&service, is_over(&service, third.id)).await;
        assert_eq!(state, DeploymentState::Deployed, "{call}: {why}");
    }
}

#[tokio::test(start_paused = true)]
async fn fifty_concurrent_requests_leave_one_version() {
    let (service, machine, _) = fresh();
    let (application, _) = made(&service, web()).await;
    let mut requested = Vec::new();
    for _ in 0..50 {
        requested.push(service.deployments().request(&ada(), application.id).await.unwrap().id);
    }
    let last = *requested.last().unwrap();
    run_until(&service, is_over(&service, last)).await;
    let page = PageRequest::new(1, 100, 100).unwrap();
    let all = service.deployments().list(&ada(), application.id, page).await.unwrap();
    let deployed = all.items.iter().filter(|one| one.status.state == DeploymentState::Deployed).count();
    let cancelled = all.items.iter().filter(|one| one.status.state == DeploymentState::Cancelled).count();
    assert_eq!((deployed, cancelled, machine.running()), (1, 50, vec![last]));
}

/// Seals by reversing: the seal must not be the text, and must be opened again.
struct Reversed;

impl SecretBox for Reversed {
    fn seal(&self, _: &str, plain: &[u8]) -> Result<Sealed, SecretBoxError> {
        let text = String::from_utf8(plain.to_vec()).map_err(|_invalid| SecretBoxError::CannotSeal)?;
        Ok(Sealed(text.chars().rev().collect()))
    }

    fn open(&self, _: &str, sealed: &Sealed) -> Result<Secret<Vec<u8>>, SecretBoxError> {
        Ok(Secret::new(sealed.0.chars().rev().collect::<String>().into_bytes()))
    }
}

#[tokio::test(start_paused = true)]
async fn variables_need_a_box_and_reach_the_version_with_one() {
    let variables = || {
        let map = BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())]);
        NewApplication { environment_variables: map.try_into().unwrap(), ..web() }
    };
    let (service, machine, store) = fresh();
    let refused = service.applications().create(&ada(), variables()).await;
    assert!(matches!(refused, Err(Error::Internal(_))), "{refused:?}");

    let service = Embedded::builder(store, machine.clone()).clock(clock()).secrets(Reversed).build();
    made(&service, variables()).await;
    service.run_due().await.unwrap();
    assert_eq!(machine.state().variables, ["GREETING=hello"]);
}

#[tokio::test(start_paused = true)]
async fn what_no_host_can_do_is_refused_before_it_is_recorded() {
    let (service, _, _) = fresh();
    let mut source = web();
    source.blueprint.repository =
        Repository::Git("https://git.example.com/analytics/web.git".to_owned().try_into().unwrap());
    source.blueprint.build_pack = launchway_domain::applications::BuildPack::Dockerfile;
    source.blueprint.branch = Some(parsed("main"));
    let mut command = web();
    command.blueprint.pre_run_command = Some(parsed("true"));
    let mut copies = web();
    copies.blueprint.copies = launchway_embedding::CopyCount::try_from(2).unwrap();
    for (new, expected) in [
        (source, "repository must be a reference such as `web:1`: nothing is built here"),
        (command, "pre_run_command and post_run_command must be absent: commands are not run here"),
        (copies, "replicas must be 1: one instance runs here"),
    ] {
        let refused = service.applications().create(&ada(), new).await.unwrap_err();
        assert_eq!(refused.to_string(), expected);
    }
    let page = PageRequest::new(1, 10, 10).unwrap();
    let all = service.applications().list(&ada(), &Default::default(), page).await.unwrap();
    assert_eq!(all.total, 0);
    let audit =
        service.audit().list(&an_actor().with_role(Role::Admin).build(), &Default::default(), page).await;
    assert_eq!(audit.unwrap().total, 0);
}

#[tokio::test(start_paused = true)]
async fn other_organizations_see_nothing() {
    let (service, _, _) = fresh();
    let (application, first) = made(&service, web()).await;
    let (id, now) = (uuid::Uuid::from_u128(7), chrono::DateTime::UNIX_EPOCH);
    let others = Organization::new(id.into(), parsed("Others"), parsed(""), now);
    let eve = User::invited(id.into(), parsed("eve"), parsed("eve@example.com"), now);
    let eve = Actor::vouched_for(eve, others, Role::Admin);
    assert!(matches!(service.applications().get(&eve, application.id).await, Err(Error::NotFound(_))));
    assert!(matches!(service.deployments().get(&eve, first.id).await, Err(Error::NotFound(_))));
    assert!(matches!(service.deployments().artifact(&eve, first.id).await, Err(Error::NotFound(_))));
    let lines = service.logs().of_deployment(&eve, first.id, None, 10).await;
    assert!(matches!(lines, Err(Error::NotFound(_))), "{lines:?}");
}
