//! The headers that an application and a client receive.

use crate::{
    application::scripted,
    forward::{head_upstream, pair},
    process::proxy_with,
};

fn lines(head: &str) -> Vec<&str> {
    let mut lines: Vec<_> = head.trim_end().lines().collect();
    lines[1..].sort_unstable();
    lines
}

#[tokio::test]
async fn an_application_hears_who_asks_and_what() {
    let (proxy, mut application) = pair().await;
    let (head, ..) = head_upstream(&proxy, &mut application, "Accept: */*\r\nX-Own: 1\r\nX-Own: 2\r\n").await;
    assert_eq!(
        lines(&head),
        [
            "get /a?b=c http/1.1",
            "accept: */*",
            "forwarded: for=127.0.0.1;proto=http",
            "host: a.example:8000",
            "x-forwarded-for: 127.0.0.1",
            "x-forwarded-host: a.example:8000",
            "x-forwarded-proto: http",
            "x-own: 1",
            "x-own: 2",
        ]
    );
}

const FROM_A_FRONT: &str = "X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 5.6.7.8\r\nX-Forwarded-Proto: https\r\n\
    X-Forwarded-Host: b.example\r\nForwarded: for=1.2.3.4\r\nX-Real-IP: 1.2.3.4\r\nX-Forwarded-Port: 443\r\n\
    X_Forwarded_For: 9.9.9.9\r\n";

#[tokio::test]
async fn a_stranger_cannot_say_for_whom_it_asks() {
    let (proxy, mut application) = pair().await;
    let (head, ..) = head_upstream(&proxy, &mut application, FROM_A_FRONT).await;
    assert_eq!(
        lines(&head),
        [
            "get /a?b=c http/1.1",
            "forwarded: for=127.0.0.1;proto=http",
            "host: a.example:8000",
            "x-forwarded-for: 127.0.0.1",
            "x-forwarded-host: a.example:8000",
            "x-forwarded-proto: http",
        ]
    );
}

#[tokio::test]
async fn trusts_only_the_forwarding_headers_that_a_front_sets_itself() {
    let application = scripted().await;
    let proxy = proxy_with(|settings| settings.trusted = vec!["127.0.0.0/8".parse().unwrap()]).await;
    proxy.route_to("a", application.address).await;
    let mut application = application;
    let (head, ..) = head_upstream(&proxy, &mut application, FROM_A_FRONT).await;
    assert_eq!(
        lines(&head),
        [
            "get /a?b=c http/1.1",
            "host: a.example:8000",
            "x-forwarded-for: 1.2.3.4, 5.6.7.8, 127.0.0.1",
            "x-forwarded-host: b.example",
            "x-forwarded-proto: https",
        ]
    );
}

#[tokio::test]
async fn what_is_about_the_connection_stays_on_it() {
    let (proxy, mut application) = pair().await;
    let of_the_connection = "Connection: keep-alive, X-Secret, Host, Content-Length\r\nConnection: x-other\r\n\
        X-Secret: 1\r\nX-Other: 2\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: gzip\r\n\
        Proxy-Authorization: Basic eA==\r\nUpgrade: websocket\r\nExpect: 100-continue\r\n";
    let (head, mut client, mut upstream) = head_upstream(&proxy, &mut application, of_the_connection).await;
    let own = ["get /a", "host:", "x-forwarded-", "forwarded:"];
    let rest: Vec<_> =
        lines(&head).into_iter().filter(|line| !own.iter().any(|own| line.starts_with(own))).collect();
    assert_eq!(rest, [""; 0]);
    assert!(head.contains("host: a.example"));
    let answer = "HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\n\
        Proxy-Authenticate: Basic\r\nUpgrade: h2\r\nX-End: 2\r\nContent-Length: 2\r\n\r\nok";
    upstream.send(answer.as_bytes()).await;
    let answer = client.answer().await.unwrap();
    let names: Vec<_> = answer.head.lines().filter_map(|line| Some(line.split_once(':')?.0)).collect();
    assert_eq!(names, ["x-end", "content-length", "connection", "date"]);
    assert_eq!((answer.text(), answer.header("connection")), ("ok", Some("close")));
}
