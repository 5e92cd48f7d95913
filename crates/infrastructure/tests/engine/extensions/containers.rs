//! Containers outside of compositions: created, replaced, set aside and restored.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use launchway_domain::{
    deployments::StepError,
    extensions::{Action, DockerAction, ExtensionRunner as _},
};
use launchway_testkit::docker::{FakeRegistry, base_image, docker};
use serde_json::json;

use super::{Extending, RESERVED, eventually, inspected, is_running, organization, run_it, scripted, spec};
use crate::{installation::variables, recorder::Recorder};

fn stop(name: &str) -> Action {
    Action::Docker(DockerAction::Stop(name.parse().unwrap()))
}

fn start(name: &str) -> Action {
    Action::Docker(DockerAction::Start(name.parse().unwrap()))
}

fn remove(name: &str) -> Action {
    Action::Docker(DockerAction::Remove(name.parse().unwrap()))
}

#[tokio::test]
async fn a_container_follows_its_spec_and_has_the_usual_limits() {
    let extending = Extending::new();
    let run = extending.begin(organization(), "postgres").await;
    let mut wanted = spec("db");
    wanted.environment = variables(&[("PASSWORD", "hunter2"), ("LINES", "a\nb")]);
    wanted.labels = BTreeMap::from([("team".to_owned(), "x".to_owned())]);
    wanted.volumes = vec!["data:/data".to_owned().try_into().unwrap()];
    wanted.ports = vec!["18911:80".to_owned().try_into().unwrap()];
    extending.done(&run, 1, &run_it(wanted)).await;
    let container =
        extending.runner.container(&run, &"db".parse().unwrap(), 80_u16.try_into().unwrap()).await.unwrap();
    let seen = inspected(container.id.as_str());
    let (host, labels) = (&seen["HostConfig"], &seen["Config"]["Labels"]);
    assert!(container.name.starts_with("launchway-x-") && container.name.ends_with("-db"));
    assert_eq!(labels["launchway.instance"], extending.installation.instance.to_string());
    assert_eq!(labels["launchway.organization"], run.organization.to_string());
    assert_eq!(labels["launchway.extension"], "postgres");
    assert_eq!(labels["launchway.execution"], run.execution.to_string());
    assert_eq!((&labels["team"], &labels["launchway.deployment"]), (&json!("x"), &json!("")));
    assert_eq!(host["SecurityOpt"], json!(["no-new-privileges"]));
    assert_eq!((&host["CapDrop"], &host["Privileged"]), (&json!(["ALL"]), &json!(false)));
    assert_eq!((&host["PidsLimit"], &host["Memory"]), (&json!(512), &json!(1 << 30)));
    assert_eq!(host["CpuShares"], 512);
    assert_eq!(host["RestartPolicy"]["Name"], "unless-stopped");
    assert_eq!(host["LogConfig"]["Config"], json!({ "max-size": "10m", "max-file": "3" }));
    assert_eq!(host["PortBindings"], json!({ "80/tcp": [{ "HostIp": "127.0.0.1", "HostPort": "18911" }] }));
    let mounts = seen["Mounts"].as_array().unwrap();
    assert_eq!(
        (mounts.len(), &mounts[0]["Type"], &mounts[0]["Destination"]),
        (1, &json!("volume"), &json!("/data"))
    );
    let networks = seen["NetworkSettings"]["Networks"].as_object().unwrap();
    let network = format!("launchway-{}", run.organization);
    assert_eq!(networks.keys().collect::<Vec<_>>(), [&network]);
    // A route may name it, so that it keeps its address.
    assert_eq!(networks[&network]["IPAMConfig"]["IPv4Address"], container.address.to_string());
    assert_eq!(labels["launchway.address"], container.address.to_string());
    let environment = seen["Config"]["Env"].to_string();
    assert!(environment.contains("PASSWORD=hunter2") && environment.contains(r"LINES=a\nb"), "{environment}");
}

