//! Messages by HTTP.

use std::time::{Duration, SystemTime};

use launchway_domain::notifications::{Answer, WebhookSender as _};
use launchway_infrastructure::outbound::Trust;
use launchway_testkit::external::{Authority, Identity, Receiver};

use crate::arena::{Names, Way, error_of, post_to, run_again};

async fn answer_to(text: impl Into<String>) -> Answer {
    let receiver = Receiver::answering(text);
    let outbound = Way::here(receiver.port).open();
    outbound.post(post_to(format!("http://127.0.0.1:{}/hook", receiver.port))).await.unwrap()
}

#[tokio::test]
async fn a_message_arrives_as_it_was_given() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let outbound = Way::here(receiver.port).open();
    let url = format!("http://127.0.0.1:{}/hook?a=b", receiver.port);
    let mut post = post_to(&url);
    post.headers = vec![("webhook-id", "msg_1".to_owned()), ("webhook-timestamp", "1614265330".to_owned())];
    post.body = r#"{"text":"Grüße 🚀"}"#.to_owned();
    let answer = outbound.post(post.clone()).await.unwrap();
    assert_eq!(answer, Answer { status: 200, retry_after: None, excerpt: "ok".to_owned() });
    let request = receiver.requests().remove(0);
    assert_eq!((request.line.as_str(), &request.body), ("POST /hook?a=b HTTP/1.1", &post.body));
    let mut headers = request.headers;
    headers.sort();
    let expected = [
        ("accept", "*/*".to_owned()),
        ("connection", "close".to_owned()),
        ("content-length", post.body.len().to_string()),
        ("content-type", "application/json".to_owned()),
        ("host", format!("127.0.0.1:{}", receiver.port)),
        ("user-agent", format!("Launchway/{}", env!("CARGO_PKG_VERSION"))),
        ("webhook-id", "msg_1".to_owned()),
        ("webhook-timestamp", "1614265330".to_owned()),
    ];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value)));
}

#[tokio::test]
async fn a_proxy_of_the_environment_is_not_asked() {
    let proxy = Receiver::answering("HTTP/1.1 200 OK\r\n\r\n");
    let address = format!("http://127.0.0.1:{}", proxy.port);
    let names = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
    let environment = names.map(|name| (name, address.as_str()));
    run_again("webhooks::a_message_arrives_as_it_was_given", &environment);
    assert_eq!(proxy.connections(), 0);
}

