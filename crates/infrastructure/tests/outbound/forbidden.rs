//! No connection is made that the operator does not permit. Each test counts connections, and shows by
//! another policy that they would be counted.

use std::{net::TcpStream, sync::Arc, thread, time::Duration};

use launchway_domain::{
    network::{AllowedEndpoint, OutboundPolicy},
    notifications::{MailSecurity, Mailer as _, OutboundGuard as _, SendError, WebhookSender as _},
};
use launchway_infrastructure::outbound::Outbound;
use launchway_testkit::external::{Conversation, Receiver};

use crate::arena::{Names, Way, mail_by, post_to};

/// Spellings of this machine's own address, and names for it.
const THIS_MACHINE: [&str; 28] = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7F.1",
    "0177.0.0.1",
    "0177.1",
    "017700000001",
    "127.0.0.1.",
    "１２７.０.０.１",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "0.0.0.0",
    "0",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::]",
    "localhost",
    "LOCALHOST.",
    "private.example",
    "private-v6.example",
    "mapped.example",
    "zero.example",
    "private-and-public.example",
    "public-and-private.example",
];

fn names() -> Arc<Names> {
    Names::new(&[
        ("localhost", &[&["127.0.0.1"]]),
        ("localhost.", &[&["::1"]]),
        ("private.example", &[&["127.0.0.1"]]),
        ("private-v6.example", &[&["::1"]]),
        ("mapped.example", &[&["::ffff:127.0.0.1"]]),
        ("zero.example", &[&["0.0.0.0"]]),
        ("private-and-public.example", &[&["127.0.0.1", "1.1.1.1"]]),
        ("public-and-private.example", &[&["1.1.1.1", "127.0.0.1"]]),
    ])
}

/// Allows public addresses only.
fn guarded() -> Outbound {
    Way::to(&[], 0).with_names(names()).within(Duration::from_secs(2)).open()
}

/// The control: allows this machine too.
fn unguarded(port: u16) -> Outbound {
    let this_machine = ["127.0.0.0/8", "0.0.0.0/8", "::1/128", "::/128"];
    Way::to(&this_machine, port).with_names(names()).open()
}

/// All but the name whose first address is public: a connection would go there.
fn reachable() -> impl Iterator<Item = &'static str> {
    THIS_MACHINE.into_iter().filter(|host| *host != "public-and-private.example")
}

/// Returns the number of connections before one that is made now, which proves that they are counted.
fn connections_before_now(receiver: &Receiver) -> usize {
    let known = receiver.connections();
    let _control = TcpStream::connect(("127.0.0.1", receiver.port)).unwrap();
    while receiver.connections() == known {
        thread::sleep(Duration::from_millis(2));
    }
    receiver.connections() - 1
}

/// Accepts every mail.
fn take_mail(conversation: &mut Conversation) {
    conversation.say("220 here\r\n");
    while let Some(line) = conversation.read_line() {
        match line.as_str() {
            "DATA" => conversation.say("354 go on\r\n"),
            "." => conversation.say("250 taken\r\n"),
            line if ["EHLO", "MAIL", "RCPT", "QUIT"].iter().any(|verb| line.starts_with(verb)) => {
                conversation.say("250 here\r\n")
            }
            _ => true,
        };
    }
}

#[tokio::test]
async fn no_webhook_reaches_this_machine_however_it_is_written() {
    let receiver = Receiver::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let url = |scheme, host| format!("{scheme}://{host}:{}/", receiver.port);
    for host in THIS_MACHINE {
        for scheme in ["http", "https"] {
            let sent = guarded().post(post_to(url(scheme, host))).await;
            assert!(matches!(sent, Err(SendError::Forbidden(_))), "{host}: {sent:?}");
        }
    }
    let refused = connections_before_now(&receiver);
    for host in reachable() {
        let sent = unguarded(receiver.port).post(post_to(url("http", host))).await;
        assert_eq!(sent.as_ref().map(|answer| answer.status), Ok(200), "{host}");
    }
    let without = connections_before_now(&receiver) - refused - 1;
    println!("webhooks to {} hosts: {refused} connections; without the guard: {without}", THIS_MACHINE.len());
    assert_eq!((refused, without), (0, THIS_MACHINE.len() - 1));
}

#[tokio::test]
async fn no_mail_reaches_this_machine_however_it_is_written() {
    let receiver = Receiver::talking(take_mail);
    for host in THIS_MACHINE {
        for &security in MailSecurity::ALL {
            let sent = guarded().send(mail_by(host, receiver.port, security)).await;
            assert!(matches!(sent, Err(SendError::Forbidden(_))), "{host}: {sent:?}");
        }
    }
    let refused = connections_before_now(&receiver);
    // Without encryption only what is allowed is spoken to, and the public address is not.
    let is_allowed = |host: &&str| *host != "private-and-public.example";
    for host in reachable().filter(is_allowed) {
        let mail = mail_by(host, receiver.port, MailSecurity::None);
        assert_eq!(unguarded(receiver.port).send(mail).await, Ok(250.into()), "{host}");
    }
    let without = connections_before_now(&receiver) - refused - 1;
    println!("mail to {} hosts: {refused} connections; without the guard: {without}", THIS_MACHINE.len());
    assert_eq!((refused, without), (0, THIS_MACHINE.len() - 2));
}

