//! The command line. This test also makes cargo build the binary that the black-box tests run.

use std::process::Command;

fn launchway(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_launchway"));
    command.args(arguments).env_clear();
    command
}

#[test]
fn the_version_is_reported() {
    let output = launchway(&["--version"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("launchway {}\n", env!("CARGO_PKG_VERSION")));
}
