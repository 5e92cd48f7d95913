//! Persistence of routes, and the control socket.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
    time::Duration,
};

use launchway_proxy::{
    control::{Client, ControlError},
    routes::{Route, Target},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    runtime::Runtime,
    time::{sleep, timeout},
};

use crate::{
    application::named,
    client::{TIMEOUT, get},
    process::{Proxy, proxy, proxy_in, route},
};

/// A proxy on a runtime of its own, which ends like a killed process.
struct Killable {
    runtime: Runtime,
    proxy: Proxy,
}

fn killable(folder: &Path) -> Killable {
    killable_version(folder, "first")
}

fn killable_version(folder: &Path, version: &str) -> Killable {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let proxy = runtime.block_on(proxy_in(folder, |settings| version.clone_into(&mut settings.version)));
    Killable { runtime, proxy }
}

fn site(folder: &Path) -> Route {
    let target = Target::Site { folder: folder.to_owned() };
    Route {
        application: "site".to_owned(),
        hosts: vec!["site.example".to_owned()],
        target,
        https_only: false,
    }
}

#[test]
fn routes_hold_over_a_kill() {
    let here = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("proxy");
    let shop = here.block_on(named("shop"));
    let first = killable(&place);
    here.block_on(first.proxy.control.replace_all(vec![route("blog", shop.address)])).unwrap();
    here.block_on(first.proxy.control.set(route("shop", shop.address))).unwrap();
    here.block_on(first.proxy.control.remove("blog")).unwrap();
    first.runtime.shutdown_timeout(TIMEOUT);
    let second = killable(&place);
    assert_eq!(here.block_on(get(second.proxy.address, "shop.example", "/")).text(), "shop");
    assert_eq!(here.block_on(get(second.proxy.address, "blog.example", "/")).status, 404);
    let status = here.block_on(second.proxy.control.status()).unwrap();
    assert_eq!((status.routes, status.is_trusted, status.process), (1, true, std::process::id()));
    second.runtime.shutdown_timeout(TIMEOUT);
}

#[test]
fn after_a_reboot_containers_wait_until_routes_were_sent() {
    let here = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("proxy");
    fs::write(folder.path().join("index.html"), "a page").unwrap();
    let (shop, blog) = here.block_on(async { (named("shop").await, named("blog").await) });
    let all = vec![route("shop", shop.address), route("blog", blog.address), site(folder.path())];
    let first = killable(&place);
    here.block_on(first.proxy.control.replace_all(all.clone())).unwrap();
    first.runtime.shutdown_timeout(TIMEOUT);

    fs::write(folder.path().join("boot_id"), "another boot\n").unwrap();
    let second = killable(&place);
    let ask = |address, host: &str| here.block_on(get(address, host, "/index.html"));
    assert_eq!(ask(second.proxy.address, "shop.example").status, 503);
    assert_eq!(ask(second.proxy.address, "site.example").status, 200);
    assert_eq!(ask(second.proxy.address, "nobody.example").status, 404);
    assert!(!here.block_on(second.proxy.control.status()).unwrap().is_trusted);
    // A route that is set on its own is trusted on its own, also after a restart.
    here.block_on(second.proxy.control.set(route("shop", shop.address))).unwrap();
    second.runtime.shutdown_timeout(TIMEOUT);
    let third = killable(&place);
    assert_eq!(ask(third.proxy.address, "shop.example").status, 200);
    assert_eq!(ask(third.proxy.address, "blog.example").status, 503);
    here.block_on(third.proxy.control.replace_all(all)).unwrap();
    assert_eq!(ask(third.proxy.address, "blog.example").status, 200);
    assert!(here.block_on(third.proxy.control.status()).unwrap().is_trusted);
    third.runtime.shutdown_timeout(TIMEOUT);
}

