//! The proxies, their settings and the server behind them.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result, ensure};
use fs_err as fs;

use super::load::files;
use crate::{
    bench::{Server, http, launch},
    needs::{is_program, program_folders},
    network::free_port,
    workspace::{self, dist},
};

/// A proxy under load.
pub(super) struct Subject {
    server: Server,
    pub(super) tls_port: u16,
    pub(super) serves_sites: bool,
    /// The command that stops it, if it has processes that would outlive the first one.
    stop: Option<Command>,
}

impl Drop for Subject {
    fn drop(&mut self) {
        if let Some(stop) = &mut self.stop
            && let Err(error) = workspace::output(stop)
        {
            eprintln!("processes may be left over: {error:#}");
        }
    }
}

impl Subject {
    pub(super) fn pid(&self) -> u32 {
        self.server.pid()
    }

    pub(super) fn port(&self) -> u16 {
        self.server.port
    }
}

/// Everything that the proxies share: the server behind them, the files of a site, and a certificate.
pub(super) struct Setting {
    backend: Server,
    folder: PathBuf,
}

/// The ports of a proxy.
struct Ports {
    http: u16,
    tls: u16,
}

impl Ports {
    fn free() -> Result<Self> {
        Ok(Self { http: free_port()?, tls: free_port()? })
    }
}

