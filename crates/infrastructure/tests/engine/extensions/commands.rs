//! Steps that run a shell command.

use std::{fs, path::Path, sync::Arc, time::Duration};

use launchway_domain::{
    deployments::StepError,
    extensions::{Action, ExtensionRunner as _, Property, StepKind, StepSpec, Template, Values, WORKSPACE},
};

use super::{Extending, organization};
use crate::recorder::Recorder;

fn command(text: &str) -> Action {
    Action::Command { run: text.to_owned(), revert: None }
}

/// Returns the resolved action of a step with this `cmd`.
fn resolved(text: &str, values: &Values) -> Action {
    let step = StepSpec {
        name: "Say".to_owned(),
        kind: StepKind::Command,
        properties: [("cmd".to_owned(), Property::Text(Template::parse(text).unwrap()))].into(),
        ignores_errors: false,
        timeout: StepSpec::TIMEOUT,
    };
    step.resolve(values).unwrap()
}

#[tokio::test]
async fn a_command_runs_in_the_workspace_with_only_its_variables() {
    let extending = Extending::new();
    let run = extending.begin_with(organization(), "note", &[("who", "a b\nc")]).await;
    let workspace = extending.runner.workspace(run.execution);
    let recorder = Arc::new(Recorder::default());
    let ended = extending.runner.perform(&run, 1, &command("pwd; env; cat"), recorder.clone()).await;
    assert_eq!(ended, Ok(0));
    let text = recorder.text();
    assert!(text.starts_with(&format!("{workspace}\n")), "{text}");
    for line in [
        &format!("HOME={workspace}"),
        "LANG=C.UTF-8",
        "LAUNCHWAY_VARIABLE_who=a b\nc",
        &format!("LAUNCHWAY_VARIABLE_workspace={workspace}"),
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line}: {text}");
    }
    assert!(!text.contains("CARGO"), "{text}");
}

#[tokio::test]
async fn the_end_of_a_command_is_reported() {
    let extending = Extending::new();
    let run = extending.begin(organization(), "note").await;
    for (text, code) in
        [("true", 0), ("exit 7", 7), ("no-such-program", 127), ("kill -9 $$", 137), ("kill -15 $$", 143)]
    {
        assert_eq!(extending.perform(&run, 1, &command(text)).await, Ok(code), "{text}");
    }
}

#[tokio::test]
async fn both_outputs_are_sent_as_they_come() {
    let extending = Extending::new();
    let run = extending.begin(organization(), "note").await;
    let recorder = Arc::new(Recorder::default());
    let slow = command("echo first; echo second >&2; sleep 1; echo last");
    let ended = extending.runner.perform(&run, 1, &slow, recorder.clone()).await;
    assert_eq!(ended, Ok(0));
    let moment = |words| recorder.moment_of(words).unwrap();
    assert!(moment("last") - moment("first") > Duration::from_millis(500));
    assert!(moment("last") - moment("second") > Duration::from_millis(500));
}

#[tokio::test]
async fn a_command_is_taken_back_by_another() {
    let extending = Extending::new();
    let run = extending.begin(organization(), "note").await;
    let with =
        |revert: &str| Action::Command { run: "touch made".to_owned(), revert: Some(revert.to_owned()) };
    let workspace = extending.runner.workspace(run.execution);
    let made = Path::new(&workspace).join("made");
    extending.done(&run, 1, &with("rm -f made")).await;
    assert!(made.exists());
    extending.revert(&run, 1, &with("rm -f made")).await.unwrap();
    assert!(!made.exists());
    extending.revert(&run, 1, &command("touch made")).await.unwrap();
    let expected = StepError::Rejected("`revert_cmd` ended with exit code 4".to_owned());
    assert_eq!(extending.revert(&run, 1, &with("exit 4")).await, Err(expected));
    extending.runner.discard(&run).await.unwrap();
    assert!(!Path::new(&workspace).exists());
    assert!(matches!(extending.perform(&run, 1, &command("true")).await, Err(StepError::Retryable(_))));
}

