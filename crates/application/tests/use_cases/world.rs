//! Fakes for workers: a queue, records, a log and an engine that record their calls in one journal, and
//! respond as configured.

mod background;
mod composer;
mod engine;
mod extensions;
mod image_records;
mod journal;
mod queue;
mod records;
mod registry;

use std::{
    collections::{HashMap, VecDeque},
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use launchway_application::{
    EngineStatus, Homes, OwnReplica, RuntimeLogs, ServiceContext, Terms, WakeSignal,
    deployments::{HealthTimings, ImageQuota, Pipeline, PipelinePorts},
    extensions::{RunPorts, Runs},
    routes::{RoutePorts, Routes},
    webhooks::{BranchPoller, BranchPollerPorts, BranchPollerTimings, PathWatcher, PathWatcherPorts},
    worker::{JobHandlers, Worker, WorkerTimings},
};
use launchway_domain::{
    applications::{Application, NamedApplication},
    clock::{Clock as _, Timestamp},
    deployments::{
        Condition, ContainerId, ContainerPlan, Deployment, DiscoveredResource, ImageRecord, LiveVersion,
        PrintedLine, RetentionStatus, StepError,
    },
    extensions::{ExecutionDetail, ExtensionRoute, NewExecutionLine},
    ids::{ApplicationId, DeploymentId, SubjectId},
    jobs::{ClaimLimits, ClaimedJob, Heartbeat, Job, NewJob},
    logs::NewLine,
    organizations::DeployKey,
    quotas::{Quota, Resource},
    routes::Route,
    store::{StoreError, Write},
};
use launchway_testkit::{CountingEntropy, CountingIds, FixedClock};

pub(crate) use self::{
    background::{look_after, wait},
    engine::{ADDRESS, AWAY, COMMIT, a_container_of, a_started_container, an_image_size, copies},
    queue::{a_job, a_worker_id},
    registry::Registry,
};
use crate::sealed_values::a_box;

/// Longer than any timeout.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(100 * 24 * 60 * 60);

/// Decides the result of a commit.
type Judge = Box<dyn FnMut(&[Write]) -> Result<(), StoreError> + Send>;

/// The configuration of the world, and the recorded calls.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) application: Option<Application>,
    pub(crate) deployments: Vec<Deployment>,
    pub(crate) live: Vec<LiveVersion>,
    /// The deployments whose retirement was interrupted.
    pub(crate) unretired: Vec<Deployment>,
    /// The applications with their host names.
    pub(crate) named: Vec<NamedApplication>,
    pub(crate) retention_status: Vec<RetentionStatus>,
    pub(crate) deploy_key: Option<DeployKey>,
    /// Applications that follow a branch.
    pub(crate) followers: Vec<Application>,
    /// The applications that missed the head of their branch.
    pub(crate) missed: Vec<ApplicationId>,
    /// The result of comparisons of commits.
    pub(crate) touched: Option<bool>,
    /// The pending jobs.
    pub(crate) waiting: VecDeque<ClaimedJob>,
    /// The jobs that were claimed and have not ended.
    pub(crate) claimed: Vec<Job>,
    /// True if only one job of a subject runs at once.
    pub(crate) has_one_job_per_subject: bool,
    /// The subjects of jobs of other workers.
    pub(crate) busy: Vec<SubjectId>,
    /// The number of claims that fail.
    pub(crate) failing_claims: usize,
    /// The results of the next heartbeats; without an entry, the lease holds.
    pub(crate) heartbeats: VecDeque<Result<Heartbeat, StoreError>>,
    /// Decides the results of commits; without it, each succeeds.
    pub(crate) judge: Option<Judge>,
    /// The number of writes to the log that fail.
    pub(crate) failing_appends: usize,
    /// The time of the last container output in the log.
    pub(crate) last_printed: Option<Timestamp>,
    /// The time of the last line that another server stores while this one reads the output of a container.
    pub(crate) printed_elsewhere: Option<Timestamp>,
    pub(crate) found: Vec<DiscoveredResource>,
    /// The registry of images, if there is one.
    pub(crate) registry: Option<Registry>,
    /// The machines of compositions.
    pub(crate) homes: Homes,
    /// This server as one of several.
    pub(crate) replica: OwnReplica,
    /// True if the engine sends no events of containers.
    pub(crate) is_quiet: bool,
    /// The condition of every container that is inspected individually; without it, as it is listed.
    pub(crate) condition: Option<Condition>,
    /// True if the engine does not respond.
    pub(crate) is_away: bool,
    /// True if a container that is resumed stays as it was.
    pub(crate) stays_down: bool,
    /// The error of every health check; without it, versions are healthy.
    pub(crate) illness: Option<String>,
    /// The errors of health checks by address.
    pub(crate) illnesses: HashMap<IpAddr, String>,
    pub(crate) printed: HashMap<ContainerId, Vec<PrintedLine>>,
    pub(crate) tail_logs: Vec<PrintedLine>,
    /// The deployments that have published files.
    pub(crate) published: Vec<DeploymentId>,
    /// The deployments that are compositions.
    pub(crate) composed: Vec<DeploymentId>,
    /// The volumes that a composition shares with the live version.
    pub(crate) shared_volumes: Vec<String>,
    /// The output of calls, by their name.
    pub(crate) output: HashMap<&'static str, Vec<Vec<u8>>>,
    /// The errors of the next calls, by their name.
    pub(crate) failures: HashMap<&'static str, VecDeque<StepError>>,
    /// The durations of calls, by their name.
    pub(crate) durations: HashMap<&'static str, Duration>,
    /// The run of an extension.
    pub(crate) execution: Option<ExecutionDetail>,
    /// The exit codes of steps, by their position; 0 if absent.
    pub(crate) exit_codes: HashMap<i32, i32>,
    /// The addresses that the last performed step had to avoid.
    pub(crate) reserved: Vec<IpAddr>,
    /// The routes of extensions.
    pub(crate) extension_routes: Vec<ExtensionRoute>,

    /// The bytes that images may take; 0 for any.
    pub(crate) image_limit: u64,
    /// The bytes of images that other deployments have.
    pub(crate) image_bytes: u64,
    /// The images that are recorded.
    pub(crate) images: Vec<ImageRecord>,

    /// The calls of ports, in order, with a short form of the writes.
    pub(crate) journal: Vec<String>,
    /// The reconcile jobs that were enqueued.
    pub(crate) reconcile_jobs: Vec<NewJob>,
    /// The plans of started containers.
    pub(crate) started: Vec<ContainerPlan>,
    /// The addresses that were checked.
    pub(crate) probed: Vec<SocketAddr>,
    /// The committed writes.
    pub(crate) commits: Vec<Vec<Write>>,
    /// All routes, for each full update of the router.
    pub(crate) routes: Vec<Vec<Route>>,
    /// The batches of log lines.
    pub(crate) batches: Vec<Vec<NewLine>>,
    /// The log lines of the run.
    pub(crate) run_lines: Vec<NewExecutionLine>,
}

