//! The HTTP channels of an organization.

use url::{Host, Url};

use super::ChannelKind;
use crate::{
    clock::Timestamp,
    ids::{OrganizationId, UserId, WebhookConfigId},
    secret::{Sealed, Secret},
    value::{InvalidValue, named},
};

named!(
    /// The kind of an HTTP channel.
    WebhookKind,
    "`slack`, `discord` or `generic`",
    {
        Slack => "slack",
        Discord => "discord",
        Generic => "generic",
    }
);

impl From<WebhookKind> for ChannelKind {
    fn from(kind: WebhookKind) -> Self {
        match kind {
            WebhookKind::Slack => Self::Slack,
            WebhookKind::Discord => Self::Discord,
            WebhookKind::Generic => Self::Generic,
        }
    }
}

/// The URL that messages are posted to. Anyone who knows a URL of Slack or Discord can post there, so it is
/// a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookUrl(Secret<Url>);

impl WebhookUrl {
    const LONGEST: usize = 2048;
    const ALLOWED: &'static str =
        "an `http://` or `https://` URL of at most 2048 characters, without a user and a password";

    /// Returns the URL.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose().as_str()
    }

    /// Returns the host. Every spelling of an address has become the canonical one.
    #[must_use]
    pub fn host(&self) -> Host<&str> {
        // Web addresses have a host; an empty one would never be connected to.
        self.0.expose().host().unwrap_or(Host::Domain(""))
    }

    /// Returns the port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.expose().port_or_known_default().unwrap_or(443)
    }

    /// Returns whether the connection is encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.0.expose().scheme() == "https"
    }

    /// Returns the origin without the path, for users who may not use the URL.
    #[must_use]
    pub fn masked(&self) -> String {
        let url = self.0.expose();
        format!("{}/***", url.origin().ascii_serialization())
    }
}

impl TryFrom<String> for WebhookUrl {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        // It may contain a secret, so the error does not repeat it.
        let refused = || InvalidValue::secret(Self::ALLOWED);
        let raw = raw.trim();
        if raw.len() > Self::LONGEST || raw.contains(char::is_control) {
            return Err(refused());
        }
        let mut url = Url::parse(raw).map_err(|_not_a_url| refused())?;
        let has_credentials = !url.username().is_empty() || url.password().is_some();
        let is_web = matches!(url.scheme(), "http" | "https");
        let has_host = url.host().is_some_and(|host| host != Host::Domain(""));
        if !is_web || has_credentials || !has_host || url.port() == Some(0) {
            return Err(refused());
        }
        url.set_fragment(None);
        // The stored form escapes some characters, and has to be parsed again.
        if url.as_str().len() > Self::LONGEST {
            return Err(refused());
        }
        Ok(Self(Secret::new(url)))
    }
}

/// An HTTP channel of an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookConfig {
    /// The id of the channel.
    pub id: WebhookConfigId,
    /// The user who created it.
    pub user_id: UserId,
    /// The organization that it belongs to.
    pub organization_id: OrganizationId,
    /// The kind of the channel.
    pub kind: WebhookKind,
    /// The [`WebhookUrl`]; see [`WebhookConfig::associated_data`].
    pub url: Sealed,
    /// True if messages are sent.
    pub is_active: bool,
    /// The time of creation.
    pub created_at: Timestamp,
    /// When anything about it last changed.
    pub updated_at: Timestamp,
}

impl WebhookConfig {
    /// Returns the associated data (AEAD) of the URL: with any other, it cannot be decrypted.
    #[must_use]
    pub fn associated_data(id: WebhookConfigId) -> String {
        format!("webhook_configs.webhook_url:{id}")
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn url(raw: &str) -> Result<WebhookUrl, InvalidValue> {
        raw.to_owned().try_into()
    }

    #[test]
    fn a_web_address_is_kept_and_shown_by_its_origin_only() {
        let slack = url(" https://hooks.example.com/services/T0/B0/secret?x=1#part ").unwrap();
        assert_eq!(slack.expose(), "https://hooks.example.com/services/T0/B0/secret?x=1");
        assert_eq!(slack.masked(), "https://hooks.example.com/***");
        assert_eq!((slack.host(), slack.port()), (Host::Domain("hooks.example.com"), 443));
        assert_eq!(format!("{slack:?}"), "WebhookUrl(***)");
        assert_eq!(url("http://example.com:8080/").unwrap().masked(), "http://example.com:8080/***");
        assert_eq!(url("http://example.com").unwrap().port(), 80);
    }

    #[test]
    fn rejects_bad_urls_and_credentials_without_repeating_them() {
        let long = format!("https://example.com/{}", "x".repeat(2048));
        for raw in [
            "",
            "example.com",
            "//example.com",
            "ftp://example.com/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "https://",
            "https://ada@example.com/",
            "https://ada:hunter2@example.com/",
            "https://:hunter2@example.com/",
            "https://example.com:0/",
            "https://example.com/\r\nHost: other",
            &long,
        ] {
            let refused = url(raw).expect_err(raw).to_string();
            assert!(!refused.contains("hunter2") && !refused.contains("got"), "{refused}");
        }
        let longest = format!("https://example.com/{}", "x".repeat(2048 - 20));
        assert_eq!(longest.len(), 2048);
        url(&longest).unwrap();
    }

    #[test]
    fn an_address_is_as_long_as_it_is_kept() {
        let spelled_out = |count: usize| url(&format!("https://example.com/{}", "ä".repeat(count)));
        let longest = spelled_out(338).unwrap();
        assert_eq!(longest.expose().len(), 2048);
        assert_eq!(url(longest.expose()), Ok(longest));
        assert!(spelled_out(339).is_err());
    }

    #[test]
    fn every_spelling_of_an_address_is_the_address() {
        for raw in [
            "http://127.0.0.1/",
            "http://127.1/",
            "http://127.0.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://0177.1/",
            "http://017700000001/",
            "http://127.0.0.1./",
            "http://%31%32%37.0.0.1/",
            "http://１２７.０.０.１/",
            "http://①②⑦.⓪.⓪.①/",
            "http://127。0。0。1/",
        ] {
            let Host::Ipv4(address) = url(raw).unwrap().host() else { panic!("{raw} is a name") };
            assert_eq!(IpAddr::V4(address), IpAddr::V4(Ipv4Addr::LOCALHOST), "{raw}");
        }
        for raw in ["http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://[0:0:0:0:0:ffff:7f00:1]/"] {
            assert!(matches!(url(raw).unwrap().host(), Host::Ipv6(_)), "{raw}");
        }
    }
}