#[tokio::test]
async fn cancelling_a_command_ends_its_child_processes() {
    let extending = Extending::new();
    let run = extending.begin(organization(), "note").await;
    let workspace = extending.runner.workspace(run.execution);
    let (runner, its_run) = (extending.runner.clone(), run.clone());
    let recorder = Arc::new(Recorder::default());
    let output = recorder.clone();
    let text = "sh -c 'sh -c \"while true; do date +%N > alive; sleep 0.1; done\" & wait' & echo begun; wait";
    let step = tokio::spawn(async move { runner.perform(&its_run, 1, &command(text), output).await });
    recorder.wait_for("begun").await;
    let alive = || fs::read_to_string(format!("{workspace}/alive")).unwrap_or_default();
    super::eventually("a sign of life", || !alive().is_empty()).await;
    step.abort();
    let _aborted = step.await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let last = alive();
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert_eq!(alive(), last);
}

/// Injection attempts.
const PAYLOADS: [&str; 62] = [
    "; touch canary",
    "& touch canary",
    "&& touch canary",
    "| touch canary",
    "|| touch canary",
    "$(touch canary)",
    "`touch canary`",
    "\ntouch canary",
    "\ntouch canary\n",
    "\r\ntouch canary\r\n",
    "'; touch canary; '",
    "\"; touch canary; \"",
    "\"$(touch canary)\"",
    "'$(touch canary)'",
    "\"`touch canary`\"",
    "${IFS}touch${IFS}canary",
    "$IFS;touch$IFS$9canary",
    "$((`touch canary`))",
    "${x:-$(touch canary)}",
    "${x:=`touch canary`}",
    "<(touch canary)",
    ">(touch canary)",
    "> canary",
    ">> canary",
    ">canary",
    "1> canary",
    "2> canary",
    "&> canary",
    ">| canary",
    "< /dev/null > canary",
    "<<EOF\n$(touch canary)\nEOF",
    "\\\ntouch canary",
    "\\; touch canary",
    "\\$(touch canary)",
    "\\\\$(touch canary)",
    "\\\"; touch canary; \\\"",
    "'\"'\"'; touch canary",
    "\"'\"'; touch canary",
    "*; touch canary",
    "?; touch canary",
    "~; touch canary",
    "{touch,canary}",
    "; { touch canary; }",
    "; (touch canary)",
    "#\ntouch canary",
    "!; touch canary",
    "; eval 'touch canary'",
    "; exec touch canary",
    "; . /dev/stdin",
    "; trap 'touch canary' EXIT",
    "; canary() { touch canary; }; canary",
    "; alias x='touch canary'; x",
    "%0atouch canary",
    "%0Atouch%20canary",
    "\u{b}touch canary",
    "\u{c}touch canary",
    "\u{1b}[2Ktouch canary",
    "\u{2028}touch canary",
    "} ; touch canary #",
    "${LAUNCHWAY_VARIABLE_who}; touch canary",
    "{{ who }}; touch canary",
    "--help; touch canary; -rf",
];

#[tokio::test]
async fn hostile_values_run_nothing() {
    let extending = Extending::new();
    for payload in PAYLOADS {
        let run = extending.begin_with(organization(), "note", &[("who", payload)]).await;
        let workspace = extending.runner.workspace(run.execution);
        let mut values = run.values.expose().clone();
        values.insert(WORKSPACE.to_owned(), workspace.clone());
        for text in [
            "printf %s {{ who }}",
            "printf %s \"{{ who }}\"",
            "printf %s x{{ who }}\"y {{ who }}\"",
            "test {{ who }} = x; true",
        ] {
            let recorder = Arc::new(Recorder::default());
            let ended = extending.runner.perform(&run, 1, &resolved(text, &values), recorder.clone()).await;
            assert_eq!(ended, Ok(0), "{payload:?} in {text}: {}", recorder.text());
            if text == "printf %s {{ who }}" {
                assert_eq!(recorder.text(), payload);
            }
        }
        let left: Vec<_> = fs::read_dir(&workspace).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, Vec::<std::path::PathBuf>::new(), "{payload:?}");
    }
}
