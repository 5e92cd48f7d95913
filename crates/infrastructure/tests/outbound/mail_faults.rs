//! Misbehaving mail servers.

use std::{thread, time::Duration};

use launchway_domain::notifications::{Mail, MailSecurity, Mailer as _, SendError, Sent};
use launchway_testkit::external::{Conversation, Receiver};

use crate::{
    arena::{Way, error_of, mail_by, timed},
    mail::login,
};

/// The timeout of a message.
const TIME: Duration = Duration::from_millis(1500);
/// The tolerance for a busy machine.
const SLACK: Duration = Duration::from_secs(5);

/// Sends a mail to a server that behaves so. Returns the result and the time that it took.
async fn send(
    talk: impl Fn(&mut Conversation) + Send + Sync + 'static,
) -> (Result<Sent, SendError>, Duration) {
    send_within(TIME, talk).await
}

async fn send_within(
    time: Duration,
    talk: impl Fn(&mut Conversation) + Send + Sync + 'static,
) -> (Result<Sent, SendError>, Duration) {
    let receiver = Receiver::talking(talk);
    let outbound = Way::here(receiver.port).within(time).open();
    timed(outbound.send(mail_by("127.0.0.1", receiver.port, MailSecurity::None))).await
}

/// Behaves correctly until it receives `last`.
fn behave_until(last: &str, conversation: &mut Conversation) {
    if last == "connection" {
        return;
    }
    conversation.say("220 here\r\n");
    while let Some(line) = conversation.read_line() {
        if line.starts_with(last) {
            return;
        }
        match line.as_str() {
            "DATA" => conversation.say("354 go on\r\n"),
            "." => conversation.say("250 taken\r\n"),
            line if ["EHLO", "MAIL", "RCPT"].iter().any(|verb| line.starts_with(verb)) => {
                conversation.say("250 here\r\n")
            }
            _ => true,
        };
    }
}

const STAGES: [&str; 6] = ["connection", "EHLO", "MAIL", "RCPT", "DATA", "."];

#[tokio::test]
async fn a_silent_server_times_out() {
    for stage in STAGES {
        let (sent, took) = send(move |conversation| {
            behave_until(stage, conversation);
            conversation.hang();
        })
        .await;
        assert_eq!(error_of(sent), "127.0.0.1 did not answer within 1.5s", "{stage}");
        assert!(took >= TIME && took < TIME + SLACK, "{stage}: {took:?}");
    }
}

#[tokio::test]
async fn a_server_that_drips_is_waited_for_no_longer_than_was_said() {
    for stage in ["connection", "."] {
        let (sent, took) = send(move |conversation| {
            behave_until(stage, conversation);
            while conversation.say("2") {
                thread::sleep(Duration::from_millis(20));
            }
        })
        .await;
        assert_eq!(error_of(sent), "127.0.0.1 did not answer within 1.5s", "{stage}");
        assert!(took < TIME + SLACK, "{stage}: {took:?}");
    }
}

#[tokio::test]
async fn a_server_that_goes_away_is_reported_as_that() {
    for stage in STAGES {
        let (sent, took) = send(move |conversation| behave_until(stage, conversation)).await;
        let reported = error_of(sent);
        let known = ["127.0.0.1 does not answer like a mail server", "The connection to 127.0.0.1 was lost"];
        assert!(known.contains(&reported.as_str()), "{stage}: {reported}");
        assert!(took < TIME, "{stage}: {took:?}");
    }
}

#[tokio::test]
async fn a_server_that_never_stops_talking_is_cut_off() {
    for (stage, endless) in [
        ("connection", "2".repeat(8192)),
        ("connection", "220-and on\r\n".repeat(700)),
        ("EHLO", "250-and on\r\n".repeat(700)),
        (".", "250-and on\r\n".repeat(700)),
    ] {
        let (written, counted) = std::sync::mpsc::channel();
        let (sent, took) = send_within(Duration::from_secs(15), move |conversation| {
            behave_until(stage, conversation);
            let mut said = 0;
            while conversation.say(&endless) {
                said += endless.len();
            }
            written.send(said).unwrap();
        })
        .await;
        assert_eq!(error_of(sent), "127.0.0.1 does not answer like a mail server", "{stage}");
        let kibibytes = counted.recv().unwrap() / 1024;
        println!("{stage}: cut after {took:?}, the server got rid of {kibibytes} KiB");
    }
}

#[tokio::test]
async fn every_refusal_is_reported_with_its_code() {
    for (stage, said, code, text) in [
        ("connection", "554 go away\r\n", 554, "go away"),
        ("connection", "421-too busy\r\n421 come later\r\n", 421, "too busy come later"),
        ("EHLO", "502 what?\r\n", 502, "what?"),
        ("MAIL", "450 not now\r\n", 450, "not now"),
        ("RCPT", "553 who?\r\n", 553, "ada@example.com: who?"),
        ("DATA", "503 no\r\n", 503, "no"),
        (".", "552 too large\r\n", 552, "too large"),
    ] {
        let (sent, _) = send(move |conversation| {
            behave_until(stage, conversation);
            conversation.say(said);
        })
        .await;
        assert_eq!(sent, Err(SendError::Answered { code, text: text.to_owned() }), "{stage}");
    }
}

#[tokio::test]
async fn a_mail_that_was_taken_stays_taken_whatever_comes_then() {
    let (sent, took) = send(|conversation| {
        behave_until("QUIT", conversation);
        conversation.hang();
    })
    .await;
    assert_eq!(sent, Ok(250.into()));
    assert!(took < TIME + SLACK, "{took:?}");
    let (sent, _) = send(|conversation| {
        behave_until("QUIT", conversation);
        conversation.say("554 no, I lost it\r\n");
    })
    .await;
    assert_eq!(sent, Ok(250.into()));
}

#[tokio::test]
async fn a_server_that_repeats_the_password_does_not_give_it_away() {
    let receiver = Receiver::talking(|conversation| {
        conversation.say("220 here\r\n");
        conversation.read_line();
        conversation.say("250-here\r\n250 AUTH PLAIN\r\n");
        let line = conversation.read_line().unwrap_or_default();
        conversation.say(format!("535 correct-horse is not it: {line}\r\n"));
        conversation.hang();
    });
    let outbound = Way::here(receiver.port).open();
    let mail = mail_by("127.0.0.1", receiver.port, MailSecurity::None);
    let sent = outbound.send(Mail { login: login("ada", "correct-horse"), ..mail }).await;
    let Err(SendError::Answered { code: 535, text }) = sent else { panic!("{sent:?}") };
    let encoded = data_encoding::BASE64.encode(b"\0ada\0correct-horse");
    assert!(text.starts_with("[secret] is not it"), "{text}");
    assert!(!text.contains("correct-horse") && !text.contains(&encoded), "{text}");
}

#[tokio::test]
async fn a_server_where_nobody_can_log_in_hears_no_password() {
    let (sent, _) = {
        let receiver = Receiver::talking(|conversation| behave_until("QUIT", conversation));
        let outbound = Way::here(receiver.port).within(TIME).open();
        let mail = mail_by("127.0.0.1", receiver.port, MailSecurity::None);
        timed(outbound.send(Mail { login: login("ada", "password"), ..mail })).await
    };
    assert_eq!(error_of(sent), "127.0.0.1 does not offer login with a password");
}
