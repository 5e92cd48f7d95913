//! Files of a site on their way through a connection.

use std::{
    fs::{self, File},
    path::Path,
};

use launchway_proxy::routes::{Route, Target};
use tempfile::TempDir;

use crate::{
    client::{Answer, connect, get},
    process::{Proxy, proxy_with},
};

/// The largest body that is sent from memory, the largest that is sent at once, and others around them.
const SIZES: [usize; 7] = [0, 1, 16_384, 16_385, 1_048_576, 1_048_577, 3_000_000];

fn content(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 251) as u8).collect()
}

async fn site() -> (Proxy, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    for size in SIZES {
        fs::write(folder.path().join(size.to_string()), content(size)).unwrap();
    }
    let proxy = proxy_with(|settings| settings.access_log = true).await;
    proxy.control.set(route(folder.path())).await.unwrap();
    (proxy, folder)
}

fn route(folder: &Path) -> Route {
    Route {
        application: "site".to_owned(),
        hosts: vec!["site.example".to_owned()],
        target: Target::Site { folder: folder.to_owned() },
        https_only: false,
    }
}

fn assert_is(answer: &Answer, size: usize) {
    assert_eq!(answer.status, 200);
    assert!(answer.body == content(size), "{size}: {} other bytes", answer.body.len());
}

#[tokio::test]
async fn a_file_of_any_size_arrives_whole() {
    let (proxy, _folder) = site().await;
    let mut client = connect(proxy.address).await;
    // The first time from the disk, and then from the memory of the kernel.
    for _ in 0..2 {
        for size in SIZES {
            assert_is(&client.get("site.example", &format!("/{size}")).await.unwrap(), size);
        }
    }
}

#[tokio::test]
async fn files_that_are_requested_at_once_come_in_order() {
    let (proxy, _folder) = site().await;
    let mut client = connect(proxy.address).await;
    let requests = SIZES.map(|size| format!("GET /{size} HTTP/1.1\r\nHost: site.example\r\n\r\n"));
    client.send(requests.concat().as_bytes()).await;
    for size in SIZES {
        assert_is(&client.answer().await.unwrap(), size);
    }
}

#[tokio::test]
async fn a_part_of_a_file_is_that_part() {
    let (proxy, _folder) = site().await;
    let mut client = connect(proxy.address).await;
    let range = "GET /3000000 HTTP/1.1\r\nHost: site.example\r\nRange: bytes=100000-2900000\r\n\r\n";
    client.send(range.as_bytes()).await;
    let answer = client.answer().await.unwrap();
    assert_eq!(answer.status, 206);
    assert!(answer.body == content(3_000_000)[100_000..=2_900_000]);
}

#[tokio::test]
async fn a_file_that_shrinks_meanwhile_closes_the_connection() {
    let (proxy, folder) = site().await;
    let path = folder.path().join("large");
    // More than the buffers of the connection hold.
    File::create(&path).unwrap().set_len(64 * 1024 * 1024).unwrap();
    let mut client = connect(proxy.address).await;
    client.send(b"GET /large HTTP/1.1\r\nHost: site.example\r\n\r\n").await;
    assert_eq!(client.head().await.unwrap().status, 200);
    File::options().write(true).open(&path).unwrap().set_len(1).unwrap();
    assert!(client.rest().await.len() < 64 * 1024 * 1024);
    assert_is(&get(proxy.address, "site.example", "/16385").await, 16_385);
}
