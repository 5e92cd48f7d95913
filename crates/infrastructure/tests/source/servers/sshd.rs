//! A real ssh server that accepts one key.

use std::{
    fs,
    net::TcpStream,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use super::Program;
use crate::arena::{free_port, wait_until};

pub(crate) struct Sshd {
    pub(crate) port: u16,
    folder: PathBuf,
    _program: Program,
}

impl Sshd {
    /// Accepts `public_key` for the user who runs the test.
    pub(crate) fn serve(folder: &Path, public_key: &str) -> Self {
        let folder = folder.to_owned();
        fs::create_dir(&folder).unwrap();
        make_host_key(&folder.join("host_key"));
        fs::write(folder.join("authorized_keys"), format!("{public_key}\n")).unwrap();
        if user() == "root" {
            // Where it gives up its rights; the package makes it only when its service starts.
            fs::create_dir_all("/run/sshd").unwrap();
            fs::set_permissions("/run/sshd", fs::Permissions::from_mode(0o755)).unwrap();
        }
        // Another test may take the port first.
        for _ in 0..10 {
            let port = free_port();
            let config = folder.join("sshd_config");
            fs::write(&config, text_of_config(&folder, port)).unwrap();
            let mut program = Program::start(
                Command::new("/usr/sbin/sshd")
                    .args(["-D", "-E"])
                    .arg(folder.join("log"))
                    .arg("-f")
                    .arg(config),
            );
            let mut is_ours = true;
            wait_until("sshd listens", || {
                is_ours = !program.has_ended();
                !is_ours || TcpStream::connect(("127.0.0.1", port)).is_ok()
            });
            if is_ours && !program.has_ended() {
                return Self { port, folder, _program: program };
            }
        }
        panic!("sshd does not start: {}", fs::read_to_string(folder.join("log")).unwrap_or_default());
    }

    /// Returns a line for a `known_hosts` file.
    pub(crate) fn known_host(&self) -> String {
        let key = fs::read_to_string(self.folder.join("host_key.pub")).unwrap();
        format!("[127.0.0.1]:{} {key}", self.port)
    }

    pub(crate) fn url(&self, path: &Path) -> String {
        let path = path.to_str().unwrap().replace(' ', "%20");
        format!("ssh://{}@127.0.0.1:{}{path}", user(), self.port)
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap()
    }
}

fn text_of_config(folder: &Path, port: u16) -> String {
    let path = |name: &str| folder.join(name).display().to_string();
    format!(
        "ListenAddress 127.0.0.1\nPort {port}\nHostKey \"{}\"\nAuthorizedKeysFile \"{}\"\nPidFile none\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
         PermitRootLogin prohibit-password\nAcceptEnv GIT_PROTOCOL\nSetEnv PATH=\"{}\"\n",
        path("host_key"),
        path("authorized_keys"),
        std::env::var("PATH").unwrap(),
    )
}

/// Generates a host key at `path`.
pub(crate) fn make_host_key(path: &Path) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"])
        .arg(path)
        .status()
        .unwrap();
    assert!(made.success());
}

fn user() -> String {
    let asked = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(asked.stdout).unwrap().trim().to_owned()
}
