//! A small world for workers: a queue, records, a log and an engine that remember what is asked of
//! them, in one journal, and answer as a test says.

mod background;
mod composer;
mod engine;
mod extensions;
mod journal;
mod queue;
mod records;

use std::{
    collections::{HashMap, VecDeque},
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use launchway_application::{
    Basics, Bell, EngineStatus, RuntimeLogs, Tools,
    deployments::{HealthTimings, Pipeline, PipelinePorts},
    extensions::{RunPorts, Runs},
    routes::{RoutePorts, Routes},
    webhooks::{Comparison, ComparisonPorts, ComparisonTimings},
    worker::{Crew, Worker, WorkerTimings},
};
use launchway_domain::{
    applications::{Application, NamedApplication},
    clock::{Clock as _, Timestamp},
    deployments::{
        Condition, ContainerId, ContainerPlan, Deployment, Found, LiveVersion, PrintedLine, Standing,
        StepError,
    },
    extensions::{ExecutionDetail, ExtensionRoute, NewExecutionLine},
    ids::{ApplicationId, DeploymentId, SubjectId},
    jobs::{ClaimLimits, ClaimedJob, Heartbeat, Job, NewJob},
    logs::NewLine,
    organizations::DeployKey,
    routes::Route,
    store::{StoreError, Write},
};
use launchway_testkit::{CountingEntropy, CountingIds, FixedClock};

pub(crate) use self::{
    background::{look_after, wait},
    engine::{ADDRESS, AWAY, COMMIT, a_container_of, a_started_container},
    queue::{a_job, a_worker_id},
};
use crate::sealing::a_box;

/// Longer than anybody waits.
pub(crate) const FOR_EVER: Duration = Duration::from_secs(100 * 24 * 60 * 60);

/// What happens when a commit is asked for.
type Judge = Box<dyn FnMut(&[Write]) -> Result<(), StoreError> + Send>;

/// Everything that a test says about the world, and everything that happened in it.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) application: Option<Application>,
    pub(crate) deployments: Vec<Deployment>,
    pub(crate) live: Vec<LiveVersion>,
    /// The deployments whose retirement was interrupted.
    pub(crate) unretired: Vec<Deployment>,
    /// The names of applications.
    pub(crate) named: Vec<NamedApplication>,
    pub(crate) standing: Vec<Standing>,
    pub(crate) deploy_key: Option<DeployKey>,
    /// Applications that follow a branch.
    pub(crate) followers: Vec<Application>,
    /// The applications that missed where their branch is.
    pub(crate) missed: Vec<ApplicationId>,
    /// The jobs that wait.
    pub(crate) waiting: VecDeque<ClaimedJob>,
    /// The jobs that were claimed and have not ended.
    pub(crate) claimed: Vec<Job>,
    /// True if of one subject only one job runs at once.
    pub(crate) has_one_job_per_subject: bool,
    /// The subjects of jobs of other workers.
    pub(crate) busy: Vec<SubjectId>,
    /// How often the queue cannot be asked for a job.
    pub(crate) failing_claims: usize,
    /// What the next signs of life are answered; when there is none left, that the lease holds.
    pub(crate) heartbeats: VecDeque<Result<Heartbeat, StoreError>>,
    /// Judges commits; without, each succeeds.
    pub(crate) judge: Option<Judge>,
    /// How often the log cannot be written.
    pub(crate) failing_appends: usize,
    /// What containers printed last according to the log.
    pub(crate) last_printed: Option<Timestamp>,
    pub(crate) found: Vec<Found>,
    /// Whether there is no news of containers.
    pub(crate) is_quiet: bool,
    /// The condition of every container that is asked for by itself; without, as it is found.
    pub(crate) condition: Option<Condition>,
    /// True if the engine does not answer.
    pub(crate) is_away: bool,
    /// True if a container that is resumed stays as it was.
    pub(crate) stays_down: bool,
    /// True if two containers of one deployment cannot run beside each other.
    pub(crate) runs_alone: bool,
    /// What is wrong with the health of a version; nothing without.
    pub(crate) illness: Option<String>,
    /// The same of what listens at one address.
    pub(crate) illnesses: HashMap<IpAddr, String>,
    pub(crate) printed: HashMap<ContainerId, Vec<PrintedLine>>,
    pub(crate) last_words: Vec<PrintedLine>,
    /// The deployments that have published files.
    pub(crate) published: Vec<DeploymentId>,
    /// The deployments that were composed.
    pub(crate) composed: Vec<DeploymentId>,
    /// The volumes that a composition shares with the live version.
    pub(crate) shared_volumes: Vec<String>,
    /// What a call prints, by its name.
    pub(crate) output: HashMap<&'static str, Vec<Vec<u8>>>,
    /// How the next calls fail, by their name.
    pub(crate) failures: HashMap<&'static str, VecDeque<StepError>>,
    /// How long a call takes, by its name.
    pub(crate) durations: HashMap<&'static str, Duration>,
    /// The run of an extension.
    pub(crate) execution: Option<ExecutionDetail>,
    /// How the programs of steps end, by their place; those that are not here end well.
    pub(crate) exit_codes: HashMap<i32, i32>,
    /// The names of extensions.
    pub(crate) extension_routes: Vec<ExtensionRoute>,

    /// What was asked of ports, in order, with a short form of what was written.
    pub(crate) journal: Vec<String>,
    /// The reconcile jobs that were enqueued.
    pub(crate) reconcile_jobs: Vec<NewJob>,
    /// The plans that containers were started by.
    pub(crate) started: Vec<ContainerPlan>,
    /// The addresses that were checked.
    pub(crate) probed: Vec<SocketAddr>,
    /// What was written.
    pub(crate) commits: Vec<Vec<Write>>,
    /// All routes, each time that they were told.
    pub(crate) routes: Vec<Vec<Route>>,
    /// What came into the log, in batches.
    pub(crate) batches: Vec<Vec<NewLine>>,
    /// What came into the log of the run.
    pub(crate) run_lines: Vec<NewExecutionLine>,
}

