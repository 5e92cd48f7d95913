//! Starts the process that takes over from this one.

use std::{
    os::unix::process::CommandExt as _,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::SuccessorCommand;

/// The successor of this process: at most one at a time.
#[derive(Debug, Clone)]
pub(crate) struct Successor {
    command: Option<SuccessorCommand>,
    is_running: Arc<AtomicBool>,
}

impl Successor {
    pub(crate) fn new(command: Option<SuccessorCommand>) -> Self {
        Self { command, is_running: Arc::default() }
    }

    /// Starts it, unless it runs already. It has the user, the environment and the log of this process, and asks for
    /// the listening socket when it is ready. Fails with a reason for the control plane.
    pub(super) fn start(&self) -> Result<(), String> {
        let Some(command) = &self.command else {
            return Err("nothing would keep a successor of this proxy running: restart it".to_owned());
        };
        if self.is_running.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        match spawn(command) {
            Ok(child) => {
                tracing::info!(successor = child.id(), "successor started");
                let is_running = Arc::clone(&self.is_running);
                std::thread::spawn(move || wait_for(child, &is_running));
                Ok(())
            }
            Err(error) => {
                self.is_running.store(false, Ordering::SeqCst);
                Err(format!("cannot start `{}`: {error}", command.program.display()))
            }
        }
    }
}

fn spawn(command: &SuccessorCommand) -> std::io::Result<Child> {
    Command::new(&command.program).args(&command.arguments).stdin(Stdio::null()).process_group(0).spawn()
}

/// Returns only if the successor ended before this process, so that another one may be asked for.
fn wait_for(mut child: Child, is_running: &AtomicBool) {
    match child.wait() {
        Ok(status) => tracing::warn!(%status, "successor ended"),
        Err(error) => tracing::warn!(%error, "successor cannot be waited for"),
    }
    is_running.store(false, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn successor(program: &str) -> Successor {
        let command = SuccessorCommand { program: program.into(), arguments: vec!["60".into()] };
        Successor::new(Some(command))
    }

    #[test]
    fn a_successor_that_cannot_be_started_is_refused_with_a_reason() {
        assert!(Successor::new(None).start().unwrap_err().contains("restart it"));
        let missing = successor("/nowhere/launchway");
        for _ in 0..2 {
            assert!(missing.start().unwrap_err().contains("/nowhere/launchway"));
        }
    }

    #[test]
    fn another_successor_may_follow_one_that_ended() {
        let successor = successor("/bin/true");
        successor.start().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while successor.is_running.load(Ordering::SeqCst) {
            assert!(Instant::now() < deadline, "its end is not noticed");
            std::thread::sleep(Duration::from_millis(5));
        }
        successor.start().unwrap();
    }
}
