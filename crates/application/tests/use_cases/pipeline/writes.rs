//! The exact writes of deployments.

use launchway_domain::{
    audit::{Action, Resource},
    deployments::{ContainerRecord, ContainerState, DeploymentState, ImageName, Progress, Write},
    jobs::{JobKind, Outcome, Write as JobWrite},
    logs::Write as LogWrite,
    store,
};
use launchway_testkit::builders::{a_container, a_log_line, an_entry, parsed};

use super::{application, carried_out, new, old};
use crate::{
    audit_log::audited,
    world::{ADDRESS, COMMIT, a_job},
};

#[tokio::test(start_paused = true)]
async fn records_every_step_under_the_lease_and_audits_the_end() {
    let world = carried_out(|_| {}).await;

    let (at, id, lease) = (world.now(), new().id, a_job(JobKind::Deploy, &new(), 1).lease);
    let prove = || store::Write::from(JobWrite::Prove(lease));
    let advance = |progress: Progress| Write::Advance { id, progress, at }.into();
    let enter = |state| vec![prove(), advance(Progress { state: Some(state), ..Progress::default() })];
    let line = |text: &str| LogWrite::Append(vec![a_log_line().of(&new()).saying(text).at(at).new_line()]);
    let container = ContainerRecord {
        id: a_container("new").id,
        name: "new".to_owned(),
        state: ContainerState::Running,
        address: Some(ADDRESS.into()),
        port: a_container("new").port,
    };
    let entry = an_entry()
        .by_launchway()
        .of(Action::Update, Resource::Deployment, id)
        .with_message("deployed the application `web` (production)")
        .with("application_id", application(|_| {}).id)
        .at(at);
    let removed = ContainerRecord { state: ContainerState::Removed, address: None, ..a_container("old") };
    let expected: Vec<Vec<store::Write>> = vec![
        enter(DeploymentState::Cloning),
        vec![prove(), advance(Progress { commit: Some(parsed(COMMIT)), ..Progress::default() })],
        enter(DeploymentState::Building),
        vec![
            prove(),
            advance(Progress {
                state: Some(DeploymentState::Deploying),
                image: Some(ImageName::of(new().application_id, id)),
                ..Progress::default()
            }),
        ],
        vec![prove(), advance(Progress { container: Some(container), ..Progress::default() })],
        vec![prove(), Write::GoLive { id, at }.into(), line("Live at http://10.0.0.9:8080").into()],
        vec![
            prove(),
            advance(Progress { state: Some(DeploymentState::Deployed), ..Progress::default() }),
            line("Deployed in 0.0 s").into(),
            audited(1, entry),
        ],
        vec![
            JobWrite::Settle { lease, outcome: Outcome::Succeeded, at }.into(),
            Write::FollowJobs { application: Some(new().application_id), at }.into(),
        ],
        vec![Write::RecordContainer { id: old().id, container: removed, at }.into()],
    ];
    assert_eq!(world.commits(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_failure_settles_the_job_and_is_audited_in_one_unit() {
    let world = carried_out(|state| state.refuse("build", "the Dockerfile is missing")).await;

    let (at, lease) = (world.now(), a_job(JobKind::Deploy, &new(), 1).lease);
    let entry = an_entry()
        .by_launchway()
        .of(Action::Update, Resource::Deployment, new().id)
        .with_message("failed to deploy the application `web` (production)")
        .with("application_id", application(|_| {}).id)
        .at(at);
    let reason = "the Dockerfile is missing".to_owned();
    let expected: Vec<store::Write> = vec![
        JobWrite::Settle { lease, outcome: Outcome::Failed { reason }, at }.into(),
        Write::FollowJobs { application: Some(new().application_id), at }.into(),
        audited(1, entry),
    ];
    assert_eq!(world.commits().last(), Some(&expected));
}
