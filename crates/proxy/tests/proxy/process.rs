//! A proxy that runs for one test.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use launchway_proxy::{
    Limits, RunError, Settings,
    control::Client,
    routes::{Endpoint, Route, Target},
    run_in_boot,
};
use tempfile::TempDir;
use tokio::{sync::oneshot, task::JoinHandle, time::sleep};

/// A proxy, its folder and a client of its control socket.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    /// The address of TLS, if it serves that.
    pub(crate) tls_address: Option<SocketAddr>,
    pub(crate) control: Client,
    pub(crate) task: JoinHandle<Result<(), RunError>>,
    stop: Option<oneshot::Sender<()>>,
    folder: PathBuf,
    _own_folder: Option<TempDir>,
}

/// Starts a proxy with an empty, complete set of routes.
pub(crate) async fn proxy() -> Proxy {
    proxy_with(|_| {}).await
}

/// Starts the same with other settings.
pub(crate) async fn proxy_with(change: impl FnOnce(&mut Settings)) -> Proxy {
    let own_folder = tempfile::tempdir().unwrap();
    let mut proxy = proxy_in(&own_folder.path().join("proxy"), change).await;
    proxy._own_folder = Some(own_folder);
    proxy.control.replace_all(Vec::new()).await.unwrap();
    proxy
}

/// Starts a proxy in a folder, with the routes stored there. It takes over if one runs there.
pub(crate) async fn proxy_in(folder: &Path, change: impl FnOnce(&mut Settings)) -> Proxy {
    let mut settings = settings(folder);
    change(&mut settings);
    let boot_id = folder.parent().unwrap().join("boot_id");
    if !boot_id.exists() {
        fs::write(&boot_id, "this boot\n").unwrap();
    }
    let version = settings.version.clone();
    let (stop, stopped) = oneshot::channel::<()>();
    let stopped = async {
        // Whoever drops a proxy does not stop it: the test's runtime does.
        if stopped.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let task = tokio::spawn(async move { run_in_boot(settings, &boot_id, stopped).await });
    let control = Client::at(folder);
    let (address, tls_address) = loop {
        match control.status().await {
            Ok(status) if status.version == version => {
                break (status.addresses[0], status.tls_addresses.first().copied());
            }
            _ if task.is_finished() => panic!("the proxy ended: {:?}", task.await),
            _ => sleep(Duration::from_millis(2)).await,
        }
    };
    Proxy {
        address,
        tls_address,
        control,
        task,
        stop: Some(stop),
        folder: folder.to_owned(),
        _own_folder: None,
    }
}

pub(crate) fn settings(folder: &Path) -> Settings {
    Settings {
        bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        tls_bind: None,
        folder: folder.to_owned(),
        trusted: Vec::new(),
        limits: Limits::default(),
        threads: None,
        access_log: false,
        version: "first".to_owned(),
        control_user: None,
        successor: None,
    }
}

impl Proxy {
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Routes `<application>.example` to the address.
    pub(crate) async fn route_to(&self, application: &str, address: SocketAddr) {
        self.control.set(route(application, address)).await.unwrap();
    }

    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }
}

/// The endpoint of a container at the address.
pub(crate) fn endpoint(address: SocketAddr) -> Endpoint {
    Endpoint { id: format!("container at {address}"), address }
}

/// A route of `<application>.example` to several containers.
pub(crate) fn route_to_all(application: &str, addresses: &[SocketAddr]) -> Route {
    let target = Target::Endpoints(addresses.iter().copied().map(endpoint).collect());
    Route { target, ..route(application, SocketAddr::from((Ipv4Addr::LOCALHOST, 1))) }
}

/// A route of `<application>.example` to a container at the address.
pub(crate) fn route(application: &str, address: SocketAddr) -> Route {
    Route {
        application: application.to_owned(),
        hosts: vec![format!("{application}.example")],
        target: Target::Endpoints(vec![endpoint(address)]),
        https_only: false,
    }
}
