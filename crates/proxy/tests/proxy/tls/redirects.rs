//! Requests over HTTP while TLS is on: redirects, and challenges of ACME servers.

use launchway_proxy::{certificates::Challenge, routes::Route};

use super::{client::Authority, tls_proxy};
use crate::{
    application::named,
    client::get,
    process::{proxy_with, route},
};

const CHALLENGE: &str = "/.well-known/acme-challenge/token";

fn challenge() -> Challenge {
    Challenge { token: "token".to_owned(), key_authorization: "token.thumbprint".to_owned() }
}

#[tokio::test]
async fn a_name_with_a_certificate_is_redirected_to_https() {
    let (proxy, authority, shop) = (tls_proxy().await, Authority::new(), named("shop").await);
    proxy.route_to("shop", shop.address).await;
    assert_eq!(get(proxy.address, "shop.example", "/").await.status, 200);
    proxy.control.set_certificates("1", vec![authority.certificate(&["shop.example"])]).await.unwrap();
    let answer = get(proxy.address, "Shop.Example:80", "/cart?item=1").await;
    let port = proxy.tls_address.unwrap().port();
    let expected = format!("https://shop.example:{port}/cart?item=1");
    assert_eq!((answer.status, answer.header("location")), (308, Some(expected.as_str())));
}

#[tokio::test]
async fn without_a_valid_certificate_there_is_no_redirect() {
    let (proxy, authority, shop) = (tls_proxy().await, Authority::new(), named("shop").await);
    proxy.route_to("shop", shop.address).await;
    let mut expired = authority.certificate(&["shop.example"]);
    expired.not_after = super::LONG_AGO;
    let other = authority.certificate(&["other.example"]);
    proxy.control.set_certificates("1", vec![expired, other]).await.unwrap();
    assert_eq!(get(proxy.address, "shop.example", "/").await.text(), "shop");
}

#[tokio::test]
async fn a_route_for_https_only_is_redirected_without_a_certificate() {
    let (proxy, api) = (tls_proxy().await, named("api").await);
    let only = |https_only| Route { https_only, ..route("api", api.address) };
    proxy.control.set(only(true)).await.unwrap();
    let answer = get(proxy.address, "api.example", "/").await;
    let expected = format!("https://api.example:{}/", proxy.tls_address.unwrap().port());
    assert_eq!((answer.status, answer.header("location")), (308, Some(expected.as_str())));
    proxy.control.set_challenges(vec![challenge()], Vec::new()).await.unwrap();
    assert_eq!(get(proxy.address, "api.example", CHALLENGE).await.text(), "token.thumbprint");
    proxy.control.set(only(false)).await.unwrap();
    assert_eq!(get(proxy.address, "api.example", "/").await.text(), "api");
}

#[tokio::test]
async fn a_trusted_front_is_not_redirected() {
    let proxy = proxy_with(|settings| {
        settings.tls_bind = Some("127.0.0.1:0".parse().unwrap());
        settings.trusted = vec!["127.0.0.1/32".parse().unwrap()];
    })
    .await;
    let (authority, shop) = (Authority::new(), named("shop").await);
    proxy.route_to("shop", shop.address).await;
    proxy.control.set_certificates("1", vec![authority.certificate(&["shop.example"])]).await.unwrap();
    assert_eq!(get(proxy.address, "shop.example", "/").await.text(), "shop");
}

#[tokio::test]
async fn challenges_are_answered_and_never_redirected() {
    let (proxy, authority, shop) = (tls_proxy().await, Authority::new(), named("shop").await);
    proxy.route_to("shop", shop.address).await;
    proxy.control.set_certificates("1", vec![authority.certificate(&["shop.example"])]).await.unwrap();
    // An application may have an ACME client of its own.
    assert_eq!(get(proxy.address, "shop.example", CHALLENGE).await.text(), "shop");
    proxy.control.set_challenges(vec![challenge()], Vec::new()).await.unwrap();
    for host in ["shop.example", "not-routed.example"] {
        let answer = get(proxy.address, host, CHALLENGE).await;
        assert_eq!((answer.status, answer.text()), (200, "token.thumbprint"), "{host}");
    }
    assert_eq!(get(proxy.address, "shop.example", &format!("{CHALLENGE}x")).await.text(), "shop");
    proxy.control.set_challenges(Vec::new(), Vec::new()).await.unwrap();
    assert_eq!(get(proxy.address, "shop.example", CHALLENGE).await.text(), "shop");
}
