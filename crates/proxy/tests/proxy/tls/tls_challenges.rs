//! Answers to TLS-ALPN-01 challenges (RFC 8737).

use tokio::io::AsyncReadExt as _;

use super::{
    client::{Authority, Connected, TlsClient, leaf},
    tls_proxy,
};
use crate::process::Proxy;

const ACME: &str = "acme-tls/1";

async fn connect(
    proxy: &Proxy,
    authority: &Authority,
    protocols: &[&str],
    name: &str,
) -> std::io::Result<Connected> {
    TlsClient::trusting(authority).with_alpn(protocols).connect(proxy, name).await
}

fn protocol(connected: &Connected) -> Option<&[u8]> {
    connected.stream.get_ref().1.alpn_protocol()
}

#[tokio::test]
async fn a_challenge_is_answered_in_the_handshake_and_closed() {
    let (proxy, authority) = (tls_proxy().await, Authority::new());
    let served = authority.certificate(&["shop.example"]);
    let answer = authority.certificate(&["shop.example"]);
    proxy.control.set_certificates("1", vec![served.clone()]).await.unwrap();
    assert!(connect(&proxy, &authority, &[ACME], "shop.example").await.is_err());
    proxy.control.set_challenges(Vec::new(), vec![answer.clone()]).await.unwrap();

    let mut checked = connect(&proxy, &authority, &[ACME], "shop.example").await.unwrap();
    assert_eq!(checked.certificate(), leaf(&answer));
    assert_eq!(protocol(&checked), Some(ACME.as_bytes()));
    let mut rest = Vec::new();
    checked.stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"");
    // Nobody else gets it, and other names have none.
    for protocols in [&[][..], &["http/1.1"], &[ACME, "http/1.1"]] {
        let visitor = connect(&proxy, &authority, protocols, "shop.example").await.unwrap();
        assert_eq!(visitor.certificate(), leaf(&served));
        assert_ne!(protocol(&visitor), Some(ACME.as_bytes()));
    }
    assert!(connect(&proxy, &authority, &[ACME], "blog.example").await.is_err());

    proxy.control.set_challenges(Vec::new(), Vec::new()).await.unwrap();
    assert!(connect(&proxy, &authority, &[ACME], "shop.example").await.is_err());
}

#[tokio::test]
async fn a_name_without_a_certificate_answers_a_challenge() {
    let (proxy, authority) = (tls_proxy().await, Authority::new());
    let answer = authority.certificate(&["shop.example"]);
    proxy.control.set_challenges(Vec::new(), vec![answer.clone()]).await.unwrap();
    let checked = connect(&proxy, &authority, &[ACME], "shop.example").await.unwrap();
    assert_eq!(checked.certificate(), leaf(&answer));
    assert!(connect(&proxy, &authority, &[], "shop.example").await.is_err());
}

#[tokio::test]
async fn an_answer_has_a_critical_extension() {
    let (proxy, authority) = (tls_proxy().await, Authority::new());
    proxy.control.set_challenges(Vec::new(), vec![authority.challenge("shop.example")]).await.unwrap();
    // A client other than an ACME server gets the certificate, but cannot trust it.
    let error = connect(&proxy, &authority, &[ACME], "shop.example").await.err().unwrap();
    assert!(error.to_string().starts_with("invalid peer certificate"), "{error}");
}
