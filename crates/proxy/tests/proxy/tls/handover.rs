//! The handover of the listening socket of TLS.

use std::{
    io::{IoSliceMut, Write as _},
    mem::MaybeUninit,
    os::{fd::AsFd as _, unix::net::UnixStream},
};

use launchway_proxy::Settings;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::time::timeout;

use super::client::{Authority, Load, TlsClient};
use crate::{
    application::named,
    client::{TIMEOUT, get},
    process::{Proxy, proxy_in},
};

fn with_tls(version: &str) -> impl FnOnce(&mut Settings) {
    move |settings| {
        settings.version = version.to_owned();
        settings.tls_bind = Some("127.0.0.1:0".parse().unwrap());
    }
}

async fn ended(proxy: Proxy) {
    timeout(TIMEOUT, proxy.task).await.expect("it ends").unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_handovers_under_tls_load_fail_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("proxy");
    let (authority, shop) = (Authority::new(), named("shop").await);
    let mut proxy = proxy_in(&folder, with_tls("first")).await;
    proxy.control.replace_all(Vec::new()).await.unwrap();
    proxy.route_to("shop", shop.address).await;
    proxy.control.set_certificates("1", vec![authority.certificate(&["shop.example"])]).await.unwrap();
    let load = Load::begin(&proxy, &authority, 8);
    for round in 0..5 {
        load.go_on(50).await;
        let next = proxy_in(&folder, with_tls(&format!("round {round}"))).await;
        assert_eq!(next.tls_address, proxy.tls_address);
        ended(std::mem::replace(&mut proxy, next)).await;
    }
    load.go_on(50).await;
    load.end().await;
}

#[tokio::test]
async fn tls_is_switched_on_and_off_by_a_handover() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("proxy");
    let (authority, shop) = (Authority::new(), named("shop").await);
    let plain = proxy_in(&folder, |_| {}).await;
    plain.control.replace_all(Vec::new()).await.unwrap();
    plain.route_to("shop", shop.address).await;
    let tls = proxy_in(&folder, with_tls("with TLS")).await;
    assert_eq!((tls.address, plain.tls_address), (plain.address, None));
    ended(plain).await;
    tls.control.set_certificates("1", vec![authority.certificate(&["shop.example"])]).await.unwrap();
    TlsClient::trusting(&authority).connect(&tls, "shop.example").await.unwrap();
    let plain = proxy_in(&folder, |settings| settings.version = "without TLS".to_owned()).await;
    assert_eq!((plain.address, plain.tls_address), (tls.address, None));
    assert!(TlsClient::trusting(&authority).connect(&tls, "shop.example").await.is_err());
    // Nobody is redirected to a port on which nobody listens.
    assert_eq!(get(plain.address, "shop.example", "/").await.text(), "shop");
    ended(tls).await;
}

#[tokio::test]
async fn a_successor_of_an_earlier_version_gets_one_socket() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("proxy");
    let _proxy = proxy_in(&folder, with_tls("first")).await;
    let count = |request: &'static str| {
        let mut stream = UnixStream::connect(folder.join("control.sock")).unwrap();
        tokio::task::spawn_blocking(move || {
            stream.write_all(request.as_bytes()).unwrap();
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let mut text = [0; 256];
            recvmsg(
                stream.as_fd(),
                &mut [IoSliceMut::new(&mut text)],
                &mut ancillary,
                RecvFlags::CMSG_CLOEXEC,
            )
            .unwrap();
            let messages = ancillary.drain();
            let count = |message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => descriptors.count(),
                _ => 0,
            };
            messages.map(count).sum::<usize>()
        })
    };
    assert_eq!(count("{\"ask\":\"hand_over\",\"protocol\":1}\n").await.unwrap(), 1);
    assert_eq!(count("{\"ask\":\"hand_over\",\"protocol\":1,\"with_tls\":true}\n").await.unwrap(), 2);
}