/// The world.
#[derive(Default)]
pub(crate) struct World {
    state: Mutex<State>,
    pub(crate) clock: Arc<FixedClock>,
    pub(crate) bell: Bell,
    pub(crate) engine: EngineStatus,
}

impl World {
    /// A world that is as `arrange` says.
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

    /// What was asked of ports, in order.
    pub(crate) fn journal(&self) -> Vec<String> {
        self.state().journal.clone()
    }

    /// What of the journal begins so.
    pub(crate) fn journal_of(&self, beginning: &str) -> Vec<String> {
        self.journal().into_iter().filter(|entry| entry.starts_with(beginning)).collect()
    }

    /// What was written, whatever else happened.
    pub(crate) fn commits(&self) -> Vec<Vec<Write>> {
        self.state().commits.clone()
    }

    /// The log, line by line: what kind, and what it says.
    pub(crate) fn log(&self) -> Vec<String> {
        let state = self.state();
        state.batches.iter().flatten().map(|line| format!("{}: {}", line.level.as_str(), line.text)).collect()
    }

    /// A worker of this world.
    pub(crate) fn worker(self: &Arc<Self>) -> Arc<Worker> {
        self.worker_with(ClaimLimits { builds: 2, operations: 2, per_organization: 2 })
    }

    pub(crate) fn worker_with(self: &Arc<Self>, limits: ClaimLimits) -> Arc<Worker> {
        let timings = HealthTimings::within(Duration::from_secs(60));
        let pipeline = Arc::new(Pipeline::new(self.pipeline_ports(), timings, self.tools().basics));
        let runs = Some(Arc::new(Runs::new(self.run_ports(), self.tools())));
        let queue = Arc::clone(self) as _;
        let (crew, timings) = (Crew { pipeline, runs }, WorkerTimings::default());
        Arc::new(Worker::new(queue, crew, a_worker_id(), limits, timings, self.tools().basics))
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

    /// Who compares its branches, a minute after each round.
    pub(crate) fn comparison(self: &Arc<Self>) -> Comparison {
        let ports = ComparisonPorts {
            branches: Arc::clone(self) as _,
            deploy_keys: Arc::clone(self) as _,
            secrets: Arc::new(a_box()),
            source: Arc::clone(self) as _,
        };
        Comparison::new(ports, ComparisonTimings::each(Duration::from_secs(60)), self.tools())
    }

    fn tools(self: &Arc<Self>) -> Tools {
        let basics = Basics {
            store: Arc::clone(self) as _,
            clock: Arc::clone(&self.clock) as _,
            ids: Arc::new(CountingIds::default()),
            bell: self.bell.clone(),
            engine: self.engine.clone(),
        };
        Tools { basics, entropy: Arc::new(CountingEntropy::default()) }
    }

    fn runtime_logs(self: &Arc<Self>) -> Arc<RuntimeLogs> {
        let this = || Arc::clone(self);
        Arc::new(RuntimeLogs::new(this(), this(), this(), Arc::new(a_box())))
    }

    /// Leads traffic in at no address: a version is reached where its container is.
    pub(crate) fn routes(self: &Arc<Self>) -> Arc<Routes> {
        let ports = RoutePorts {
            applications: Arc::clone(self) as _,
            deployments: Arc::clone(self) as _,
            extensions: Some(Arc::clone(self) as _),
            sites: Arc::clone(self) as _,
            router: Arc::clone(self) as _,
        };
        Arc::new(Routes::new(ports, None))
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
            composer: Arc::clone(self) as _,
            deployer: Arc::clone(self) as _,
            inventory: Arc::clone(self) as _,
            probe: Arc::clone(self) as _,
            sites: Arc::clone(self) as _,
            routes: self.routes(),
        }
    }

    /// A call by its name, which may take its time and fail; `about` is for the journal.
    async fn call(&self, name: &'static str, about: impl ToString) -> Result<(), StepError> {
        let about = about.to_string();
        self.state().journal.push(if about.is_empty() { name.to_owned() } else { format!("{name} {about}") });
        self.call_quietly(name).await
    }

    /// The same, for what would fill the journal.
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
    /// What was asked for cannot work.
    pub(crate) fn refuse(&mut self, call: &'static str, reason: &str) {
        self.failures.entry(call).or_default().push_back(StepError::Refused(reason.to_owned()));
    }

    /// The machine is at fault, `times` times.
    pub(crate) fn fault(&mut self, call: &'static str, times: usize) {
        let fault = || StepError::Fault(format!("{call} does not answer"));
        self.failures.entry(call).or_default().extend((0..times).map(|_| fault()));
    }

    /// A call takes its time.
    pub(crate) fn delay(&mut self, call: &'static str, duration: Duration) {
        self.durations.insert(call, duration);
    }

    /// What a call prints.
    pub(crate) fn print(&mut self, call: &'static str, pieces: &[&str]) {
        self.output.insert(call, pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect());
    }
}
