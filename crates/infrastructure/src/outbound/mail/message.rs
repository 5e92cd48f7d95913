//! A mail in the format of the wire.

use launchway_domain::{
    notifications::{Mail, SendError},
    users::EmailAddress,
};
use lettre::{
    Address, Message,
    message::{
        Mailbox,
        header::{ContentType, HeaderName, HeaderValue, MIME_VERSION_1_0},
    },
};
use url::Host;

use super::super::text::one_line;

/// The longest subject, in characters.
const SUBJECT: usize = 250;

/// The envelope and the message with its headers.
pub(super) struct MimeMessage {
    pub(super) from: Address,
    pub(super) to: Vec<Address>,
    /// The recipients that were skipped, each with the reason.
    pub(super) left_out: Vec<String>,
    pub(super) text: Vec<u8>,
}

impl MimeMessage {
    pub(super) fn write(mail: &Mail) -> Result<Self, SendError> {
        let from = address(&mail.from.1)?;
        let (to, left_out): (Vec<_>, Vec<_>) = mail.to.iter().map(address).partition(Result::is_ok);
        let to: Vec<Address> = to.into_iter().flatten().collect();
        let left_out: Vec<String> =
            left_out.into_iter().filter_map(Result::err).map(|odd| odd.to_string()).collect();
        if to.is_empty() {
            let why = left_out.join("; ");
            return Err(SendError::Unreachable(format!("There are no recipients: {why}")));
        }
        let name = Some(one_line(mail.from.0.as_str(), usize::MAX)).filter(|name| !name.is_empty());
        let mut message = Message::builder()
            .from(Mailbox::new(name, from.clone()))
            .subject(one_line(&mail.subject, SUBJECT))
            .message_id(Some(message_id(&mail.message_id, &from)))
            .raw_header(HeaderValue::new(
                // Keeps vacation notices from answering it.
                HeaderName::new_from_ascii_str("Auto-Submitted"),
                "auto-generated".to_owned(),
            ))
            .header(MIME_VERSION_1_0)
            .header(ContentType::TEXT_PLAIN);
        for to in &to {
            message = message.to(Mailbox::new(None, to.clone()));
        }
        let message = message
            .body(mail.text.clone())
            .map_err(|error| SendError::Unreachable(format!("The mail cannot be written: {error}")))?;
        let mut text = message.formatted();
        if text.ends_with(b"\r\n") {
            // The terminator of a mail on the wire begins with the end of its last line.
            text.truncate(text.len() - 2);
        }
        Ok(Self { from, to, left_out, text })
    }
}

/// Parses the address, with its domain in the form of DNS.
fn address(address: &EmailAddress) -> Result<Address, SendError> {
    let text = address.as_str();
    let odd = || SendError::Unreachable(format!("`{text}` is not a valid mail address"));
    let (local, domain) = text.rsplit_once('@').ok_or_else(odd)?;
    let domain = match Host::parse(domain) {
        Ok(Host::Domain(domain)) => domain,
        _ => return Err(odd()),
    };
    Address::new(local, domain).map_err(|_invalid| odd())
}

/// Returns the message id within the sender's domain, so that it is globally unique.
fn message_id(id: &str, from: &Address) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let id: String = id.chars().filter(is_plain).collect();
    format!("<{id}@{}>", from.domain())
}

#[cfg(test)]
mod tests {
    use launchway_domain::notifications::MailSecurity;

    use super::*;

    fn mail() -> Mail {
        Mail {
            host: "mail.example.com".parse().unwrap(),
            port: 587,
            security: MailSecurity::StartTls,
            login: None,
            from: ("Launchway".parse().unwrap(), "launchway@example.com".parse().unwrap()),
            to: vec!["ada@example.com".parse().unwrap()],
            message_id: "msg_1".to_owned(),
            subject: "Deployed".to_owned(),
            text: "It is live.\n".to_owned(),
        }
    }

    fn written(mail: &Mail) -> String {
        String::from_utf8(MimeMessage::write(mail).unwrap().text).unwrap()
    }

    #[test]
    fn a_mail_has_its_headers_and_its_text() {
        let text = written(&mail());
        for line in [
            "From: Launchway <launchway@example.com>\r\n",
            "To: ada@example.com\r\n",
            "Subject: Deployed\r\n",
            "Message-ID: <msg_1@example.com>\r\n",
            "Auto-Submitted: auto-generated\r\n",
            "MIME-Version: 1.0\r\n",
            "Content-Type: text/plain; charset=utf-8\r\n",
            "Date: ",
            "\r\n\r\nIt is live.",
        ] {
            assert!(text.contains(line), "{line:?} is not in {text}");
        }
    }

    #[test]
    fn nothing_becomes_another_header() {
        let mut mail = mail();
        mail.subject = "Deployed\r\nBcc: eve@example.com\r\n\r\n<script>\u{2028}x".to_owned();
        mail.message_id = "msg_1>\r\nBcc: eve@example.com".to_owned();
        let text = written(&mail);
        assert!(text.contains("Subject: Deployed Bcc: eve@example.com <script> x\r\n"), "{text}");
        assert!(text.contains("Message-ID: <msg_1Bcceveexample.com@example.com>\r\n"), "{text}");
        assert!(!text.to_lowercase().contains("\r\nbcc:"), "{text}");
    }

    #[test]
    fn names_of_domains_are_written_as_name_servers_know_them() {
        let mut mail = mail();
        mail.to = vec!["ada@müller.de".parse().unwrap()];
        let message = MimeMessage::write(&mail).unwrap();
        assert_eq!(message.to[0].to_string(), "ada@xn--mller-kva.de");
    }

    #[test]
    fn a_mail_to_nobody_is_not_written() {
        let mut mail = mail();
        mail.to.clear();
        assert!(MimeMessage::write(&mail).is_err());
    }
}
