//! The SMTP configuration of an organization.

use crate::{
    clock::Timestamp,
    ids::{OrganizationId, SmtpConfigId, UserId},
    secret::{Sealed, Secret},
    users::EmailAddress,
    value::{InvalidValue, named, plain_text, text_value},
};

named!(
    /// The transport security of a connection to a mail server.
    MailSecurity,
    "`starttls`, `tls` or `none`",
    {
        StartTls => "starttls",
        Tls => "tls",
        None => "none",
    }
);

impl MailSecurity {
    /// Returns the default port.
    #[must_use]
    pub fn usual_port(self) -> u16 {
        match self {
            Self::StartTls => 587,
            Self::Tls => 465,
            Self::None => 25,
        }
    }
}

text_value!(
    /// The name or address of a mail server. Addresses are stored in their canonical form, those of IPv6
    /// without brackets.
    MailHost,
    |raw| {
        let refused =
            || InvalidValue::text("the name or the address of a mail server, at most 253 characters", &raw);
        let bare = raw.trim();
        let bare = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(bare);
        if let Ok(address) = bare.parse::<std::net::Ipv6Addr>() {
            return Ok(address.to_string());
        }
        // Resolvers may accept unusual spellings of an address.
        match url::Host::parse(bare) {
            Ok(url::Host::Ipv4(address)) => Ok(address.to_string()),
            Ok(url::Host::Domain(name)) if is_name(&name) => Ok(name),
            _ => Err(refused()),
        }
    }
);

fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    name.len() <= 253 && name.split('.').all(is_label)
}

text_value!(
    /// The display name of the sender.
    SenderName,
    |raw| plain_text(&raw, 0, 100, "at most 100 characters on one line")
);

impl Default for SenderName {
    fn default() -> Self {
        Self("Launchway".to_owned())
    }
}

text_value!(
    /// The user name at a mail server.
    MailUsername,
    |raw| plain_text(&raw, 1, 255, "1 to 255 characters on one line")
);

/// The recipients of an organization's mail; empty for its admins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recipients(Vec<EmailAddress>);

impl Recipients {
    /// The maximum number of recipients.
    pub const MOST: usize = 50;

    /// Returns the addresses; empty for the admins.
    #[must_use]
    pub fn addresses(&self) -> &[EmailAddress] {
        &self.0
    }
}

impl TryFrom<Vec<EmailAddress>> for Recipients {
    type Error = InvalidValue;

    fn try_from(addresses: Vec<EmailAddress>) -> Result<Self, InvalidValue> {
        if addresses.len() > Self::MOST {
            return Err(InvalidValue::number("at most 50 addresses", addresses.len()));
        }
        let mut kept: Vec<EmailAddress> = Vec::new();
        for address in addresses {
            if kept.iter().all(|other| other.key() != address.key()) {
                kept.push(address);
            }
        }
        Ok(Self(kept))
    }
}

/// The SMTP configuration of an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmtpConfig {
    /// The id of the SMTP configuration.
    pub id: SmtpConfigId,
    /// The user who created it.
    pub user_id: UserId,
    /// The organization that it belongs to.
    pub organization_id: OrganizationId,
    /// The host name of the server.
    pub host: MailHost,
    /// Its port.
    pub port: u16,
    /// The transport security.
    pub security: MailSecurity,
    /// The user name; `None` if the server needs no login.
    pub username: Option<MailUsername>,
    /// The password; see [`SmtpConfig::associated_data`].
    pub password: Option<Sealed>,
    /// The address of the sender.
    pub from_email: EmailAddress,
    /// The display name of the sender.
    pub from_name: SenderName,
    /// The recipients.
    pub to: Recipients,
    /// True if mail is sent.
    pub is_active: bool,
    /// The time of creation.
    pub created_at: Timestamp,
    /// When anything about it last changed.
    pub updated_at: Timestamp,
}

impl SmtpConfig {
    /// Returns the associated data (AEAD) of the password: with any other, it cannot be decrypted.
    #[must_use]
    pub fn associated_data(id: SmtpConfigId) -> String {
        format!("smtp_configs.password:{id}")
    }
}

/// The credentials for a mail server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailLogin {
    /// The user name.
    pub username: MailUsername,
    /// The password.
    pub password: Secret<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_or_addresses_in_their_usual_spelling() {
        for (raw, kept) in [
            ("smtp.example.com", Some("smtp.example.com")),
            (" SMTP.Example.com ", Some("smtp.example.com")),
            ("localhost", Some("localhost")),
            ("mail_1.example.com", Some("mail_1.example.com")),
            ("10.0.0.1", Some("10.0.0.1")),
            ("0x7f.1", Some("127.0.0.1")),
            ("2130706433", Some("127.0.0.1")),
            ("[::1]", Some("::1")),
            ("::1", Some("::1")),
            ("", None),
            ("a b", None),
            ("mail.example.com:25", None),
            ("https://mail.example.com", None),
            ("mail..example.com", None),
            ("-mail.example.com", None),
            ("mail.example.com\r\nRCPT", None),
        ] {
            let host = MailHost::try_from(raw.to_owned()).ok();
            assert_eq!(host.as_ref().map(MailHost::as_str), kept, "{raw:?}");
        }
        let label = "a".repeat(63);
        let long = [label.as_str(); 4].join(".");
        assert!(long[2..].parse::<MailHost>().is_ok(), "253 characters");
        assert!(long[1..].parse::<MailHost>().is_err(), "254 characters");
    }

    #[test]
    fn names_and_users_stay_on_one_line() {
        assert!("Launchway".parse::<SenderName>().is_ok());
        assert!("".parse::<SenderName>().is_ok());
        assert!("Ada\r\nBcc: eve@example.com".parse::<SenderName>().is_err());
        assert!("x".repeat(100).parse::<SenderName>().is_ok());
        assert!("x".repeat(101).parse::<SenderName>().is_err());
        assert!("".parse::<MailUsername>().is_err());
        assert!("x".repeat(255).parse::<MailUsername>().is_ok());
        assert!("x".repeat(256).parse::<MailUsername>().is_err());
    }

    #[test]
    fn recipients_are_at_most_fifty_and_each_once() {
        let address = |n: usize| format!("ada{n}@example.com").parse::<EmailAddress>().unwrap();
        let twice = vec![address(1), "ADA1@example.com".parse().unwrap(), address(2)];
        assert_eq!(Recipients::try_from(twice).unwrap().addresses(), [address(1), address(2)]);
        assert!(Recipients::try_from((0..50).map(address).collect::<Vec<_>>()).is_ok());
        assert!(Recipients::try_from((0..51).map(address).collect::<Vec<_>>()).is_err());
    }

    #[test]
    fn each_way_to_speak_has_its_port() {
        let ports: Vec<_> = MailSecurity::ALL.iter().map(|security| security.usual_port()).collect();
        assert_eq!(ports, [587, 465, 25]);
    }
}