/// Fakes of all ports of workers.
#[derive(Default)]
pub(crate) struct World {
    state: Mutex<State>,
    pub(crate) clock: Arc<FixedClock>,
    pub(crate) wake: WakeSignal,
    pub(crate) engine: EngineStatus,
}

impl World {
    /// Returns a world configured by `arrange`.
    pub(crate) fn with(arrange: impl FnOnce(&mut State)) -> Arc<Self> {
        let world = Arc::new(Self::default());
        arrange(&mut world.state());
        world
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| panic!("{poisoned}"))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the calls of ports, in order.
    pub(crate) fn journal(&self) -> Vec<String> {
        self.state().journal.clone()
    }

    /// Returns the entries of the journal with the prefix `beginning`.
    pub(crate) fn journal_of(&self, beginning: &str) -> Vec<String> {
        self.journal().into_iter().filter(|entry| entry.starts_with(beginning)).collect()
    }

    /// Returns the committed writes.
    pub(crate) fn commits(&self) -> Vec<Vec<Write>> {
        self.state().commits.clone()
    }

    /// Returns the lines of the log with their level.
    pub(crate) fn log(&self) -> Vec<String> {
        let state = self.state();
        state.batches.iter().flatten().map(|line| format!("{}: {}", line.level.as_str(), line.text)).collect()
    }

    /// Returns a worker of this world.
    pub(crate) fn worker(self: &Arc<Self>) -> Arc<Worker> {
        self.worker_with(ClaimLimits { builds: 2, operations: 2, per_organization: 2 })
    }

    pub(crate) fn worker_with(self: &Arc<Self>, limits: ClaimLimits) -> Arc<Worker> {
        let timings = HealthTimings::within(Duration::from_secs(60));
        let pipeline = Arc::new(Pipeline::new(self.pipeline_ports(), timings, self.context()));
        let runs = Arc::new(Runs::new(self.run_ports(), self.context()));
        let queue = Arc::clone(self) as _;
        let handlers = JobHandlers::new(pipeline).with_runs(runs);
        let timings = WorkerTimings::default();
        Arc::new(Worker::new(queue, handlers, a_worker_id(), limits, timings, self.context()))
    }

    fn run_ports(self: &Arc<Self>) -> RunPorts {
        RunPorts {
            executions: Arc::clone(self) as _,
            runner: Arc::clone(self) as _,
            log: Arc::clone(self) as _,
            secrets: Arc::new(a_box()),
            routes: self.routes(),
            hostname: "machine".to_owned(),
        }
    }

