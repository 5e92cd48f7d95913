//! `Strict-Transport-Security`: over TLS, for the domain that has it, while its certificate is valid.

use super::{
    client::{Authority, LONG_AGO, TlsClient},
    tls_proxy,
};
use crate::application::scripted;

#[tokio::test]
async fn hsts_is_sent_over_tls_unless_the_application_does() {
    let (proxy, authority, mut shop) = (tls_proxy().await, Authority::new(), scripted().await);
    proxy.route_to("shop", shop.address).await;
    let mut certificate = authority.certificate(&["shop.example"]);
    certificate.hsts_seconds = Some(3_600);
    proxy.control.set_certificates("1", vec![certificate]).await.unwrap();
    let mut client = TlsClient::trusting(&authority).connect(&proxy, "shop.example").await.unwrap();
    let mut upstream: Option<crate::client::Connection> = None;
    for (own, expected) in [("", "max-age=3600"), ("Strict-Transport-Security: max-age=1\r\n", "max-age=1")] {
        client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
        let mut connection = match upstream.take() {
            Some(connection) => connection,
            None => shop.connection().await,
        };
        connection.until(b"\r\n\r\n").await.unwrap();
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{own}\r\n");
        connection.send(answer.as_bytes()).await;
        upstream = Some(connection);
        let answer = client.answer().await.unwrap();
        assert_eq!(answer.header("strict-transport-security"), Some(expected));
    }
}

#[tokio::test]
async fn hsts_is_for_one_name_and_ends_with_its_certificate() {
    let (proxy, authority) = (tls_proxy().await, Authority::new());
    let mut shop = authority.certificate(&["shop.example"]);
    shop.hsts_seconds = Some(3_600);
    let blog = authority.certificate(&["blog.example"]);
    proxy.control.set_certificates("1", vec![shop.clone(), blog.clone()]).await.unwrap();
    let client = TlsClient::trusting(&authority);
    let mut clients = Vec::new();
    for (name, expected) in [("shop.example", Some("max-age=3600")), ("blog.example", None)] {
        let mut connection = client.connect(&proxy, name).await.unwrap();
        connection.send(format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n").as_bytes()).await;
        let answer = connection.answer().await.unwrap();
        assert_eq!(answer.header("strict-transport-security"), expected, "{name}");
        clients.push(connection);
    }
    // The connection is older than the expiry.
    shop.not_after = LONG_AGO;
    proxy.control.set_certificates("2", vec![shop, blog]).await.unwrap();
    clients[0].send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
    let answer = clients[0].answer().await.unwrap();
    assert_eq!(answer.header("strict-transport-security"), None);
}
