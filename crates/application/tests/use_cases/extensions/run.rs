//! Requests for runs.

use std::collections::BTreeMap;

use launchway_application::Error;
use launchway_domain::{
    auth::{Actor, Forbidden},
    extensions::{
        Execution, ExecutionState, ExecutionStep, Extension, Phase, PortRefusal, Validation, Write,
    },
    jobs::{JobKind, NewJob, Write as JobWrite},
    quotas::{Quota, Resource},
    store,
};

use super::{DATABASE, HELLO, a_run, an_admin, an_entry, an_operator, key};
use crate::ports::MockedPorts;

fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Returns the writes when `actor` runs `extension`.
async fn requested(
    actor: Actor,
    extension: Extension,
    values: &[(&str, &str)],
) -> (NewJob, Execution, Vec<ExecutionStep>, bool) {
    let mut ports = MockedPorts::with_a_box();
    let (sender, channel) = std::sync::mpsc::channel();
    let (found, key) = (extension.clone(), extension.key.clone());
    ports.extensions.expect_by_key().return_once(|_, _| Ok(Some(found)));
    ports.expect_commit_seen_by(move |writes| {
        let [
            store::Write::Job(JobWrite::Enqueue(job)),
            store::Write::Extension(Write::Request { execution, steps, installs, home: None }),
            store::Write::Audit(_),
        ] = writes
        else {
            panic!("{writes:?}")
        };
        sender.send((job.clone(), (**execution).clone(), steps.clone(), *installs)).unwrap();
    });
    ports.executions.expect_detail().return_once(|_, _| Ok(Some(a_run(extension, "{}", &[]))));
    let wake = ports.wake.clone();
    let mut rung = wake.listen();
    ports.services().extensions.run(&actor, &key, &given(values), None).await.unwrap();
    rung.wait_timeout(std::time::Duration::ZERO).await;
    channel.recv().unwrap()
}

async fn refusal(actor: Actor, extension: Extension, values: &[(&str, &str)]) -> Error {
    let mut ports = MockedPorts::with_a_box();
    let key = extension.key.clone();
    ports.extensions.expect_by_key().return_once(|_, _| Ok(Some(extension)));
    ports.services().extensions.run(&actor, &key, &given(values), None).await.unwrap_err()
}