impl Setting {
    pub(super) fn make(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder.join("site"))?;
        for (name, bytes) in files() {
            fs::write(folder.join("site").join(name), vec![b'x'; bytes])?;
        }
        let mut certificate = Command::new("openssl");
        certificate
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "30",
            ])
            .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
            .arg("-keyout")
            .arg(folder.join("key.pem"))
            .arg("-out")
            .arg(folder.join("chain.pem"))
            .stderr(Stdio::null());
        workspace::output(&mut certificate)?;
        let both =
            fs::read_to_string(folder.join("chain.pem"))? + &fs::read_to_string(folder.join("key.pem"))?;
        fs::write(folder.join("both.pem"), both)?;
        let backend = Server::start(&mut Command::new(dist("examples/backend")))?;
        Ok(Self { backend, folder: folder.to_owned() })
    }

    /// Starts the proxies, Launchway's first, then nginx.
    pub(super) fn subjects(&self) -> Result<[Subject; 4]> {
        Ok([self.launchway()?, self.nginx()?, self.haproxy()?, self.caddy()?])
    }

    fn launchway(&self) -> Result<Subject> {
        let (ports, folder) = (Ports::free()?, self.folder.join("launchway"));
        let mut command = Command::new(dist("examples/front_proxy"));
        command.arg(&folder).arg(format!("127.0.0.1:{}", ports.http)).arg(format!("127.0.0.1:{}", ports.tls));
        let server = Server::start_at(&mut command, ports.http)?;
        let socket = folder.join("control.sock");
        launch::wait_for("the control socket", launch::PAUSE, || Ok(UnixStream::connect(&socket).is_ok()))?;
        let backend = self.backend.port;
        let site = self.folder.join("site").display().to_string();
        let routes = format!(
            r#"{{"application":"bench","hosts":["bench.example.com","localhost"],"target":{{"kind":"container","id":"bench","address":"127.0.0.1:{backend}"}}}},{{"application":"site","hosts":["site.example.com"],"target":{{"kind":"site","folder":"{site}"}}}}"#
        );
        ask(&socket, &format!(r#"{{"ask":"replace_all","routes":[{routes}]}}"#))?;
        let (chain, key) = (self.pem("chain.pem")?, self.pem("key.pem")?);
        let not_after = (SystemTime::now() + Duration::from_secs(86_400))
            .duration_since(SystemTime::UNIX_EPOCH)
            .context("the clock is before 1970")?
            .as_secs();
        let certificate =
            format!(r#"{{"names":["localhost"],"chain":"{chain}","key":"{key}","not_after":{not_after}}}"#);
        ask(
            &socket,
            &format!(r#"{{"ask":"set_certificates","revision":"1","certificates":[{certificate}]}}"#),
        )?;
        Ok(Subject { server, tls_port: ports.tls, serves_sites: true, stop: None })
    }

    fn nginx(&self) -> Result<Subject> {
        let (ports, folder) = (Ports::free()?, self.folder.join("nginx"));
        fs::create_dir_all(&folder)?;
        let forward = "location / { proxy_pass http://application; proxy_http_version 1.1; \
             proxy_set_header Connection \"\"; proxy_set_header Host $host; \
             proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; \
             proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Host $host; }";
        // `user root`: the folder is not open to others, and the processes of others would not find the site.
        let configuration = format!(
            "user root;\nworker_processes auto;\nworker_rlimit_nofile 20000;\ndaemon off;\npid {own}/pid;\n\
             error_log {own}/error.log;\nevents {{ worker_connections 8192; }}\n\
             http {{\nsendfile on;\ntcp_nopush on;\nkeepalive_requests 1000000000;\naccess_log {own}/access.log;\n\
             client_body_temp_path {own}/1;\nproxy_temp_path {own}/2;\nfastcgi_temp_path {own}/3;\n\
             uwsgi_temp_path {own}/4;\nscgi_temp_path {own}/5;\n\
             upstream application {{ server 127.0.0.1:{backend}; keepalive 1024; keepalive_requests 1000000000; }}\n\
             server {{ listen 127.0.0.1:{http} backlog=4096; server_name bench.example.com; {forward} }}\n\
             server {{ listen 127.0.0.1:{http}; server_name site.example.com; root {shared}/site; }}\n\
             server {{ listen 127.0.0.1:{tls} ssl backlog=4096; server_name localhost; {forward}\n\
             ssl_protocols TLSv1.2 TLSv1.3;\n\
             ssl_certificate {shared}/chain.pem; ssl_certificate_key {shared}/key.pem; }}\n}}\n",
            own = folder.display(),
            shared = self.folder.display(),
            backend = self.backend.port,
            http = ports.http,
            tls = ports.tls,
        );
        fs::write(folder.join("nginx.conf"), configuration)?;
        let mut command = Command::new(program("nginx"));
        command.arg("-c").arg(folder.join("nginx.conf")).stderr(Stdio::null());
        let mut subject = started(&mut command, ports, true)?;
        let mut stop = Command::new(program("nginx"));
        stop.arg("-c").arg(folder.join("nginx.conf")).args(["-s", "stop"]);
        subject.stop = Some(stop);
        Ok(subject)
    }

    fn haproxy(&self) -> Result<Subject> {
        let (ports, folder) = (Ports::free()?, self.folder.join("haproxy"));
        fs::create_dir_all(&folder)?;
        let configuration = format!(
            "global\n  log stderr format raw local0\n  maxconn 4000\ndefaults\n  mode http\n  log global\n  \
             option httplog\n  option forwardfor\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n  \
             default_backend application\nfrontend http\n  bind 127.0.0.1:{http} backlog 4096\nfrontend tls\n  \
             bind 127.0.0.1:{tls} backlog 4096 ssl crt {shared}/both.pem\nbackend application\n  \
             server application 127.0.0.1:{backend}\n",
            shared = self.folder.display(),
            backend = self.backend.port,
            http = ports.http,
            tls = ports.tls,
        );
        fs::write(folder.join("haproxy.cfg"), configuration)?;
        let mut command = Command::new(program("haproxy"));
        // It has no log files of its own.
        let (log, _) = fs::File::create(folder.join("access.log"))?.into_parts();
        command.arg("-f").arg(folder.join("haproxy.cfg")).stderr(log);
        started(&mut command, ports, false)
    }

    fn caddy(&self) -> Result<Subject> {
        let (ports, folder) = (Ports::free()?, self.folder.join("caddy"));
        fs::create_dir_all(&folder)?;
        let log = format!("log {{\n\t\toutput file {}/access.log\n\t}}", folder.display());
        let configuration = format!(
            "{{\n\tadmin off\n\tauto_https off\n}}\n\
             http://bench.example.com:{http} {{\n\t{log}\n\treverse_proxy 127.0.0.1:{backend}\n}}\n\
             http://site.example.com:{http} {{\n\t{log}\n\troot * {shared}/site\n\tfile_server\n}}\n\
             https://localhost:{tls} {{\n\t{log}\n\ttls {shared}/chain.pem {shared}/key.pem\n\t\
             reverse_proxy 127.0.0.1:{backend}\n}}\n",
            shared = self.folder.display(),
            backend = self.backend.port,
            http = ports.http,
            tls = ports.tls,
        );
        fs::write(folder.join("Caddyfile"), configuration)?;
        let mut command = Command::new("caddy");
        command
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(folder.join("Caddyfile"))
            .env("HOME", &folder)
            .env("XDG_DATA_HOME", &folder)
            .env("XDG_CONFIG_HOME", &folder)
            .stderr(Stdio::null());
        started(&mut command, ports, true)
    }

    /// Returns a PEM file as a string in JSON.
    fn pem(&self, name: &str) -> Result<String> {
        Ok(fs::read_to_string(self.folder.join(name))?.replace('\n', "\\n"))
    }
}

fn started(command: &mut Command, ports: Ports, serves_sites: bool) -> Result<Subject> {
    let line = workspace::shown(command);
    let server = Server::start_at(command, ports.http)?;
    launch::wait_for(&line, launch::PAUSE, || Ok(http::get(ports.http, "/", None).is_ok()))?;
    Ok(Subject { server, tls_port: ports.tls, serves_sites, stop: None })
}

/// Sends a request to the control socket of the proxy.
fn ask(socket: &Path, request: &str) -> Result<()> {
    let mut control = UnixStream::connect(socket)?;
    writeln!(control, "{request}")?;
    let mut answer = String::new();
    BufReader::new(control).read_line(&mut answer)?;
    ensure!(answer.contains("done"), "the proxy answered {answer}");
    Ok(())
}

fn program(name: &str) -> PathBuf {
    let mut places = program_folders().into_iter().map(|folder| folder.join(name));
    places.find(|path| is_program(path)).unwrap_or_else(|| name.into())
}