#[tokio::test]
async fn a_host_is_refused_beforehand_as_it_would_be_later() {
    let receiver = Receiver::answering("");
    let port = receiver.port;
    for host in THIS_MACHINE {
        let checked = guarded().check(host, port).await;
        assert!(matches!(checked, Err(SendError::Forbidden(_))), "{host}: {checked:?}");
        assert!(guarded().check_unencrypted(host, port).await.is_err(), "{host}");
        assert_eq!(unguarded(port).check(host, port).await, Ok(()), "{host}");
    }
    assert_eq!(connections_before_now(&receiver), 0, "asking connects to nobody");
    assert_eq!(guarded().check("1.1.1.1", 443).await, Ok(()));
    assert!(guarded().check_unencrypted("1.1.1.1", 25).await.is_err());
    assert_eq!(unguarded(port).check_unencrypted("127.0.0.1", port).await, Ok(()));
    assert_eq!(guarded().check("not-yet.example", 443).await, Ok(()), "each message asks again");
}

fn both(one: u16, other: u16) -> OutboundPolicy {
    let allow = |port| AllowedEndpoint { network: "127.0.0.1/32".parse().unwrap(), port };
    OutboundPolicy::allowing(vec![allow(one), allow(other)])
}

#[tokio::test]
async fn redirects_are_answers_and_lead_nowhere() {
    let target = Receiver::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    for status in [301, 302, 303, 307, 308] {
        let receiver = Receiver::answering(format!(
            "HTTP/1.1 {status} Elsewhere\r\nLocation: http://127.0.0.1:{}/\r\nContent-Length: 0\r\n\r\n",
            target.port
        ));
        // Not even to where one may go.
        let mut way = Way::here(receiver.port);
        way.policy = both(receiver.port, target.port);
        let sent = way.open().post(post_to(format!("http://127.0.0.1:{}/", receiver.port))).await;
        assert_eq!((sent.unwrap().status, receiver.connections()), (status, 1));
    }
    let followed = connections_before_now(&target);
    println!("5 redirects: {followed} connections");
    assert_eq!(followed, 0);
}

#[tokio::test]
async fn a_rebinding_receiver_is_resolved_once_and_rejected() {
    let inside = Receiver::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let outside = Receiver::talking_at("127.0.0.2", inside.port, |conversation| {
        conversation.read_request();
        conversation.say("HTTP/1.1 204 No Content\r\n\r\n");
    });
    let url = format!("http://rebinding.example:{}/", inside.port);
    let rebinding = || Names::new(&[("rebinding.example", &[&["127.0.0.2"], &["127.0.0.1"]])]);

    let names = rebinding();
    let outbound = Way::to(&["127.0.0.2/32"], inside.port).with_names(Arc::clone(&names)).open();
    assert_eq!(outbound.post(post_to(&url)).await.unwrap().status, 204);
    assert_eq!((names.asked(), outside.connections()), (1, 1), "what was checked is what was called");
    let sent = outbound.post(post_to(&url)).await;
    assert!(matches!(sent, Err(SendError::Forbidden(_))), "{sent:?}");

    let names = rebinding();
    let outbound = Way::to(&["127.0.0.2/32"], inside.port).with_names(Arc::clone(&names)).open();
    assert_eq!(outbound.check("rebinding.example", inside.port).await, Ok(()));
    assert!(outbound.post(post_to(&url)).await.is_err(), "what was said beforehand is not relied on");
    let refused = connections_before_now(&inside);

    let open = Way::here(inside.port).with_names(rebinding()).open();
    assert_eq!(open.check("rebinding.example", inside.port).await, Ok(()));
    assert_eq!(open.post(post_to(&url)).await.unwrap().status, 200);
    let without = connections_before_now(&inside) - refused - 1;
    println!("a rebinding webhook: {refused} connections; without the guard: {without}");
    assert_eq!((refused, without), (0, 1));
}

#[tokio::test]
async fn a_rebinding_mail_server_is_resolved_once_and_rejected() {
    let inside = Receiver::talking(take_mail);
    let outside = Receiver::talking_at("127.0.0.2", inside.port, take_mail);
    let rebinding = || Names::new(&[("rebinding.example", &[&["127.0.0.2"], &["127.0.0.1"]])]);
    let mail = || mail_by("rebinding.example", inside.port, MailSecurity::None);

    let names = rebinding();
    let outbound = Way::to(&["127.0.0.2/32"], inside.port).with_names(Arc::clone(&names)).open();
    assert_eq!(outbound.send(mail()).await, Ok(250.into()));
    assert_eq!((names.asked(), outside.connections()), (1, 1), "what was checked is what was called");
    assert!(matches!(outbound.send(mail()).await, Err(SendError::Forbidden(_))));
    let refused = connections_before_now(&inside);

    let open = Way::here(inside.port).with_names(rebinding()).open();
    assert_eq!((open.send(mail()).await, open.send(mail()).await), (Ok(250.into()), Ok(250.into())));
    let without = connections_before_now(&inside) - refused - 1;
    println!("a rebinding mail server: {refused} connections; without the guard: {without}");
    assert_eq!((refused, without), (0, 1));
}

#[tokio::test]
async fn what_is_allowed_is_allowed_at_its_port_only() {
    let (allowed, other) = (Receiver::answering("HTTP/1.1 200 OK\r\n\r\n"), Receiver::answering(""));
    let outbound = Way::here(allowed.port).open();
    let url = |port| format!("http://127.0.0.1:{port}/");
    assert_eq!(outbound.post(post_to(url(allowed.port))).await.unwrap().status, 200);
    assert!(matches!(outbound.post(post_to(url(other.port))).await, Err(SendError::Forbidden(_))));
    assert_eq!(connections_before_now(&other), 0);
}