#[tokio::test]
async fn what_had_the_name_is_set_aside_and_comes_back_as_it_was() {
    let (extending, whose) = (Extending::new(), organization());
    let first = extending.begin(whose, "postgres").await;
    extending.done(&first, 1, &run_it(spec("db"))).await;
    extending.runner.finish(&first).await.unwrap();
    let old =
        extending.runner.container(&first, &"db".parse().unwrap(), 80_u16.try_into().unwrap()).await.unwrap();

    let second = extending.begin(whose, "postgres").await;
    // The second try finds what the first one made, which was never anybody's.
    for _ in 0..2 {
        extending.done(&second, 1, &run_it(spec("db"))).await;
    }
    let new = extending
        .runner
        .container(&second, &"db".parse().unwrap(), 80_u16.try_into().unwrap())
        .await
        .unwrap();
    assert_eq!(new.name, old.name);
    assert!(new.id != old.id && !is_running(old.id.as_str()));
    assert_eq!(extending.installation.traces.containers().len(), 2);
    assert!(
        extending.runner.container(&first, &"db".parse().unwrap(), 80_u16.try_into().unwrap()).await.is_err()
    );

    for _ in 0..2 {
        extending.revert(&second, 1, &run_it(spec("db"))).await.unwrap();
    }
    assert_eq!(extending.installation.traces.containers(), [old.id.as_str()]);
    let back =
        extending.runner.container(&first, &"db".parse().unwrap(), 80_u16.try_into().unwrap()).await.unwrap();
    assert_eq!((&back.id, &back.name), (&old.id, &old.name));

    let third = extending.begin(whose, "postgres").await;
    extending.done(&third, 1, &run_it(spec("db"))).await;
    for _ in 0..2 {
        extending.runner.finish(&third).await.unwrap();
    }
    let newest =
        extending.runner.container(&third, &"db".parse().unwrap(), 80_u16.try_into().unwrap()).await.unwrap();
    assert_eq!(extending.installation.traces.containers(), [newest.id.as_str()]);
}

#[tokio::test]
async fn a_step_that_cannot_create_its_container_is_revertible() {
    let (extending, whose) = (Extending::new(), organization());
    let first = extending.begin(whose, "postgres").await;
    extending.done(&first, 1, &run_it(spec("db"))).await;
    let name = extending.engine_name(&first, "db").await;
    let second = extending.begin(whose, "postgres").await;
    let mut broken = spec("db");
    broken.command = vec!["/no/such/program".to_owned()];
    let refused = extending.perform(&second, 1, &run_it(broken.clone())).await.unwrap_err();
    assert!(
        matches!(&refused, StepError::Rejected(message) if message.contains("/no/such/program")),
        "{refused:?}"
    );
    extending.revert(&second, 1, &run_it(broken)).await.unwrap();
    assert!(is_running(&name));
    assert_eq!(extending.installation.traces.containers().len(), 1);
}

#[tokio::test]
async fn only_a_change_of_starting_and_stopping_is_taken_back() {
    let (extending, whose) = (Extending::new(), organization());
    let run = extending.begin(whose, "postgres").await;
    extending.done(&run, 1, &run_it(spec("db"))).await;
    let name = extending.engine_name(&run, "db").await;
    extending.done(&run, 2, &start("db")).await;
    extending.revert(&run, 2, &start("db")).await.unwrap();
    assert!(is_running(&name), "it ran before");
    for _ in 0..2 {
        extending.done(&run, 3, &stop("db")).await;
    }
    assert!(!is_running(&name));
    extending.done(&run, 4, &start("db")).await;
    assert!(is_running(&name));
    for _ in 0..2 {
        extending.revert(&run, 4, &start("db")).await.unwrap();
    }
    assert!(!is_running(&name));
    for _ in 0..2 {
        extending.revert(&run, 3, &stop("db")).await.unwrap();
    }
    assert!(is_running(&name));
    let expected = "this extension has created no container `other` for this organization";
    assert_eq!(
        extending.perform(&run, 5, &stop("other")).await,
        Err(StepError::Rejected(expected.to_owned()))
    );
    assert_eq!(extending.revert(&run, 5, &stop("other")).await, Ok(()));
}

#[tokio::test]
async fn what_is_removed_is_there_until_the_run_is_finished() {
    let (extending, whose) = (Extending::new(), organization());
    let run = extending.begin(whose, "postgres").await;
    extending.done(&run, 1, &run_it(spec("db"))).await;
    let name = extending.engine_name(&run, "db").await;
    for _ in 0..2 {
        extending.done(&run, 2, &remove("db")).await;
    }
    assert!(
        extending.runner.container(&run, &"db".parse().unwrap(), 80_u16.try_into().unwrap()).await.is_err()
    );
    for _ in 0..2 {
        extending.revert(&run, 2, &remove("db")).await.unwrap();
    }
    assert!(is_running(&name));
    extending.done(&run, 3, &stop("db")).await;
    extending.done(&run, 4, &remove("db")).await;
    extending.revert(&run, 4, &remove("db")).await.unwrap();
    assert!(!is_running(&name), "it stood still before");
    extending.done(&run, 5, &remove("db")).await;
    extending.runner.finish(&run).await.unwrap();
    assert_eq!(extending.installation.traces.containers(), Vec::<String>::new());
    extending.done(&run, 6, &remove("db")).await;
}

