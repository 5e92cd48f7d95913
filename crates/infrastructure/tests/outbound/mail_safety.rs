//! If encryption is configured, nothing is sent without it.

use std::sync::{Arc, Mutex};

use launchway_domain::notifications::{Mail, MailSecurity, Mailer as _, SendError};
use launchway_testkit::external::{
    Authority, Conversation, Identity, MailServer, MailServerOptions, Receiver, Safety,
};

use crate::{
    arena::{Names, Way, error_of, mail_by},
    mail::login,
};

/// A security setting, and the matching server.
type Encryption = (MailSecurity, fn(Identity) -> Safety);

const WAYS: [Encryption; 2] = [(MailSecurity::StartTls, Safety::StartTls), (MailSecurity::Tls, Safety::Tls)];

fn names() -> Arc<Names> {
    Names::new(&[("mail.example", &[&["127.0.0.1"]])])
}

#[tokio::test]
async fn a_server_proves_its_name_and_then_hears_the_password() {
    for (security, safety) in WAYS {
        let authority = Authority::new();
        let mut options = MailServerOptions::new(safety(authority.vouch_for(&["mail.example"])));
        options.login = Some(("ada".to_owned(), "password".to_owned()));
        let server = MailServer::start(&options);
        let outbound = Way::here(server.port).trusting(authority.pem()).with_names(names()).open();
        let mail = mail_by("mail.example", server.port, security);
        let mail = Mail { login: login("ada", "password"), ..mail };
        assert_eq!(outbound.send(mail).await, Ok(250.into()), "{security:?}");
        let taken = server.wait_for(1).remove(0);
        assert_eq!((taken.encrypted, taken.login.as_str()), (true, "ada"), "{security:?}");
        assert_eq!(taken.text, "It is live.\n");
    }
}

#[tokio::test]
async fn a_server_that_does_not_prove_its_name_hears_nothing() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let names_of_it = &["mail.example"];
    for (security, safety) in WAYS {
        for (identity, reason) in [
            (stranger.vouch_for(names_of_it), "has an issuer that this machine does not trust"),
            (authority.vouched_for(names_of_it), "has expired"),
            (authority.vouch_for(&["other.example", "127.0.0.1"]), "is for another name"),
        ] {
            let server = MailServer::start(&MailServerOptions::new(safety(identity)));
            let outbound = Way::here(server.port).trusting(authority.pem()).with_names(names()).open();
            let sent = outbound.send(mail_by("mail.example", server.port, security)).await;
            let expected = format!("mail.example failed TLS verification: its certificate {reason}");
            assert_eq!(error_of(sent), expected, "{security:?}");
            assert_eq!(server.taken(), []);
        }
    }
}

/// Plays a server, and records what it receives.
struct Played {
    receiver: Receiver,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Played {
    fn by(answer: impl Fn(&mut Conversation, &str) + Send + Sync + 'static) -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&heard);
        let receiver = Receiver::talking(move |conversation| {
            conversation.say("220 here\r\n");
            while let Some(line) = conversation.read_line() {
                notes.lock().unwrap().push(line.clone());
                answer(conversation, &line);
            }
        });
        Self { receiver, heard }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn a_server_that_offers_no_encryption_hears_nothing() {
    let played = Played::by(|conversation, _line| {
        conversation.say("250-here\r\n250 AUTH PLAIN LOGIN\r\n");
    });
    let outbound = Way::here(played.receiver.port).open();
    let mail = mail_by("127.0.0.1", played.receiver.port, MailSecurity::StartTls);
    let sent = outbound.send(Mail { login: login("ada", "password"), ..mail }).await;
    assert_eq!(
        error_of(sent),
        "127.0.0.1 does not offer encryption (STARTTLS), and nothing was said without it"
    );
    assert_eq!(played.heard(), ["EHLO [127.0.0.1]"]);
}

#[tokio::test]
async fn a_server_that_then_refuses_to_encrypt_hears_nothing() {
    let played = Played::by(|conversation, line| {
        let is_hello = line.starts_with("EHLO");
        conversation.say(if is_hello { "250-here\r\n250 STARTTLS\r\n" } else { "454 not now\r\n" });
    });
    let outbound = Way::here(played.receiver.port).open();
    let mail = mail_by("127.0.0.1", played.receiver.port, MailSecurity::StartTls);
    let sent = outbound.send(Mail { login: login("ada", "password"), ..mail }).await;
    assert_eq!(sent, Err(SendError::Answered { code: 454, text: "not now".to_owned() }));
    assert_eq!(played.heard(), ["EHLO [127.0.0.1]", "STARTTLS"]);
}

#[tokio::test]
async fn what_was_said_before_encryption_counts_for_nothing_after_it() {
    let authority = Authority::new();
    let tls = authority.vouch_for(&["127.0.0.1"]).shown_by_a_server();
    // An attacker injects responses, which would be taken for those of the server: a mail that it rejects
    // would seem accepted.
    let played = Played::by(move |conversation, line| {
        match line.split(' ').next().unwrap_or_default() {
            "EHLO" => conversation.say("250-here\r\n250 STARTTLS\r\n"),
            "STARTTLS" => {
                conversation.say("220 go on\r\n250 evil\r\n250 evil\r\n250 evil\r\n354 evil\r\n250 evil\r\n");
                conversation.encrypt(Arc::clone(&tls));
                true
            }
            "MAIL" => conversation.say("550 not you\r\n"),
            _ => conversation.say("221 bye\r\n"),
        };
    });
    let outbound = Way::here(played.receiver.port).trusting(authority.pem()).open();
    let sent = outbound.send(mail_by("127.0.0.1", played.receiver.port, MailSecurity::StartTls)).await;
    assert_eq!(sent, Err(SendError::Answered { code: 550, text: "not you".to_owned() }));
}
