//! Mail to a real server.

use launchway_domain::{
    notifications::{Mail, MailLogin, MailSecurity, Mailer as _, SendError, Sent},
    secret::Secret,
};
use launchway_infrastructure::outbound::Outbound;
use launchway_testkit::external::{MailServer, MailServerOptions, Safety, TakenMail};

use crate::arena::{Way, error_of, mail_by};

/// A server on this machine without encryption, which the operator allows.
struct Post {
    server: MailServer,
    outbound: Outbound,
}

impl Post {
    fn open(options: &MailServerOptions) -> Self {
        let server = MailServer::start(options);
        let outbound = Way::here(server.port).open();
        Self { server, outbound }
    }

    fn mail(&self) -> Mail {
        mail_by("127.0.0.1", self.server.port, MailSecurity::None)
    }

    async fn send(&self, mail: Mail) -> Result<Sent, SendError> {
        self.outbound.send(mail).await
    }

    /// Sends a mail, and returns it as the server received it.
    async fn deliver(&self, mail: Mail) -> TakenMail {
        assert_eq!(self.send(mail).await, Ok(250.into()));
        self.server.wait_for(1).remove(0)
    }
}

fn plain() -> MailServerOptions {
    MailServerOptions::new(Safety::None)
}

pub(crate) fn login(name: &str, password: &str) -> Option<MailLogin> {
    Some(MailLogin { username: name.parse().unwrap(), password: Secret::new(password.to_owned()) })
}

#[tokio::test]
async fn a_mail_arrives_as_it_was_given() {
    let post = Post::open(&plain());
    let mut mail = post.mail();
    mail.to.push("grace@example.org".parse().unwrap());
    let taken = post.deliver(mail).await;
    assert_eq!(taken.hello, "[127.0.0.1]");
    assert_eq!((taken.from.as_str(), taken.login.as_str()), ("launchway@example.com", ""));
    assert_eq!(taken.to, ["ada@example.com", "grace@example.org"]);
    for (name, value) in [
        ("From", "Launchway <launchway@example.com>"),
        ("To", "ada@example.com, grace@example.org"),
        ("Subject", "shop was deployed"),
        ("Message-ID", "<msg_1@example.com>"),
        ("Content-Type", "text/plain; charset=\"utf-8\""),
        ("MIME-Version", "1.0"),
        ("Auto-Submitted", "auto-generated"),
    ] {
        assert_eq!(taken.header(name), Some(value), "{name}");
    }
    assert!(taken.header("Date").is_some());
    assert_eq!(taken.headers.len(), 9, "{:?}", taken.headers);
    assert_eq!(taken.text, "It is live.\n");
}

#[tokio::test]
async fn letters_of_every_script_arrive() {
    let post = Post::open(&plain());
    let mut mail = post.mail();
    mail.subject = format!("Grüße 🚀 {}", "наступне ".repeat(20)).trim().to_owned();
    mail.from.0 = "Zoë \"the\" <Müller>, 二".parse().unwrap();
    mail.text = "naïve – 二\n\n🚀\n".to_owned();
    let taken = post.deliver(mail.clone()).await;
    assert_eq!(taken.header("Subject"), Some(mail.subject.as_str()));
    let from = taken.header("From").unwrap();
    assert!(
        from.ends_with("<launchway@example.com>") && from.contains("Zoë") && from.contains("Müller"),
        "{from}"
    );
    assert_eq!(taken.text, mail.text);
    assert!(taken.parameters.is_empty(), "what travels is ASCII: {:?}", taken.parameters);
}

#[tokio::test]
async fn lines_of_dots_and_long_lines_arrive() {
    let post = Post::open(&plain());
    let mut mail = post.mail();
    let long = "x".repeat(5000);
    mail.text = format!(".\n..\n.hidden\n\nFrom me\nMAIL FROM:<eve@example.com>\n{long}\nüber {long}\n.\n");
    let taken = post.deliver(mail.clone()).await;
    assert_eq!(taken.text, mail.text);
    assert!(taken.longest_line <= 998, "{}", taken.longest_line);
}

#[tokio::test]
async fn nothing_that_is_given_becomes_a_header_or_a_command() {
    let post = Post::open(&plain());
    let mut mail = post.mail();
    let evil = "\r\nBcc: eve@example.com\r\n\r\nbody\r\n.\r\nMAIL FROM:<eve@example.com>\r\n";
    mail.subject = format!("shop{evil}ü{evil}");
    mail.message_id = format!("msg_1{evil}");
    mail.text = format!("text{evil}RCPT TO:<eve@example.com>\n");
    let taken = post.deliver(mail).await;
    assert_eq!(taken.header("Bcc"), None);
    assert_eq!(taken.headers.len(), 9, "{:?}", taken.headers);
    assert_eq!(taken.to, ["ada@example.com"]);
    assert!(taken.header("Subject").unwrap().starts_with("shop Bcc: eve@example.com body . MAIL FROM"));
    assert!(
        taken.text.ends_with("MAIL FROM:<eve@example.com>\nRCPT TO:<eve@example.com>\n"),
        "{}",
        taken.text
    );
    assert_eq!(post.server.taken().len(), 1);
}

