//! The front proxy alone, without limits for one client: the subject of the proxy benchmark.
//!
//! Usage: `front_proxy FOLDER ADDRESS TLS_ADDRESS`

use std::{env, error::Error, future::pending};

use launchway_proxy::{Limits, Settings};

fn main() -> Result<(), Box<dyn Error>> {
    let [folder, bind, tls_bind] = &env::args().skip(1).collect::<Vec<_>>()[..] else {
        return Err("usage: front_proxy FOLDER ADDRESS TLS_ADDRESS".into());
    };
    let settings = Settings {
        bind: bind.parse()?,
        tls_bind: Some(tls_bind.parse()?),
        folder: folder.into(),
        trusted: Vec::new(),
        // All requests are of one client, for one application.
        limits: Limits { per_client: 10_000, per_application: 10_000, ..Limits::default() },
        threads: None,
        access_log: true,
        version: "bench".to_owned(),
        control_user: None,
        successor: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(launchway_proxy::run(settings, pending()))?)
}