#[tokio::test]
async fn a_container_that_does_not_stay_is_run_to_its_end() {
    let (extending, whose) = (Extending::new(), organization());
    let run = extending.begin(whose, "postgres").await;
    extending.done(&run, 1, &run_it(spec("task"))).await;
    for code in [0, 3, 137] {
        let mut task = scripted("task", &format!("echo out; echo err >&2; exit {code}"));
        task.is_detached = false;
        task.environment = variables(&[("A", "b")]);
        let recorder = Arc::new(Recorder::default());
        let ended = extending.runner.perform(&run, 2, &run_it(task.clone()), recorder.clone()).await;
        assert_eq!(ended, Ok(code));
        let text = recorder.text();
        assert!(text.contains("out\n") && text.contains("err\n"), "{text}");
        extending.revert(&run, 2, &run_it(task)).await.unwrap();
    }
    assert_eq!(extending.installation.traces.containers().len(), 1, "only the one that stays");
}

#[tokio::test]
async fn a_step_that_nobody_waits_for_leaves_no_container() {
    let (extending, whose) = (Extending::new(), organization());
    let run = extending.begin(whose, "postgres").await;
    let mut task = scripted("task", "echo begun; sleep 600");
    task.is_detached = false;
    let recorder = Arc::new(Recorder::default());
    let (runner, output, its_run) = (extending.runner.clone(), recorder.clone(), run.clone());
    let step = tokio::spawn(async move { runner.perform(&its_run, 1, &run_it(task), output).await });
    recorder.wait_for("begun").await;
    step.abort();
    eventually("no container", || extending.installation.traces.containers().is_empty()).await;
    for delay in [100, 500, 900] {
        let (runner, its_run) = (extending.runner.clone(), run.clone());
        let step = tokio::spawn(async move {
            runner.perform(&its_run, 2, &run_it(spec("db")), Arc::new(Recorder::default())).await
        });
        tokio::time::sleep(Duration::from_millis(delay)).await;
        step.abort();
        let _in_time = step.await;
    }
    tokio::time::sleep(Duration::from_secs(7)).await;
    extending.revert(&run, 2, &run_it(spec("db"))).await.unwrap();
    assert_eq!(extending.installation.traces.containers(), Vec::<String>::new());
}

#[tokio::test]
async fn ports_of_launchway_and_of_others_are_refused() {
    let (extending, whose) = (Extending::new(), organization());
    let run = extending.begin(whose, "postgres").await;
    let publishing = |name: &str, port: u16| {
        let mut wanted = spec(name);
        wanted.ports = vec![format!("{port}:80").try_into().unwrap()];
        run_it(wanted)
    };
    let message = format!("the port {RESERVED} of this machine is Launchway's own: choose another");
    assert_eq!(
        extending.perform(&run, 1, &publishing("db", RESERVED)).await,
        Err(StepError::Rejected(message))
    );
    extending.done(&run, 1, &publishing("one", 18_912)).await;
    let taken = extending.perform(&run, 2, &publishing("two", 18_912)).await;
    assert!(matches!(taken, Err(StepError::Rejected(_))), "{taken:?}");
    // Whoever replaces it may have its port.
    let second = extending.begin(whose, "postgres").await;
    extending.done(&second, 1, &publishing("one", 18_912)).await;
    extending.revert(&second, 1, &publishing("one", 18_912)).await.unwrap();
    assert!(is_running(&extending.engine_name(&run, "one").await));
}

#[tokio::test]
async fn an_image_is_got_or_refused() {
    let extending = Extending::new();
    let run = extending.begin(organization(), "postgres").await;
    let pull = |image: &str| Action::Docker(DockerAction::Pull(image.parse().unwrap()));
    extending.done(&run, 1, &pull(base_image())).await;
    extending.revert(&run, 1, &pull(base_image())).await.unwrap();
    assert!(docker(&["image", "ls", "--quiet", base_image()]).lines().next().is_some());
    let missing = extending.perform(&run, 2, &pull("127.0.0.1:9/nobody/nothing:1")).await;
    assert!(matches!(missing, Err(StepError::Rejected(_))), "{missing:?}");
    let registry = FakeRegistry::empty();
    let foreign = extending.perform(&run, 3, &pull(&registry.image())).await;
    let Err(StepError::Rejected(message)) = foreign else { panic!("{foreign:?}") };
    assert!(message.contains("no image may come from the registry"), "{message}");
    assert_eq!(registry.requests(), 0);
}