#[tokio::test]
async fn a_run_is_written_with_its_job_its_steps_and_its_values() {
    let extension = an_entry(HELLO).await;
    let (job, execution, steps, installs) =
        requested(an_operator(), extension.clone(), &[("token", "hunter2")]).await;

    assert_eq!(
        (job.kind, job.replaceable, job.payload.as_str()),
        (JobKind::RunExtension, false, execution.id.to_string().as_str())
    );
    assert_eq!(
        (execution.job_id, execution.state, execution.extension_id),
        (job.id, ExecutionState::Pending, extension.id)
    );
    assert_eq!(execution.shown_values, r#"{"token":"[secret]","who":"world"}"#);
    assert_eq!(
        execution.sealed_values.0,
        format!(r#"<{}>{{"token":"hunter2","who":"world"}}"#, Execution::associated_data(execution.id))
    );
    assert_eq!(execution.definition, HELLO);
    let steps: Vec<_> =
        steps.iter().map(|step| (step.order, step.phase, step.name.as_str(), step.state)).collect();
    let pending = ExecutionState::Pending;
    assert_eq!(
        steps,
        [
            (1, Phase::Run, "Make folder", pending),
            (2, Phase::Run, "Write greeting", pending),
            (3, Phase::Validate, "Check file", pending)
        ]
    );
    assert!(!installs);
}

#[tokio::test]
async fn runs_wait_only_for_runs_of_the_same_extension() {
    let (database, hello) = (
        an_entry(DATABASE).await,
        Extension { id: launchway_testkit::ids::id_of("other").into(), ..an_entry(HELLO).await },
    );
    let (one, _, _, installs) = requested(an_admin(), database.clone(), &[]).await;
    let (same, ..) = requested(an_operator(), database, &[]).await;
    let (other, ..) = requested(an_operator(), hello, &[]).await;
    assert!(installs);
    assert_eq!(one.subject, same.subject);
    assert_ne!(one.subject, other.subject);
}

#[tokio::test]
async fn unknown_and_forbidden_values_are_all_reported() {
    let refused = refusal(an_operator(), an_entry(HELLO).await, &[("who", "World"), ("x", "y")]).await;
    let Error::Invalid(message) = refused else { panic!("{refused:?}") };
    assert_eq!(
        message,
        "variables.x is not a variable of this extension, which has who, token; \
         variables.who must be what the variable's `validation_pattern` describes, got `World`"
    );
}

#[tokio::test]
async fn a_value_that_breaks_a_step_is_reported_with_the_step() {
    let refused = refusal(an_admin(), an_entry(DATABASE).await, &[("domain", "not a name")]).await;
    let Error::Invalid(message) = refused else { panic!("{refused:?}") };
    assert!(message.starts_with("step 2 `Name`: domain must be a host name"), "{message}");
}

#[tokio::test]
async fn a_secret_that_makes_a_step_impossible_is_not_repeated() {
    let yaml = DATABASE.replace("default: db.example", "sensitive: true");
    let extension = Extension { yaml, ..an_entry(DATABASE).await };
    let secret = "no host name, and longer than what messages repeat";
    let refused = refusal(an_admin(), extension, &[("domain", secret)]).await;
    assert_eq!(
        refused.to_string(),
        "step 2 `Name`: domain is not allowed with the value of a sensitive variable"
    );
}

#[tokio::test]
async fn the_name_of_the_installation_itself_leads_nowhere_else() {
    let mut ports = MockedPorts::with_a_box();
    ports.policy.public_host = Some("launchway.example".to_owned());
    let extension = an_entry(DATABASE).await;
    ports.extensions.expect_by_key().return_once(|_, _| Ok(Some(extension)));
    let values = given(&[("domain", "Launchway.example")]);
    let refused =
        ports.services().extensions.run(&an_admin(), &key("database"), &values, None).await.unwrap_err();
    assert!(refused.to_string().contains("must not be the host name of this installation"));
}

#[tokio::test]
async fn only_who_administers_the_machine_runs_what_acts_on_it() {
    let refused = refusal(an_admin(), an_entry(HELLO).await, &[]).await;
    assert!(matches!(refused, Error::Forbidden(Forbidden::NotAnAdministrator)), "{refused:?}");
}

#[tokio::test]
async fn what_cannot_be_used_conflicts() {
    let invalid = Extension { validation: Validation::Invalid, ..an_entry(DATABASE).await };
    assert!(matches!(refusal(an_admin(), invalid, &[]).await, Error::Conflict(_)));
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let mut ports = MockedPorts::default();
    ports.extensions.expect_by_key().return_once(|_, _| Ok(None));
    let refused = ports.services().extensions.run(&an_admin(), &key("nothing"), &BTreeMap::new(), None).await;
    assert!(matches!(refused, Err(Error::NotFound("the extension"))));
}

#[tokio::test]
async fn a_run_that_gets_no_host_port_is_refused() {
    let range = "20000-20009".parse().unwrap();
    let exceeded = Quota { resource: Resource::ExtensionPorts, limit: 1 }.check(1, 1).unwrap_err();
    for refusal in [
        PortRefusal::OutOfRange { port: 443, range },
        PortRefusal::Reserved(8080),
        PortRefusal::Taken(20_000),
        PortRefusal::RangeFull(range),
        PortRefusal::Quota(exceeded),
    ] {
        let mut ports = MockedPorts::with_a_box();
        ports.port_refusal = Some(refusal);
        let extension = an_entry(HELLO).await;
        let key = extension.key.clone();
        ports.extensions.expect_by_key().return_once(|_, _| Ok(Some(extension)));
        let values = given(&[("token", "hunter2")]);
        let error = ports.services().extensions.run(&an_operator(), &key, &values, None).await.unwrap_err();
        assert_eq!(error.to_string(), refusal.to_string());
        let is_as_expected = match refusal {
            PortRefusal::OutOfRange { .. } | PortRefusal::Reserved(_) => matches!(error, Error::Invalid(_)),
            PortRefusal::Taken(_) | PortRefusal::RangeFull(_) => matches!(error, Error::Conflict(_)),
            PortRefusal::Quota(_) => matches!(error, Error::QuotaExceeded(message) if message == exceeded),
        };
        assert!(is_as_expected, "{error:?}");
    }
}
