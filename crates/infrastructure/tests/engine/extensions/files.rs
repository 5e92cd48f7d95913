//! Steps about files: in the workspace only, whatever links it contains.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::PathBuf,
};

use launchway_domain::{
    deployments::StepError,
    extensions::{Action, ExtensionRunner as _, FileAction, Run},
};

use super::{Extending, organization};

fn make(path: &str) -> Action {
    Action::File(FileAction::MakeFolder(path.parse().unwrap()))
}

fn write(path: &str, content: &str) -> Action {
    Action::File(FileAction::Write { dest: path.parse().unwrap(), content: content.to_owned() })
}

fn copy(src: &str, dest: &str) -> Action {
    Action::File(FileAction::Copy { src: src.parse().unwrap(), dest: dest.parse().unwrap() })
}

fn move_it(src: &str, dest: &str) -> Action {
    Action::File(FileAction::Move { src: src.parse().unwrap(), dest: dest.parse().unwrap() })
}

fn delete(path: &str) -> Action {
    Action::File(FileAction::Delete(path.parse().unwrap()))
}

/// A run with its workspace.
struct Working {
    extending: Extending,
    run: Run,
    workspace: PathBuf,
}

impl Working {
    async fn new() -> Self {
        let extending = Extending::new();
        let run = extending.begin(organization(), "note").await;
        let workspace = extending.runner.workspace(run.execution).into();
        Self { extending, run, workspace }
    }

    /// Returns every file and folder of the workspace, with its contents.
    fn all(&self) -> Vec<String> {
        let (mut all, mut folders) = (Vec::new(), vec![self.workspace.clone()]);
        while let Some(folder) = folders.pop() {
            for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
                let shown = path.strip_prefix(&self.workspace).unwrap().display().to_string();
                if path.is_symlink() {
                    all.push(format!("{shown} -> {}", fs::read_link(&path).unwrap().display()));
                } else if path.is_dir() {
                    all.push(format!("{shown}/"));
                    folders.push(path);
                } else {
                    all.push(format!("{shown}={}", fs::read_to_string(&path).unwrap()));
                }
            }
        }
        all.sort();
        all
    }

    /// Performs a step twice, checks, reverts it twice, and checks again.
    async fn there_and_back(&self, action: &Action, expected: &[&str]) {
        let before = self.all();
        for _ in 0..2 {
            self.extending.done(&self.run, 7, action).await;
            assert_eq!(self.all(), expected, "{action:?}");
        }
        for _ in 0..2 {
            self.extending.revert(&self.run, 7, action).await.unwrap();
            assert_eq!(self.all(), before, "{action:?}");
        }
    }

    async fn refused(&self, action: &Action) -> String {
        match self.extending.perform(&self.run, 8, action).await {
            Err(StepError::Rejected(message)) => message,
            other => panic!("{action:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn every_step_is_done_and_taken_back() {
    let working = Working::new().await;
    working.there_and_back(&make("a/b"), &["a/", "a/b/"]).await;
    working.extending.done(&working.run, 1, &make("a")).await;
    working.extending.done(&working.run, 2, &write("a/x", "one")).await;
    working.extending.done(&working.run, 3, &write("y", "two")).await;
    for (action, expected) in [
        (make("a"), vec!["a/", "a/x=one", "y=two"]),
        (make("a/b/c"), vec!["a/", "a/b/", "a/b/c/", "a/x=one", "y=two"]),
        (write("a/x", "new"), vec!["a/", "a/x=new", "y=two"]),
        (write("n/m/z", "new"), vec!["a/", "a/x=one", "n/", "n/m/", "n/m/z=new", "y=two"]),
        (write("a", "a file"), vec!["a=a file", "y=two"]),
        (copy("a", "b"), vec!["a/", "a/x=one", "b/", "b/x=one", "y=two"]),
        (copy("y", "a/x"), vec!["a/", "a/x=two", "y=two"]),
        (copy("y", "a"), vec!["a=two", "y=two"]),
        (move_it("y", "z"), vec!["a/", "a/x=one", "z=two"]),
        (move_it("y", "a/x"), vec!["a/", "a/x=two"]),
        (move_it("a", "n/b"), vec!["n/", "n/b/", "n/b/x=one", "y=two"]),
        (delete("a"), vec!["y=two"]),
        (delete("a/x"), vec!["a/", "y=two"]),
        (delete("nothing"), vec!["a/", "a/x=one", "y=two"]),
        (delete("no/thing"), vec!["a/", "a/x=one", "y=two"]),
    ] {
        working.there_and_back(&action, &expected).await;
    }
}

#[tokio::test]
async fn a_finished_run_keeps_its_workspace_and_nothing_beside_it() {
    let working = Working::new().await;
    working.extending.done(&working.run, 1, &write("x", "old")).await;
    working.extending.done(&working.run, 2, &write("x", "new")).await;
    let runs = working.workspace.parent().unwrap();
    assert_eq!(fs::metadata(&working.workspace).unwrap().permissions().mode() & 0o777, 0o700);
    working.extending.runner.finish(&working.run).await.unwrap();
    let left: Vec<_> = fs::read_dir(runs).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, std::slice::from_ref(&working.workspace));
    assert_eq!(working.all(), ["x=new"]);
    for _ in 0..2 {
        working.extending.runner.discard(&working.run).await.unwrap();
    }
    assert_eq!(fs::read_dir(runs).unwrap().count(), 0);
}

#[tokio::test]
async fn no_link_leads_a_step_out_of_the_workspace() {
    let working = Working::new().await;
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "untouched").unwrap();
    fs::create_dir(outside.path().join("folder")).unwrap();
    let link = |target: &str, name: &str| symlink(target, working.workspace.join(name)).unwrap();
    let there = outside.path().to_str().unwrap();
    link(there, "out");
    link(&format!("{there}/secret"), "file");
    link("../../../../../../../../../../../../etc", "up");
    link("out", "twice");
    link("self", "self");
    link("/proc/self/root", "magic");
    fs::write(working.workspace.join("x"), "x").unwrap();
    for way in ["out", "twice", "up", "self", "magic", "file"] {
        for action in [
            make(&format!("{way}/new")),
            write(&format!("{way}/secret"), "bad"),
            write(&format!("{way}/new/deep"), "bad"),
            copy("x", &format!("{way}/secret")),
            copy(&format!("{way}/secret"), "stolen"),
            move_it("x", &format!("{way}/secret")),
            move_it(&format!("{way}/secret"), "stolen"),
            delete(&format!("{way}/secret")),
            delete(&format!("{way}/folder/x")),
        ] {
            working.refused(&action).await;
            working.extending.revert(&working.run, 8, &action).await.unwrap();
        }
        working.refused(&make(way)).await;
        working.refused(&copy(way, "stolen")).await;
    }
    // What is done to a link itself is done to the link.
    for action in
        [write("file", "new"), copy("x", "file"), delete("file"), delete("out"), move_it("x", "file")]
    {
        let before = working.all();
        working.extending.done(&working.run, 9, &action).await;
        working.extending.revert(&working.run, 9, &action).await.unwrap();
        assert_eq!(working.all(), before, "{action:?}");
    }
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "untouched");
    let mut left: Vec<_> =
        fs::read_dir(outside.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["folder", "secret"]);
    working.extending.runner.discard(&working.run).await.unwrap();
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "untouched");
}