    /// Returns a branch poller with an interval of a minute.
    pub(crate) fn comparison(self: &Arc<Self>) -> BranchPoller {
        let ports = BranchPollerPorts {
            branches: Arc::clone(self) as _,
            deploy_keys: Arc::clone(self) as _,
            secrets: Arc::new(a_box()),
            source: Arc::clone(self) as _,
            watcher: PathWatcher::new(PathWatcherPorts {
                deployments: Arc::clone(self) as _,
                deploy_keys: Arc::clone(self) as _,
                secrets: Arc::new(a_box()),
                changes: Arc::clone(self) as _,
            }),
        };
        BranchPoller::new(ports, BranchPollerTimings::each(Duration::from_secs(60)), self.context())
    }

    fn context(self: &Arc<Self>) -> ServiceContext {
        let (replica, homes) = {
            let state = self.state();
            (state.replica.clone(), state.homes.clone())
        };
        ServiceContext {
            store: Arc::clone(self) as _,
            clock: Arc::clone(&self.clock) as _,
            ids: Arc::new(CountingIds::default()),
            wake: self.wake.clone(),
            engine: self.engine.clone(),
            terms: Terms::default(),
            entropy: Arc::new(CountingEntropy::default()),
            replica,
            homes,
        }
    }

    fn runtime_logs(self: &Arc<Self>) -> Arc<RuntimeLogs> {
        let this = || Arc::clone(self);
        Arc::new(RuntimeLogs::new(this(), this(), this(), Arc::new(a_box())))
    }

    /// Returns routes without a front address: a version is reached at the address of its container.
    pub(crate) fn routes(self: &Arc<Self>) -> Arc<Routes> {
        let ports = RoutePorts {
            applications: Arc::clone(self) as _,
            deployments: Arc::clone(self) as _,
            sites: Arc::clone(self) as _,
            router: Arc::clone(self) as _,
        };
        Arc::new(Routes::new(ports, None).with_extensions(Arc::clone(self) as _))
    }

    fn pipeline_ports(self: &Arc<Self>) -> PipelinePorts {
        PipelinePorts {
            applications: Arc::clone(self) as _,
            deployments: Arc::clone(self) as _,
            logs: Arc::clone(self) as _,
            runtime_logs: Some(self.runtime_logs()),
            deploy_keys: Arc::clone(self) as _,
            secrets: Arc::new(a_box()),
            source: Arc::clone(self) as _,
            planner: Arc::clone(self) as _,
            images: Arc::clone(self) as _,
            image_quota: Some(ImageQuota {
                records: Arc::clone(self) as _,
                quota: Quota { resource: Resource::ImageBytes, limit: self.state().image_limit },
            }),
            composer: Arc::clone(self) as _,
            deployer: Arc::clone(self) as _,
            inventory: Arc::clone(self) as _,
            probe: Arc::clone(self) as _,
            sites: Arc::clone(self) as _,
            routes: self.routes(),
        }
    }

    /// Records a call by its name with its duration and its failure; `about` is for the journal.
    async fn call(&self, name: &'static str, about: impl ToString) -> Result<(), StepError> {
        let about = about.to_string();
        self.state().journal.push(if about.is_empty() { name.to_owned() } else { format!("{name} {about}") });
        self.call_quietly(name).await
    }

    /// Does the same without an entry in the journal.
    async fn call_quietly(&self, name: &'static str) -> Result<(), StepError> {
        self.pass_time(name).await;
        let mut state = self.state();
        if state.is_away && engine::CALLS.contains(&name) {
            return Err(StepError::Unavailable(AWAY.to_owned()));
        }
        let failure = state.failures.get_mut(name).and_then(VecDeque::pop_front);
        failure.map_or(Ok(()), Err)
    }

    async fn pass_time(&self, name: &'static str) {
        let duration = self.state().durations.get(name).copied();
        if let Some(duration) = duration {
            tokio::time::sleep(duration).await;
        }
    }
}

impl State {
    /// Makes a call fail as rejected.
    pub(crate) fn refuse(&mut self, call: &'static str, reason: &str) {
        self.failures.entry(call).or_default().push_back(StepError::Rejected(reason.to_owned()));
    }

    /// Makes a call fail with a fault, `times` times.
    pub(crate) fn fault(&mut self, call: &'static str, times: usize) {
        let fault = || StepError::Retryable(format!("{call} does not answer"));
        self.failures.entry(call).or_default().extend((0..times).map(|_| fault()));
    }

    /// Sets the duration of a call.
    pub(crate) fn delay(&mut self, call: &'static str, duration: Duration) {
        self.durations.insert(call, duration);
    }

    /// Sets the output of a call.
    pub(crate) fn print(&mut self, call: &'static str, pieces: &[&str]) {
        self.output.insert(call, pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect());
    }
}
