//! The real Caddy in front, with the configuration that Launchway prints.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::json;

use super::{harness, site};
use launchway_testkit::ports::free_port;

use crate::{
    docker::deployments::harness::{Harness, spec},
    wait::until,
};

/// A running Caddy; its configuration does not change after its start.
struct Caddy {
    process: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Caddy {
    fn before(harness: &Harness) -> Self {
        let printed = harness
            .server
            .command(&["proxy", "caddyfile"])
            .env("LAUNCHWAY_BIND", harness.server.address())
            .env("LAUNCHWAY_PROXY_BIND", harness.server.front())
            .output()
            .unwrap();
        let printed = String::from_utf8(printed.stdout).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let [port, other] = [free_port(), free_port()];
        // Free ports, no root certificate for the whole machine, and an issuer that needs no network;
        // Launchway's output is used unchanged.
        let own = format!(
            "{{\n\tadmin off\n\thttps_port {port}\n\thttp_port {other}\n\tskip_install_trust\n\tlocal_certs\n"
        );
        let configuration = printed.replacen("{\n", &own, 1);
        fs::write(folder.path().join("Caddyfile"), configuration).unwrap();
        let mut command = Command::new("caddy");
        command
            .args(["run", "--config", "Caddyfile", "--adapter", "caddyfile"])
            .current_dir(folder.path())
            .env("HOME", folder.path())
            .env("XDG_DATA_HOME", folder.path())
            .stdin(Stdio::null())
            .stderr(fs::File::create(folder.path().join("log")).unwrap());
        let process = command.spawn().unwrap();
        let caddy = Self { process, port, folder };
        until("the certificate authority", || caddy.root().exists().then_some(()));
        caddy
    }

    fn root(&self) -> std::path::PathBuf {
        self.folder.path().join("caddy/pki/authorities/local/root.crt")
    }

    /// Returns the page of a host over TLS, whose certificate must be valid.
    fn page(&self, host: &str) -> Result<String, String> {
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--fail", "--max-time", "20", "--cacert"])
            .arg(self.root())
            .args(["--resolve", &format!("{host}:{}:127.0.0.1", self.port)])
            .arg(format!("https://{host}:{}/", self.port))
            .output()
            .unwrap();
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(Path::join(self.folder.path(), "log")).unwrap()
    }
}

impl Drop for Caddy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn caddy_serves_every_name_over_tls_without_configuration() {
    let harness = harness();
    let caddy = Caddy::before(&harness);
    let repository = harness.repository("site");
    repository.write("index.html", "a site").commit();
    let mut first = site("site", &repository);
    (first["domain"], first["proxy_server"]) = (json!("site.example.com"), json!("caddy"));
    let (id, _) = harness.create_live(&first);
    let repository = harness.repository("web");
    repository.commit_page("a container");
    let mut second = spec("web", &repository);
    second["domain"] = json!("web.example.com");
    harness.create_live(&second);

    assert_eq!(caddy.page("site.example.com").unwrap(), "a site", "{}", caddy.log());
    assert_eq!(caddy.page("web.example.com").unwrap(), "a container");
    caddy.page("www.example.com").unwrap_err();

    let third = json!({"id": id, "domain": "www.example.com"});
    harness.admin.post("/api/v1/deploy/application/domains", &third).success();
    assert_eq!(caddy.page("www.example.com").unwrap(), "a site");
    assert_eq!(caddy.page("site.ada-s-team.localhost").unwrap(), "a site");
    caddy.page("evil.example.com").unwrap_err();
}
