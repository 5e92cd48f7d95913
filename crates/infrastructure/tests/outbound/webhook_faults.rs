//! Misbehaving receivers.

use std::{thread, time::Duration};

use launchway_domain::notifications::{Answer, SendError, WebhookSender as _};
use launchway_testkit::external::{Conversation, Receiver};
use tokio::net::{TcpSocket, TcpStream};

use crate::arena::{Way, error_of, post_to, timed};

/// The timeout of a message.
const TIME: Duration = Duration::from_millis(1500);
/// The tolerance for a busy machine.
const SLACK: Duration = Duration::from_secs(5);

/// Sends a message to a receiver that behaves so. Returns the result and the time that it took.
async fn hear(
    talk: impl Fn(&mut Conversation) + Send + Sync + 'static,
) -> (Result<Answer, SendError>, Duration) {
    let receiver = Receiver::talking(talk);
    let outbound = Way::here(receiver.port).within(TIME).open();
    timed(outbound.post(post_to(format!("http://127.0.0.1:{}/", receiver.port)))).await
}

/// Sends it repeatedly until the other side closes, or the test ends. An empty text is silence.
fn drip(conversation: &mut Conversation, what: &str) {
    while conversation.say(what) {
        thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test]
async fn who_never_answers_is_waited_for_no_longer_than_was_said() {
    for (said, dripping) in [
        ("", ""),
        ("HTTP/1.1 200 OK\r\nX: ", "x"),
        ("HTTP/1.1 200 OK\r\n", "a: b\r\n"),
        ("", "HTTP/1.1 100 Continue\r\n\r\n"),
    ] {
        let (sent, took) = hear(move |conversation| {
            conversation.read_request();
            conversation.say(said);
            drip(conversation, dripping);
        })
        .await;
        assert_eq!(error_of(sent), "127.0.0.1 did not answer within 1.5s", "{said}{dripping}");
        assert!(took >= TIME && took < TIME + SLACK, "{took:?}");
    }
}

#[tokio::test]
async fn a_status_counts_although_the_rest_drips_hangs_or_breaks_off() {
    let head = "HTTP/1.1 201 Created\r\nContent-Length: 1000000\r\n\r\nbegun ";
    let (sent, took) = hear(move |conversation| {
        conversation.read_request();
        conversation.say(head);
        drip(conversation, "x");
    })
    .await;
    let answer = sent.unwrap();
    assert!(answer.status == 201 && answer.excerpt.starts_with("begun xx"), "{answer:?}");
    assert!(took >= TIME && took < TIME + SLACK, "{took:?}");
    let (sent, took) = hear(move |conversation| {
        conversation.read_request();
        conversation.say(head);
        conversation.hang();
    })
    .await;
    assert_eq!(sent.unwrap().excerpt, "begun");
    assert!(took >= TIME && took < TIME + SLACK, "{took:?}");
    let (sent, took) = hear(move |conversation| {
        conversation.read_request();
        conversation.say(head);
    })
    .await;
    assert_eq!(sent.unwrap(), Answer { status: 201, retry_after: None, excerpt: "begun".to_owned() });
    assert!(took < TIME, "{took:?}");
}

#[tokio::test]
async fn an_endless_answer_is_cut_and_not_waited_for() {
    let (written, counted) = std::sync::mpsc::channel();
    let (sent, took) = hear(move |conversation| {
        conversation.read_request();
        conversation.say("HTTP/1.1 200 OK\r\n\r\n");
        let block = "x".repeat(16 * 1024);
        let mut blocks = 0_u64;
        while conversation.say(&block) {
            blocks += 1;
        }
        written.send(blocks * 16).unwrap();
    })
    .await;
    assert_eq!(sent.unwrap().excerpt, "x".repeat(Answer::LONGEST));
    let kibibytes = counted.recv().unwrap();
    println!("64 KiB were read within {took:?}, and the receiver got rid of {kibibytes} KiB");
    // What is on the way when the connection ends was never looked at.
    assert!(took < TIME && kibibytes < 64 * 1024, "{took:?}");
}

#[tokio::test]
async fn an_invalid_answer_is_reported_as_what_it_is() {
    let (sent, _) = hear(|conversation| {
        conversation.read_request();
    })
    .await;
    assert_eq!(error_of(sent), "127.0.0.1 closed the connection before it answered");
    let (sent, _) = hear(|conversation| {
        conversation.read_request();
        conversation.say("HTTP/1.1 200 OK\r\nContent-Le");
    })
    .await;
    assert_eq!(error_of(sent), "127.0.0.1 closed the connection before it answered");
    let (sent, _) = hear(|conversation| {
        conversation.wait_for_something();
    })
    .await;
    assert_eq!(error_of(sent), "The connection to 127.0.0.1 was lost before it answered");
    let (sent, _) = hear(|conversation| {
        conversation.read_request();
        conversation.say("220 mail.example.com ESMTP\r\n");
        conversation.hang();
    })
    .await;
    assert_eq!(error_of(sent), "127.0.0.1 does not answer in HTTP");
    let (sent, _) = hear(|conversation| {
        conversation.read_request();
        conversation.say(format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(128 * 1024)));
        conversation.hang();
    })
    .await;
    assert_eq!(error_of(sent), "127.0.0.1 answers with too many headers");
}

#[tokio::test]
async fn nobody_there_is_reported_at_once() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let outbound = Way::here(port).within(TIME).open();
    let (sent, took) = timed(outbound.post(post_to(format!("http://127.0.0.1:{port}/")))).await;
    assert_eq!(error_of(sent), "127.0.0.1 does not accept connections at this port");
    assert!(took < TIME, "{took:?}");
    let outbound = Way::here(port).with_names(crate::arena::Names::new(&[])).open();
    let sent = outbound.post(post_to("https://nowhere.example/")).await;
    assert_eq!(error_of(sent), "There is no host nowhere.example, or its name server does not answer");
}

#[tokio::test]
async fn connecting_times_out_and_tries_the_next_address() {
    // Two connections fill the backlog, which is never accepted. From then on the kernel ignores new ones.
    let full = TcpSocket::new_v4().unwrap();
    full.bind("127.0.0.3:0".parse().unwrap()).unwrap();
    let listener = full.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let _waiting = (TcpStream::connect(address).await.unwrap(), TcpStream::connect(address).await.unwrap());
    let port = address.port();
    let outbound = Way::here(port).within(Duration::from_secs(15)).open();
    let (sent, took) = timed(outbound.post(post_to(format!("http://127.0.0.3:{port}/")))).await;
    println!("a connection that nobody accepts: {took:?}");
    assert_eq!(error_of(sent), "127.0.0.3 does not accept a connection within 5s");
    assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(7), "{took:?}");

    let _works = Receiver::talking_at("127.0.0.4", port, |conversation| {
        conversation.read_request();
        conversation.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    });
    let names = crate::arena::Names::new(&[("two.example", &[&["127.0.0.3", "127.0.0.4"]])]);
    let outbound = Way::here(port).with_names(names).open();
    let (sent, took) = timed(outbound.post(post_to(format!("http://two.example:{port}/")))).await;
    assert_eq!(sent.unwrap().status, 200);
    assert!(took < Duration::from_secs(5), "{took:?}");
}