#[tokio::test]
async fn routes_expire_unless_they_are_confirmed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("index.html"), "a page").unwrap();
    let (proxy, shop) = (proxy().await, named("shop").await);
    let all = vec![route("shop", shop.address), site(folder.path())];
    proxy.control.replace_all(all.clone()).await.unwrap();
    let shop_status = async || get(proxy.address, "shop.example", "/").await.status;
    proxy.control.lease(Some(Duration::from_secs(1))).await.unwrap();
    assert_eq!(shop_status().await, 200);
    let expired = async {
        while shop_status().await != 503 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(TIMEOUT, expired).await.expect("the routes expire");
    assert_eq!(get(proxy.address, "site.example", "/index.html").await.status, 200, "a site has no address");
    assert!(!proxy.control.status().await.unwrap().is_trusted);
    // A lease alone says nothing about the routes.
    proxy.control.lease(None).await.unwrap();
    assert_eq!(shop_status().await, 503);
    proxy.control.replace_all(all).await.unwrap();
    assert_eq!(shop_status().await, 200);
    assert!(proxy.control.status().await.unwrap().is_trusted);
}

#[test]
fn routes_with_a_lease_have_expired_after_a_restart() {
    let here = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("proxy");
    let shop = here.block_on(named("shop"));
    let first = killable(&place);
    here.block_on(first.proxy.control.replace_all(vec![route("shop", shop.address)])).unwrap();
    here.block_on(first.proxy.control.lease(Some(Duration::from_secs(3600)))).unwrap();
    // One that takes over goes on.
    let second = killable_version(&place, "second");
    let status = |address| here.block_on(get(address, "shop.example", "/")).status;
    assert_eq!(status(second.proxy.address), 200);
    first.runtime.shutdown_timeout(TIMEOUT);
    second.runtime.shutdown_timeout(TIMEOUT);
    let third = killable(&place);
    assert_eq!(status(third.proxy.address), 503);
    third.runtime.shutdown_timeout(TIMEOUT);
}

#[tokio::test]
async fn answers_starting_for_every_host_without_a_readable_file() {
    for text in
        [None, Some(""), Some("{"), Some("[]"), Some("{\"format\":2,\"is_complete\":true,\"routes\":[]}")]
    {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("proxy");
        fs::create_dir(&place).unwrap();
        if let Some(text) = text {
            fs::write(place.join("routes.json"), text).unwrap();
        }
        let proxy = proxy_in(&place, |_| {}).await;
        assert_eq!(get(proxy.address, "shop.example", "/").await.status, 503, "{text:?}");
        let shop = named("shop").await;
        proxy.route_to("shop", shop.address).await;
        assert_eq!(get(proxy.address, "shop.example", "/").await.status, 200, "{text:?}");
        assert_eq!(get(proxy.address, "blog.example", "/").await.status, 503, "{text:?}");
        proxy.control.replace_all(vec![route("shop", shop.address)]).await.unwrap();
        assert_eq!(get(proxy.address, "blog.example", "/").await.status, 404, "{text:?}");
    }
}

#[tokio::test]
async fn many_hosts_of_one_application_do_not_block_other_routes() {
    let (proxy, shop) = (proxy().await, named("shop").await);
    // As many of the longest names as an application may have.
    let many = (0..300).map(|application| Route {
        application: application.to_string(),
        hosts: (0..101).map(|number| format!("{:0>240}.{application}-{number}", "")).collect(),
        target: Target::Absent,
        https_only: false,
    });
    let all = many.chain([route("shop", shop.address)]).collect();
    proxy.control.replace_all(all).await.unwrap();
    assert_eq!(get(proxy.address, "shop.example", "/").await.status, 200);
}

