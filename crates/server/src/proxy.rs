//! The commands of the front proxy.

use std::{error::Error, fmt::Write as _, path::PathBuf};

use launchway_domain::error_chain::ErrorChain;
use launchway_infrastructure::data_dir::{DataDir, DataDirError};
use launchway_proxy::{
    Limits, Settings, SuccessorCommand,
    control::{Client, ControlError},
};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    assembly::runtime,
    cli,
    config::{Config, ProxyConfig},
    front_proxy, telemetry,
};

/// Routes traffic until it is stopped, or until a successor takes over.
pub(crate) fn run(config: &Config) -> Result<(), Box<dyn Error>> {
    let proxy = configured(config)?;
    telemetry::start(config);
    let settings = Settings {
        bind: proxy.bind,
        tls_bind: proxy.tls_bind,
        folder: folder(config)?,
        trusted: config.trusted_proxies.clone(),
        limits: Limits::default(),
        threads: None,
        access_log: proxy.access_log,
        version: front_proxy::version(config, proxy)?,
        control_user: proxy.control_user,
        successor: successor()?,
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        // Closing a terminal must not stop the applications.
        let _hangup = signal(SignalKind::hangup())?;
        let stop = async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        Ok(launchway_proxy::run(settings, stop).await?)
    })
}

/// Prints the status of the proxy.
pub(crate) fn status(config: &Config) -> Result<(), Box<dyn Error>> {
    let status = runtime()?.block_on(control(config)?.status()).map_err(|error| in_words(config, error))?;
    let mut text = format!("process    {}\nversion    {}\n", status.process, status.version);
    for address in &status.addresses {
        writeln!(text, "address    http://{address}")?;
    }
    for address in &status.tls_addresses {
        writeln!(text, "address    https://{address}")?;
    }
    writeln!(text, "routes     {}", status.routes)?;
    if !status.is_trusted {
        text.push_str("containers cannot be reached until the server has sent all routes\n");
    }
    cli::print(&text)
}

/// Stops the proxy.
pub(crate) fn stop(config: &Config) -> Result<(), Box<dyn Error>> {
    runtime()?.block_on(control(config)?.stop()).map_err(|error| in_words(config, error))?;
    crate::print_line("the front proxy stops when its running requests have finished");
    Ok(())
}

/// Prints a configuration for a Caddy in front of the proxy. It never has to be reloaded: Caddy asks the
/// server about each host name that it has no certificate for.
pub(crate) fn caddyfile(config: &Config) -> Result<(), Box<dyn Error>> {
    let proxy = configured(config)?;
    let (api, front) = (config.bind, proxy.bind);
    let mut text = format!(
        "# Printed by `launchway proxy caddyfile`.\n\
         # Launchway must trust this proxy: LAUNCHWAY_TRUSTED_PROXIES=127.0.0.1/32\n\
         {{\n\
         \ton_demand_tls {{\n\
         \t\task http://{api}/api/v1/proxy/ask\n\
         \t}}\n\
         }}\n\n\
         https:// {{\n\
         \ttls {{\n\
         \t\ton_demand\n\
         \t}}\n\
         \treverse_proxy {front}\n\
         }}\n"
    );
    if let Some(url) = &config.public_url {
        write!(text, "\n{} {{\n\treverse_proxy {api}\n}}\n", url.origin())?;
    }
    cli::print(&text)
}

fn configured(config: &Config) -> Result<&ProxyConfig, String> {
    let off = || "the front proxy is disabled: LAUNCHWAY_PROXY_BIND is off".to_owned();
    config.proxy.as_ref().ok_or_else(off)
}

fn control(config: &Config) -> Result<Client, Box<dyn Error>> {
    Ok(Client::at(folder(config)?))
}

/// The folder of the proxy. The data directory is not touched if it is elsewhere.
fn folder(config: &Config) -> Result<PathBuf, DataDirError> {
    match front_proxy::external_folder(config) {
        Some(folder) => Ok(folder),
        None => Ok(front_proxy::folder(config, &DataDir::open(&config.data_dir)?)),
    }
}

/// The command of a successor, if systemd runs this process: the unit leaves a successor alone when this one ends, and
/// starts the next. In a container a successor would end with this process.
fn successor() -> Result<Option<SuccessorCommand>, std::io::Error> {
    if std::env::var_os("INVOCATION_ID").is_none() {
        return Ok(None);
    }
    // Looked up before an upgrade puts another file there.
    let program = std::env::current_exe()?;
    Ok(Some(SuccessorCommand { program, arguments: std::env::args_os().skip(1).collect() }))
}

fn in_words(config: &Config, error: ControlError) -> String {
    match (error, front_proxy::external_folder(config)) {
        (ControlError::Absent, None) => "no front proxy runs on this data directory".to_owned(),
        (ControlError::Absent, Some(folder)) => format!("no front proxy runs in `{}`", folder.display()),
        (error, _) => ErrorChain(&error).to_string(),
    }
}
