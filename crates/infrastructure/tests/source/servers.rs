//! Servers that a test starts, on ports of their own, and that end with it.

mod daemon;
mod sshd;

use std::process::{Child, Command, Stdio};

pub(crate) use launchway_testkit::external::{Manner, Web};

pub(crate) use self::{daemon::Daemon, sshd::Sshd};

/// A program that ends with its test, even if the test is killed.
pub(crate) struct Program(Child);

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut wrapped = Command::new("setpriv");
        wrapped.args(["--pdeathsig", "KILL", "--"]).arg(command.get_program()).args(command.get_args());
        wrapped.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(wrapped.spawn().unwrap())
    }

    /// Returns whether it has exited on its own.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}
