//! A real mail server: aiosmtpd.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::Identity;

/// The file in which the server records the mails.
const NOTES: &str = "notes";

/// The encryption of the connection.
#[derive(Debug, Clone)]
pub enum Safety {
    /// Without encryption.
    None,
    /// Encrypted after `STARTTLS`, which is required.
    StartTls(Identity),
    /// Encrypted from the first byte.
    Tls(Identity),
}

/// The options of a mail server.
#[derive(Debug, Clone)]
pub struct MailServerOptions {
    /// The encryption.
    pub safety: Safety,
    /// The required user and password, if any.
    pub login: Option<(String, String)>,
    /// Authentication mechanisms that it does not offer.
    pub excluded: Vec<&'static str>,
    /// Rejected recipients, and the reply for each.
    pub refused_recipients: Vec<(&'static str, &'static str)>,
    /// The reply to every mail, if it rejects all.
    pub refused_text: Option<&'static str>,
    /// Supports SMTPUTF8.
    pub takes_foreign_addresses: bool,
}

impl MailServerOptions {
    /// Accepts everything.
    #[must_use]
    pub fn new(safety: Safety) -> Self {
        Self {
            safety,
            login: None,
            excluded: Vec::new(),
            refused_recipients: Vec::new(),
            refused_text: None,
            takes_foreign_addresses: false,
        }
    }
}

/// A mail that the server accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenMail {
    /// The name in the client's EHLO.
    pub hello: String,
    /// The connection was encrypted.
    pub encrypted: bool,
    /// The authenticated user; empty without authentication.
    pub login: String,
    /// The envelope's sender.
    pub from: String,
    /// The envelope's recipients.
    pub to: Vec<String>,
    /// The parameters of `MAIL FROM`.
    pub parameters: Vec<String>,
    /// The headers, decoded, in order.
    pub headers: Vec<(String, String)>,
    /// The text, decoded.
    pub text: String,
    /// The length of its longest line on the wire, in bytes.
    pub longest_line: u64,
}

impl TakenMail {
    /// Returns the decoded value of a header that occurs once.
    ///
    /// # Panics
    ///
    /// If it is there several times.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let value = values.next().map(|(_, value)| value.as_str());
        assert_eq!(values.next(), None, "{name} is there several times");
        value
    }
}

/// A running server, which is stopped when dropped.
#[derive(Debug)]
pub struct MailServer {
    /// Its port.
    pub port: u16,
    process: Child,
    files: TempDir,
}

impl MailServer {
    /// Starts a server.
    ///
    /// # Panics
    ///
    /// If it does not start: it needs Debian's package `python3-aiosmtpd`.
    #[must_use]
    pub fn start(options: &MailServerOptions) -> Self {
        let files = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = files.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let (safety, identity) = match &options.safety {
            Safety::None => ("none", None),
            Safety::StartTls(identity) => ("starttls", Some(identity)),
            Safety::Tls(identity) => ("tls", Some(identity)),
        };
        let options = json!({
            "safety": safety,
            "certificate": identity.map(|identity| write("certificate.pem", &identity.certificate)),
            "key": identity.map(|identity| write("key.pem", &identity.key)),
            "login": options.login.as_ref().map_or_else(Vec::new, |(name, password)| vec![name, password]),
            "excluded": options.excluded,
            "refused_recipients": options.refused_recipients.iter().copied().collect::<BTreeMap<_, _>>(),
            "refused_text": options.refused_text,
            "foreign_addresses": options.takes_foreign_addresses,
        });
        let script = write("server.py", include_str!("mail_server.py"));
        // Every user of this machine can read the arguments of a program, and these contain a password.
        let options = write("options.json", &options.to_string());
        // Debian's own, which has the package; another one may come first on the path.
        let mut process = Command::new("/usr/bin/python3")
            .args([script, options, write(NOTES, "")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let port = port.trim().parse().expect("aiosmtpd is installed");
        Self { port, process, files }
    }

    /// Returns the accepted mails: every acknowledged one is included.
    ///
    /// # Panics
    ///
    /// If its notes cannot be read.
    #[must_use]
    pub fn taken(&self) -> Vec<TakenMail> {
        let notes = std::fs::read_to_string(self.files.path().join(NOTES)).unwrap();
        // The text after the last line end is still being written.
        let whole = notes.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| read(&serde_json::from_str(line).unwrap())).collect()
    }

    /// Waits for `count` mails and returns them.
    ///
    /// # Panics
    ///
    /// If they do not come.
    #[must_use]
    pub fn wait_for(&self, count: usize) -> Vec<TakenMail> {
        let end = Instant::now() + Duration::from_secs(30);
        while self.taken().len() < count {
            assert!(Instant::now() < end, "{count} mails did not come: {:?}", self.taken());
            thread::sleep(Duration::from_millis(5));
        }
        self.taken()
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn read(note: &Value) -> TakenMail {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let texts = |value: &Value| value.as_array().unwrap().iter().map(text).collect();
    let pair = |header: &Value| (text(&header[0]), text(&header[1]));
    TakenMail {
        hello: text(&note["hello"]),
        encrypted: note["encrypted"].as_bool().unwrap(),
        login: text(&note["login"]),
        from: text(&note["from"]),
        to: texts(&note["to"]),
        parameters: texts(&note["parameters"]),
        headers: note["headers"].as_array().unwrap().iter().map(pair).collect(),
        text: text(&note["text"]),
        longest_line: note["longest_line"].as_u64().unwrap(),
    }
}