#[tokio::test]
async fn who_has_to_log_in_does_by_either_way() {
    for excluded in [vec![], vec!["PLAIN"], vec!["LOGIN"]] {
        let known = Some(("ada".to_owned(), "pässword".to_owned()));
        let post = Post::open(&MailServerOptions { login: known, excluded: excluded.clone(), ..plain() });
        let mail = Mail { login: login("ada", "pässword"), ..post.mail() };
        assert_eq!(post.deliver(mail).await.login, "ada", "without {excluded:?}");
        let wrong = post.send(Mail { login: login("ada", "hunter22"), ..post.mail() }).await;
        let Err(SendError::Answered { code: 535, text }) = wrong else { panic!("{wrong:?}") };
        assert!(!text.contains("hunter22"), "{text}");
        let nobody = post.send(post.mail()).await;
        assert!(matches!(nobody, Err(SendError::Answered { code: 530, .. })), "{nobody:?}");
        assert_eq!(post.server.taken().len(), 1);
    }
}

#[tokio::test]
async fn permanent_rejections_skip_a_recipient_temporary_fail_all() {
    let refused_recipients =
        vec![("gone@example.com", "550 5.1.1 no such user"), ("full@example.com", "452 4.2.2 mailbox full")];
    let post = Post::open(&MailServerOptions { refused_recipients, ..plain() });
    let to = |addresses: &[&str]| Mail {
        to: addresses.iter().map(|address| address.parse().unwrap()).collect(),
        ..post.mail()
    };
    let put_off = post.send(to(&["grace@example.com", "full@example.com"])).await;
    let text = "full@example.com: 4.2.2 mailbox full".to_owned();
    assert_eq!(put_off, Err(SendError::Answered { code: 452, text }));
    let refused = post.send(to(&["gone@example.com"])).await;
    let text = "gone@example.com: 5.1.1 no such user".to_owned();
    assert_eq!(refused, Err(SendError::Answered { code: 550, text }));
    assert_eq!(post.server.taken(), []);

    let some = ["gone@example.com", "x@1.2.3.4", "jürgen@example.com", "grace@example.com"];
    let sent = post.send(to(&some)).await.unwrap();
    assert_eq!(
        sent.left_out,
        [
            "`x@1.2.3.4` is not a valid mail address",
            "jürgen@example.com: 127.0.0.1 takes only addresses in plain letters",
            "the server answered 550: gone@example.com: 5.1.1 no such user",
        ]
    );
    let taken = post.server.taken();
    assert_eq!(taken.iter().map(|mail| mail.to.as_slice()).collect::<Vec<_>>(), [["grace@example.com"]]);
}

#[tokio::test]
async fn a_refused_text_is_reported_with_its_code() {
    for (refused_text, code, text) in
        [("451 4.3.0 later", 451, "4.3.0 later"), ("554 5.7.1 spam\x07", 554, "5.7.1 spam")]
    {
        let post = Post::open(&MailServerOptions { refused_text: Some(refused_text), ..plain() });
        let refused = post.send(post.mail()).await;
        assert_eq!(refused, Err(SendError::Answered { code, text: text.to_owned() }));
    }
}

#[tokio::test]
async fn an_address_in_another_script_needs_a_server_that_takes_it() {
    let foreign = |post: &Post| Mail { to: vec!["jürgen@müller.example".parse().unwrap()], ..post.mail() };
    let post = Post::open(&plain());
    let sent = post.send(foreign(&post)).await;
    assert_eq!(
        error_of(sent),
        "No recipient can receive mail from 127.0.0.1: jürgen@xn--mller-kva.example: 127.0.0.1 takes only addresses in plain letters"
    );
    let domain = Mail { to: vec!["ada@müller.example".parse().unwrap()], ..post.mail() };
    assert_eq!(post.deliver(domain).await.to, ["ada@xn--mller-kva.example"]);
    let post = Post::open(&MailServerOptions { takes_foreign_addresses: true, ..plain() });
    let taken = post.deliver(foreign(&post)).await;
    assert_eq!(taken.to, ["jürgen@xn--mller-kva.example"]);
    assert_eq!(taken.parameters, ["SMTPUTF8", "BODY=8BITMIME"]);
}

#[tokio::test]
async fn plaintext_mail_needs_an_allowed_server() {
    let server = MailServer::start(&plain());
    // The operator did not allow the server's network.
    let outbound = Way::to(&["10.0.0.0/8"], server.port).open();
    let mail = Mail { login: login("ada", "pw"), ..mail_by("127.0.0.1", server.port, MailSecurity::None) };
    let sent = outbound.send(mail).await;
    let Err(SendError::Forbidden(message)) = sent else { panic!("{sent:?}") };
    assert!(
        message.contains("without encryption") && message.contains("LAUNCHWAY_OUTBOUND_ALLOW"),
        "{message}"
    );
    assert_eq!(server.taken(), []);
    // An address that is everyone's is not enough: it is refused before anybody is called.
    let sent = outbound.send(mail_by("1.1.1.1", 25, MailSecurity::None)).await;
    assert!(matches!(sent, Err(SendError::Forbidden(_))), "{sent:?}");
}
