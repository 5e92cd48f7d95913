//! Git's own server for the `git://` protocol.

use std::{net::TcpStream, path::Path, process::Command};

use super::Program;
use crate::arena::{free_port, git, wait_until};

pub(crate) struct Daemon {
    pub(crate) port: u16,
    _program: Program,
}

impl Daemon {
    /// Serves every repository in `folder`.
    pub(crate) fn serve(folder: &Path) -> Self {
        // Another test may take the port first.
        for _ in 0..10 {
            let port = free_port();
            let mut program = Program::start(
                Command::new(format!("{}/git-daemon", git(folder, &["--exec-path"], "")))
                    .args(["--export-all", "--listen=127.0.0.1", &format!("--port={port}")])
                    .arg(format!("--base-path={}", folder.display()))
                    .arg(folder),
            );
            let mut is_ours = true;
            wait_until("the daemon listens", || {
                is_ours = !program.has_ended();
                !is_ours || TcpStream::connect(("127.0.0.1", port)).is_ok()
            });
            if is_ours && !program.has_ended() {
                return Self { port, _program: program };
            }
        }
        panic!("the daemon finds no port");
    }

    pub(crate) fn url(&self, name: &str) -> String {
        format!("git://127.0.0.1:{}/{name}", self.port)
    }
}