#[tokio::test]
async fn links_in_a_folder_are_copied_as_links() {
    let working = Working::new().await;
    fs::create_dir(working.workspace.join("a")).unwrap();
    symlink("/etc/passwd", working.workspace.join("a/link")).unwrap();
    fs::write(working.workspace.join("a/run.sh"), "x").unwrap();
    fs::set_permissions(working.workspace.join("a/run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    working.extending.done(&working.run, 1, &copy("a", "b")).await;
    assert_eq!(
        working.all(),
        ["a/", "a/link -> /etc/passwd", "a/run.sh=x", "b/", "b/link -> /etc/passwd", "b/run.sh=x"]
    );
    let mode = fs::metadata(working.workspace.join("b/run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
}

#[tokio::test]
async fn what_cannot_be_done_is_reported() {
    let working = Working::new().await;
    working.extending.done(&working.run, 1, &write("a/x", "one")).await;
    for (action, expected) in [
        (copy("nothing", "b"), "there is no `nothing` in the workspace"),
        (move_it("nothing", "b"), "there is no `nothing` in the workspace"),
        (move_it("a", "a/b"), "`a` cannot be put into itself"),
        (move_it("a/x", "a"), "`a` would be replaced by itself or a part of it"),
        (copy("a", "a/b/c"), "`a` cannot be put into itself"),
        (copy("a", "a"), "`a` would be replaced by itself or a part of it"),
        (make("a/x/y"), "`a/x/y` is below a path that is not a folder"),
        (write("a/x/y", ""), "`a/x/y` is below a path that is not a folder"),
    ] {
        assert_eq!(working.refused(&action).await, expected, "{action:?}");
        working.extending.revert(&working.run, 8, &action).await.unwrap();
        assert_eq!(working.all(), ["a/", "a/x=one"], "{action:?}");
    }
    make_pipe(&working.workspace.join("pipe"));
    assert_eq!(working.refused(&copy("pipe", "b")).await, "only files, folders and links are copied");
}

fn make_pipe(path: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[tokio::test]
async fn copies_of_copies_come_to_an_end() {
    let working = Working::new().await;
    let noted = working.workspace.with_file_name(format!(".{}", working.run.execution)).join("copied");
    working.extending.done(&working.run, 1, &write("a", "123456")).await;
    fs::write(&noted, "15 10").unwrap();
    working.extending.done(&working.run, 2, &copy("a", "b")).await;
    working.extending.done(&working.run, 3, &copy("a", "c")).await;
    assert_eq!(fs::read_to_string(&noted).unwrap(), "3 8");
    for path in ["d", "e"] {
        assert_eq!(
            working.refused(&copy("a", path)).await,
            "the steps of a run copy at most 100000 files of 1024 MiB together"
        );
    }
    assert!(!working.workspace.join("d").exists());
}