#[tokio::test]
async fn the_same_routes_are_not_written_again() {
    let proxy = proxy().await;
    let all = vec![route("shop", proxy.address), route("blog", proxy.address)];
    proxy.control.replace_all(all.clone()).await.unwrap();
    let file = proxy.folder().join("routes.json");
    let before = fs::metadata(&file).unwrap().ino();
    proxy.control.replace_all(all.into_iter().rev().collect()).await.unwrap();
    proxy.control.set(route("shop", proxy.address)).await.unwrap();
    proxy.control.remove("nobody").await.unwrap();
    assert_eq!(fs::metadata(&file).unwrap().ino(), before);
    proxy.control.remove("blog").await.unwrap();
    assert_ne!(fs::metadata(&file).unwrap().ino(), before);
}

#[tokio::test]
async fn routes_that_cannot_be_kept_stay_as_they_were() {
    let (proxy, shop, other) = (proxy().await, named("shop").await, named("other").await);
    proxy.route_to("shop", shop.address).await;
    let before = fs::read(proxy.folder().join("routes.json")).unwrap();
    // A folder where the next file is to be written.
    fs::create_dir(proxy.folder().join("routes.json.next")).unwrap();
    let refused = proxy.control.set(route("shop", other.address)).await;
    assert!(matches!(refused, Err(ControlError::Refused(_))), "{refused:?}");
    assert_eq!(get(proxy.address, "shop.example", "/").await.text(), "shop");
    assert_eq!(fs::read(proxy.folder().join("routes.json")).unwrap(), before);
    fs::remove_dir(proxy.folder().join("routes.json.next")).unwrap();
    proxy.route_to("shop", other.address).await;
    assert_eq!(get(proxy.address, "shop.example", "/").await.text(), "other");
}

#[tokio::test]
async fn everything_in_the_folder_is_for_its_owner_alone() {
    let proxy = proxy().await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(proxy.folder()), 0o700);
    assert_eq!(mode(&proxy.folder().join("control.sock")), 0o600);
    assert_eq!(mode(&proxy.folder().join("routes.json")), 0o600);
}

#[tokio::test]
async fn a_folder_may_have_a_long_path() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("d".repeat(150));
    fs::create_dir(&deep).unwrap();
    let proxy = proxy_in(&deep.join("proxy"), |_| {}).await;
    assert_eq!(proxy.control.status().await.unwrap().version, "first");
}

#[tokio::test]
async fn a_line_that_is_none_is_refused_and_the_next_one_answered() {
    let proxy = proxy().await;
    let stream = UnixStream::connect(proxy.folder().join("control.sock")).await.unwrap();
    let mut stream = BufReader::new(stream);
    for (line, answer) in [
        ("nonsense\n", "refused"),
        ("{\"ask\":\"dance\"}\n", "refused"),
        ("{\"ask\":\"status\"}\n", "status"),
        ("{\"ask\":\"traffic\"}\n", "traffic"),
    ] {
        stream.write_all(line.as_bytes()).await.unwrap();
        let mut said = String::new();
        stream.read_line(&mut said).await.unwrap();
        assert!(said.contains(&format!("\"answer\":\"{answer}\"")), "{said}");
    }
}

#[tokio::test]
async fn without_a_proxy_the_control_plane_gets_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for place in [folder.path().to_owned(), folder.path().join("nowhere")] {
        assert!(matches!(Client::at(place).status().await, Err(ControlError::Absent)));
    }
    // A socket that a killed proxy left behind.
    drop(std::os::unix::net::UnixListener::bind(folder.path().join("control.sock")).unwrap());
    assert!(matches!(Client::at(folder.path()).status().await, Err(ControlError::Absent)));
}

#[tokio::test]
async fn a_proxy_whose_folder_is_removed_ends_and_frees_its_address() {
    let own = tempfile::tempdir().unwrap();
    let proxy = proxy_in(&own.path().join("proxy"), |_| {}).await;
    fs::remove_dir_all(own.path().join("proxy")).unwrap();
    tokio::time::timeout(TIMEOUT, proxy.task).await.unwrap().unwrap().unwrap();
    std::net::TcpListener::bind(proxy.address).unwrap();
}
