//! Pebble, an ACME server for tests, and its DNS server, for which every name is this machine.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use launchway_testkit::external::Authority;
use serde_json::json;

use super::{Ports, free_port, gate::Gate};
use crate::wait::until;

/// The URL of its terms of service.
pub(super) const TERMS: &str = "data:text/plain,Do%20what%20thou%20wilt";

/// A running Pebble.
pub(super) struct Pebble {
    processes: Vec<Child>,
    gate: Gate,
    management: u16,
    folder: tempfile::TempDir,
}

impl Pebble {
    /// Starts one that checks domains at these ports, and whose certificates are valid for so many seconds.
    pub(super) fn checking(ports: &Ports, seconds: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [port, management, dns, dns_management] = [0; 4].map(|_| free_port());
        let authority = Authority::new();
        let own = authority.vouch_for(&["127.0.0.1"]);
        let file = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        file("authority.pem", authority.pem());
        file("certificate.pem", &own.certificate);
        file("key.pem", &own.key);
        let configuration = json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{port}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": folder.path().join("certificate.pem"),
            "privateKey": folder.path().join("key.pem"),
            "httpPort": ports.http,
            "tlsPort": ports.tls,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": false,
            "certificateValidityPeriod": seconds,
        }});
        file("pebble.json", &configuration.to_string());
        let mut names = Command::new("pebble-challtestsrv");
        names.args(["-defaultIPv4", "127.0.0.1", "-defaultIPv6", "", "-http01", "", "-https01", ""]);
        names.args(["-tlsalpn01", "", "-dns01", &format!("127.0.0.1:{dns}")]);
        names.args(["-management", &format!("127.0.0.1:{dns_management}")]);
        let mut pebble = Command::new("pebble");
        pebble.arg("-config").arg(folder.path().join("pebble.json")).arg("-strict");
        pebble.args(["-dnsserver", &format!("127.0.0.1:{dns}")]);
        // No pauses; and every twentieth nonce is refused, as servers may.
        pebble.env("PEBBLE_VA_NOSLEEP", "1").env("PEBBLE_WFE_NONCEREJECT", "5");
        let processes = [names, pebble].into_iter().enumerate().map(|(number, mut command)| {
            let log = fs::File::create(folder.path().join(format!("log.{number}"))).unwrap();
            command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
        });
        let pebble = Self { processes: processes.collect(), gate: Gate::to(port), management, folder };
        until("Pebble", || pebble.fetch_root().then_some(()));
        pebble
    }

    /// Returns the settings of a server that gets its certificates here.
    pub(super) fn settings(&self) -> [(&'static str, String); 5] {
        let authority = self.folder.path().join("authority.pem");
        [
            ("LAUNCHWAY_ACME_ACCEPT_TERMS", TERMS.to_owned()),
            // Only its own DNS server knows the names.
            ("LAUNCHWAY_ACME_ADDRESSES", "off".to_owned()),
            ("LAUNCHWAY_ACME_DIRECTORY", format!("https://127.0.0.1:{}/dir", self.gate.port)),
            ("LAUNCHWAY_ACME_CA_FILE", authority.display().to_string()),
            ("LAUNCHWAY_ACME_EMAIL", "operator@example.com".to_owned()),
        ]
    }

    /// Returns the file with the root of the certificates that it issues.
    pub(super) fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log.1")).unwrap()
    }

    /// Makes it unreachable.
    pub(super) fn disconnect(&self) {
        self.gate.close();
    }

    /// Makes it reachable again.
    pub(super) fn connect(&self) {
        self.gate.open();
    }

    fn fetch_root(&self) -> bool {
        fetch(
            &format!("https://127.0.0.1:{}/roots/0", self.management),
            &self.folder.path().join("authority.pem"),
            &self.root(),
        )
    }
}

fn fetch(url: &str, authority: &Path, into: &Path) -> bool {
    let curl = Command::new("curl")
        .args(["--silent", "--fail", "--max-time", "5", "--cacert"])
        .arg(authority)
        .arg("--output")
        .arg(into)
        .arg(url)
        .status();
    curl.unwrap().success()
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
