//! Steps about users, with fakes of the machine's programs.

use std::fs;

use launchway_domain::{
    deployments::StepError,
    extensions::{AccountName, Action, ExtensionRunner as _, Run, UserAction},
};
use launchway_testkit::docker::FakeProgram;
use tempfile::TempDir;

use super::{Extending, organization};

/// A machine whose users are files: the UID and the groups of each.
struct Machine {
    extending: Extending,
    programs: Vec<FakeProgram>,
    users: TempDir,
}

impl Machine {
    fn new(users: &[(&str, u32, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, number, groups) in users {
            fs::write(folder.path().join(name), format!("{number}")).unwrap();
            fs::write(folder.path().join(format!("{name}.groups")), format!("{groups}\n")).unwrap();
        }
        let at = folder.path().display();
        let last = "for last; do :; done";
        let programs = vec![
            FakeProgram::running(
                "getent",
                &format!("test -e {at}/$3 || exit 2; echo \"$3:x:$(cat {at}/$3):\""),
            ),
            FakeProgram::running("id", &format!("cat {at}/$3.groups")),
            FakeProgram::running(
                "useradd",
                &format!("{last}; echo 998 > {at}/$last; echo new > {at}/$last.groups"),
            ),
            FakeProgram::running("userdel", &format!("{last}; rm {at}/$last {at}/$last.groups")),
            FakeProgram::running("usermod", &format!("{last}; echo $3 | tr , ' ' >> {at}/$last.groups")),
            FakeProgram::running("gpasswd", &format!("sed -i \"s/\\b$4\\b//\" {at}/$2.groups")),
        ];
        let extending = Extending::on(&programs.iter().collect::<Vec<_>>());
        Self { extending, programs, users: folder }
    }

    /// Returns the calls of the programs that change something.
    fn changes(&self) -> Vec<String> {
        let calls = self.programs[2..].iter().flat_map(|program| {
            let name = program.program().file_name().unwrap().to_string_lossy().into_owned();
            program.calls().into_iter().map(move |call| format!("{name} {}", call.arguments.join(" ")))
        });
        let mut all: Vec<String> = calls.collect();
        all.sort();
        all
    }

    fn groups(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.users.path().join(format!("{name}.groups"))).unwrap();
        let mut groups: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        groups.sort();
        groups
    }

    async fn begin(&self) -> Run {
        self.extending.begin(organization(), "note").await
    }
}

fn names(names: &[&str]) -> Vec<AccountName> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

fn create(name: &str, groups: &[&str], is_system: bool) -> Action {
    Action::User(UserAction::Create { name: name.parse().unwrap(), groups: names(groups), is_system })
}

fn delete(name: &str) -> Action {
    Action::User(UserAction::Delete(name.parse().unwrap()))
}

fn add(name: &str, groups: &[&str]) -> Action {
    Action::User(UserAction::AddGroups { name: name.parse().unwrap(), groups: names(groups) })
}

fn remove(name: &str, groups: &[&str]) -> Action {
    Action::User(UserAction::RemoveGroups { name: name.parse().unwrap(), groups: names(groups) })
}

#[tokio::test]
async fn a_user_is_made_once_and_goes_only_if_the_step_made_it() {
    let machine = Machine::new(&[("ada", 1000, "ada")]);
    let run = machine.begin().await;
    let (system, person) = (create("app", &["www-data", "docs"], true), create("bob", &[], false));
    for _ in 0..2 {
        machine.extending.done(&run, 1, &system).await;
    }
    machine.extending.done(&run, 2, &person).await;
    machine.extending.done(&run, 3, &create("ada", &["docs"], false)).await;
    machine.extending.revert(&run, 3, &create("ada", &["docs"], false)).await.unwrap();
    let made = [
        "useradd --create-home -- bob",
        "useradd --system --no-create-home --shell /usr/sbin/nologin --groups www-data,docs -- app",
    ];
    assert_eq!(machine.changes(), made);
    for _ in 0..2 {
        machine.extending.revert(&run, 1, &system).await.unwrap();
    }
    assert_eq!(machine.changes()[2..], ["userdel -- app"]);
}

#[tokio::test]
async fn a_deleted_user_does_not_come_back() {
    let machine = Machine::new(&[("ada", 1000, "ada")]);
    let run = machine.begin().await;
    for _ in 0..2 {
        machine.extending.done(&run, 1, &delete("ada")).await;
    }
    machine.extending.done(&run, 2, &delete("nobody-there")).await;
    assert_eq!(machine.changes(), ["userdel -- ada"]);
    let expected = "the user `ada` is deleted, and cannot be recreated as it was";
    let refused = machine.extending.revert(&run, 1, &delete("ada")).await;
    assert_eq!(refused, Err(StepError::Rejected(expected.to_owned())));
    machine.extending.revert(&run, 2, &delete("nobody-there")).await.unwrap();
}

#[tokio::test]
async fn only_the_groups_that_a_step_changed_are_changed_back() {
    let machine = Machine::new(&[("ada", 1000, "ada docs")]);
    let run = machine.begin().await;
    let (adding, removing) = (add("ada", &["docs", "web"]), remove("ada", &["docs", "games"]));
    machine.extending.done(&run, 1, &adding).await;
    machine.extending.revert(&run, 1, &adding).await.unwrap();
    assert_eq!(machine.groups("ada"), ["ada", "docs", "docs"]);
    assert_eq!(
        machine.changes(),
        ["gpasswd --delete ada -- web", "usermod --append --groups docs,web -- ada"]
    );
    machine.extending.done(&run, 2, &removing).await;
    assert_eq!(machine.groups("ada"), ["ada"]);
    machine.extending.revert(&run, 2, &removing).await.unwrap();
    assert_eq!(machine.groups("ada"), ["ada", "docs"]);
    let expected = StepError::Rejected("there is no user `nobody-there` on this machine".to_owned());
    assert_eq!(machine.extending.perform(&run, 3, &add("nobody-there", &["web"])).await, Err(expected));
}

#[tokio::test]
async fn accounts_of_the_machine_are_not_changed_and_root_never_is() {
    let machine = Machine::new(&[("root", 0, "root"), ("toor", 0, "root"), ("www-data", 33, "www-data")]);
    let run = machine.begin().await;
    for name in ["root", "toor", "www-data"] {
        for action in [delete(name), add(name, &["web"]), remove(name, &[name])] {
            let refused = machine.extending.perform(&run, 1, &action).await;
            assert!(matches!(refused, Err(StepError::Rejected(_))), "{action:?}: {refused:?}");
            machine.extending.revert(&run, 1, &action).await.unwrap();
        }
    }
    assert!(machine.extending.perform(&run, 1, &create("root", &[], true)).await.is_err());
    assert_eq!(machine.changes(), Vec::<String>::new());
    // One that a step made is an extension's to change, also by a later run.
    machine.extending.done(&run, 2, &create("app", &[], true)).await;
    machine.extending.runner.finish(&run).await.unwrap();
    let later = machine.begin().await;
    machine.extending.done(&later, 1, &add("app", &["web"])).await;
    machine.extending.done(&later, 2, &delete("app")).await;
    assert_eq!(machine.changes().len(), 3);
}