#[tokio::test]
async fn each_message_has_a_connection_of_its_own_and_no_cookies() {
    let receiver = Receiver::talking(|conversation| {
        while conversation.read_request().is_some() {
            conversation.say("HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let outbound = Way::here(receiver.port).open();
    for _ in 0..3 {
        outbound.post(post_to(format!("http://127.0.0.1:{}/", receiver.port))).await.unwrap();
    }
    assert_eq!(receiver.connections(), 3);
    assert!(receiver.requests().iter().all(|request| request.header("cookie").is_none()));
}

#[tokio::test]
async fn every_status_is_an_answer() {
    for status in [200, 202, 204, 301, 400, 401, 404, 410, 429, 500, 503, 599] {
        let answer = answer_to(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")).await;
        assert_eq!(answer, Answer { status, retry_after: None, excerpt: String::new() });
    }
}

#[tokio::test]
async fn a_receiver_may_ask_for_time_in_seconds_or_by_a_date() {
    let answer = answer_to("HTTP/1.1 429 X\r\nRetry-After: 17\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!((answer.status, answer.retry_after), (429, Some(Duration::from_secs(17))));
    let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
    let answer =
        answer_to(format!("HTTP/1.1 503 X\r\nretry-after: {date}\r\nContent-Length: 0\r\n\r\n")).await;
    let delay = answer.retry_after.unwrap();
    assert!((90..=100).contains(&delay.as_secs()), "{delay:?}");
    let answer = answer_to("HTTP/1.1 503 X\r\nRetry-After: later\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(answer.retry_after, None);
}

#[tokio::test]
async fn what_a_receiver_says_is_shown_on_one_short_line() {
    let said = "<h1>no</h1>\r\n\x1b[2J  \tgo\u{202e} away";
    let answer = format!("HTTP/1.1 500 X\r\nContent-Length: {}\r\n\r\n{said}", said.len());
    assert_eq!(answer_to(answer).await.excerpt, "<h1>no</h1> [2J go away");
    let long = "ü".repeat(1000);
    let answer = format!("HTTP/1.1 500 X\r\nContent-Length: {}\r\n\r\n{long}", long.len());
    assert_eq!(answer_to(answer).await.excerpt, "ü".repeat(Answer::LONGEST));
    let chunked = "HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\n def\r\n0\r\n\r\n";
    assert_eq!(answer_to(chunked).await.excerpt, "abc def");
}

#[tokio::test]
async fn a_receiver_that_repeats_the_address_does_not_give_it_away() {
    let receiver = Receiver::talking(|conversation| {
        let request = conversation.read_request().unwrap();
        let said = format!("Cannot {}", request.line);
        conversation.say(format!("HTTP/1.1 404 X\r\nContent-Length: {}\r\n\r\n{said}", said.len()));
    });
    let outbound = Way::here(receiver.port).open();
    let url = format!("http://127.0.0.1:{}/services/T0001/aVeryLongSecretPart", receiver.port);
    let answer = outbound.post(post_to(url)).await.unwrap();
    assert_eq!(answer.excerpt, "Cannot POST [secret] HTTP/1.1");
}

/// A TLS receiver with the certificate `identity`.
fn encrypted(identity: &Identity) -> Receiver {
    Receiver::talking_in_secret(identity.shown_by_a_server(), |conversation| {
        conversation.read_request();
        conversation.say("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret");
    })
}

#[tokio::test]
async fn a_receiver_proves_its_name_wherever_the_name_leads() {
    let authority = Authority::new();
    let names = || Names::new(&[("hooks.example", &[&["127.0.0.1"]]), ("hooks.example.", &[&["::1"]])]);
    let receiver = encrypted(&authority.vouch_for(&["hooks.example"]));
    for host in ["hooks.example", "hooks.example."] {
        let outbound = Way::here(receiver.port).trusting(authority.pem()).with_names(names()).open();
        let answer = outbound.post(post_to(format!("https://{host}:{}/", receiver.port))).await.unwrap();
        assert_eq!((answer.status, answer.excerpt.as_str()), (200, "secret"), "{host}");
    }
    let receiver = encrypted(&authority.vouch_for(&["127.0.0.1", "::1"]));
    for host in ["127.0.0.1", "[::1]"] {
        let outbound = Way::here(receiver.port).trusting(authority.pem()).open();
        let answer = outbound.post(post_to(format!("https://{host}:{}/", receiver.port))).await.unwrap();
        assert_eq!(answer.status, 200, "{host}");
    }
}

#[tokio::test]
async fn who_does_not_prove_its_name_gets_nothing() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let names = &["hooks.example"];
    for (identity, reason) in [
        (stranger.vouch_for(names), "has an issuer that this machine does not trust"),
        (authority.vouched_for(names), "has expired"),
        (authority.vouch_for(&["other.example"]), "is for another name"),
    ] {
        let receiver = encrypted(&identity);
        let hosts = Names::new(&[("hooks.example", &[&["127.0.0.1"]])]);
        let outbound = Way::here(receiver.port).trusting(authority.pem()).with_names(hosts).open();
        let sent = outbound.post(post_to(format!("https://hooks.example:{}/", receiver.port))).await;
        assert_eq!(
            error_of(sent),
            format!("hooks.example failed TLS verification: its certificate {reason}")
        );
        assert_eq!(receiver.requests(), []);
    }
}

#[tokio::test]
async fn who_does_not_encrypt_gets_nothing() {
    let receiver = Receiver::talking(|conversation| {
        conversation.say("HTTP/1.1 400 Bad Request\r\n\r\n");
        conversation.read_request();
    });
    let outbound = Way::here(receiver.port).open();
    let sent = outbound.post(post_to(format!("https://127.0.0.1:{}/", receiver.port))).await;
    assert_eq!(error_of(sent), "the TLS handshake with 127.0.0.1 failed");
    assert!(receiver.requests().is_empty());
}

/// The URL of a receiver whose certificate authority is only in the environment.
const RECEIVER: &str = "LAUNCHWAY_TEST_RECEIVER";

#[tokio::test]
async fn an_authority_of_the_operator_is_trusted() {
    if let Ok(url) = std::env::var(RECEIVER) {
        let port = url.rsplit(':').next().unwrap().trim_end_matches('/').parse().unwrap();
        let mut way = Way::here(port);
        way.trust = Trust::of_this_machine();
        assert_eq!(way.open().post(post_to(url)).await.unwrap().status, 200);
        return;
    }
    let authority = Authority::new();
    let receiver = encrypted(&authority.vouch_for(&["127.0.0.1"]));
    let url = format!("https://127.0.0.1:{}/", receiver.port);
    let mut way = Way::here(receiver.port);
    way.trust = Trust::of_this_machine();
    let sent = way.open().post(post_to(&url)).await;
    assert!(error_of(sent).ends_with("has an issuer that this machine does not trust"));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, authority.pem()).unwrap();
    let path = file.path().to_str().unwrap();
    let environment = [("SSL_CERT_FILE", path), (RECEIVER, url.as_str())];
    run_again("webhooks::an_authority_of_the_operator_is_trusted", &environment);
    assert_eq!(receiver.requests().len(), 1);
}
