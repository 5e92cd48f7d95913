//! Steps about services, with a fake `systemctl`.

use launchway_domain::{
    deployments::StepError,
    extensions::{Action, ServiceVerb},
};
use launchway_testkit::docker::FakeProgram;

use super::{Extending, organization};
use crate::installation::Installation;

fn service(verb: ServiceVerb) -> Action {
    Action::Service { unit: "my-app@1.service".parse().unwrap(), verb }
}

/// Returns the calls that change state.
fn changes(fake: &FakeProgram) -> Vec<String> {
    let calls = fake.calls().into_iter().map(|call| call.arguments);
    let mut changes: Vec<String> =
        calls.filter(|call| !call[0].starts_with("is-")).map(|call| call.join(" ")).collect();
    changes.sort();
    changes
}

#[tokio::test]
async fn only_a_change_is_taken_back() {
    for (answer, verb, is_taken_back) in [
        (0, ServiceVerb::Start, false),
        (3, ServiceVerb::Start, true),
        (0, ServiceVerb::Stop, true),
        (3, ServiceVerb::Stop, false),
        (0, ServiceVerb::Enable, false),
        (1, ServiceVerb::Enable, true),
        (0, ServiceVerb::Disable, true),
        (1, ServiceVerb::Disable, false),
        (0, ServiceVerb::Restart, false),
        (0, ServiceVerb::Reload, false),
    ] {
        let fake = FakeProgram::running("systemctl", &format!("case $1 in is-*) exit {answer} ;; esac"));
        let extending = Extending::on(&[&fake]);
        let run = extending.begin(organization(), "note").await;
        extending.revert(&run, 1, &service(verb)).await.unwrap();
        assert_eq!(changes(&fake), Vec::<String>::new(), "nothing was done yet");
        extending.done(&run, 1, &service(verb)).await;
        for _ in 0..2 {
            extending.revert(&run, 1, &service(verb)).await.unwrap();
        }
        let mut expected = vec![format!("{} -- my-app@1.service", verb.as_str())];
        if is_taken_back {
            expected.push(format!("{} -- my-app@1.service", verb.opposite().unwrap().as_str()));
        }
        expected.sort();
        assert_eq!(changes(&fake), expected, "{verb:?} when the answer is {answer}");
    }
}

#[tokio::test]
async fn the_end_is_reported() {
    let fake = FakeProgram::running("systemctl", "echo Unit not found. >&2; exit 5");
    let extending = Extending::on(&[&fake]);
    let run = extending.begin(organization(), "note").await;
    assert_eq!(extending.perform(&run, 1, &service(ServiceVerb::Restart)).await, Ok(5));
}

#[tokio::test]
async fn a_machine_without_systemd_is_reported() {
    let extending = Extending::with(Installation::new(), |options| options.path = "/nowhere".into());
    let run = extending.begin(organization(), "note").await;
    let expected = "this machine has no `systemctl`: steps about services need systemd";
    for verb in [ServiceVerb::Start, ServiceVerb::Reload] {
        let refused = extending.perform(&run, 1, &service(verb)).await;
        assert_eq!(refused, Err(StepError::Rejected(expected.to_owned())));
    }
}
