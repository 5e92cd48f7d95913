//! Network namespaces of a test.
//!
//! Need root, and the packages `iproute2`, `bash` and `busybox-static`.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
};

pub(crate) fn run(words: &str) {
    let mut parts = words.split(' ');
    let output = Command::new(parts.next().unwrap()).args(parts).output().unwrap();
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A network namespace; removed when dropped.
pub(crate) struct Namespace(String);

impl Namespace {
    pub(crate) fn new(role: &str) -> Self {
        let name = format!("lw{role}{}", std::process::id());
        run(&format!("ip netns add {name}"));
        let made = Self(name);
        made.exec("ip link set lo up");
        made
    }

    pub(crate) fn exec(&self, words: &str) {
        run(&format!("ip netns exec {} {words}", self.0));
    }

    /// Connects two namespaces, each end with its address.
    pub(crate) fn connect(&self, address: &str, other: &Self, other_address: &str) {
        self.connect_by(&format!("a{}", &other.0[2..]), address, other, other_address);
    }

    /// Connects two namespaces by an interface `link` of this one.
    pub(crate) fn connect_by(&self, link: &str, address: &str, other: &Self, other_address: &str) {
        run(&format!("ip link add {link} netns {} type veth peer name up0 netns {}", self.0, other.0));
        self.exec(&format!("ip addr add {address} dev {link}"));
        self.exec(&format!("ip link set {link} up"));
        other.exec(&format!("ip addr add {other_address} dev up0"));
        other.exec("ip link set up0 up");
    }

    /// Returns a command that runs in here.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).arg(program);
        command
    }

    /// Listens on a port.
    pub(crate) fn serve(&self, port: u16) -> Server {
        let port = port.to_string();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0, "busybox", "httpd", "-f", "-p", &port, "-h", "/etc"]);
        Server(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Returns whether a connection from here is accepted within two seconds.
    pub(crate) fn reaches(&self, address: &str, port: u16) -> bool {
        let script = format!("exec 3<>/dev/tcp/{address}/{port}");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0, "timeout", "2", "bash", "-c", &script]);
        command.stderr(Stdio::null()).status().unwrap().success()
    }

    /// Waits for a server.
    pub(crate) fn reaches_soon(&self, address: &str, port: u16) -> bool {
        (0..50).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            self.reaches(address, port)
        })
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _removed = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

/// A program that is killed when dropped.
pub(crate) struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}
