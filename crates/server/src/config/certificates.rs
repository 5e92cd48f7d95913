//! The settings of certificates that are issued automatically.

use std::net::IpAddr;

use launchway_infrastructure::{certificates::AcceptedTerms, outbound::Trust};

use super::{reader::Reader, values};

/// The production directory of Let's Encrypt.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// The settings of the ACME server.
#[derive(Debug, Clone)]
pub(crate) struct AcmeConfig {
    pub(crate) directory: String,
    pub(crate) email: Option<String>,
    pub(crate) terms: AcceptedTerms,
    /// The public addresses of this installation; empty if unknown, `None` if domains are not looked up.
    pub(crate) addresses: Option<Vec<IpAddr>>,
    /// The authorities that the directory is trusted by; `None` for those of the machine.
    pub(crate) trust: Option<Trust>,
}

impl AcmeConfig {
    /// Reads the settings: `None` if one is invalid, `Some(None)` if the terms of the server are not accepted.
    pub(super) fn read(read: &mut Reader) -> Option<Option<Self>> {
        let terms = read.setting("LAUNCHWAY_ACME_ACCEPT_TERMS", "off", terms);
        let directory = read.setting("LAUNCHWAY_ACME_DIRECTORY", LETS_ENCRYPT, values::https_url);
        let email = read.optional("LAUNCHWAY_ACME_EMAIL", values::email_address);
        let addresses = read.optional("LAUNCHWAY_ACME_ADDRESSES", addresses);
        let trust = read.optional("LAUNCHWAY_ACME_CA_FILE", authorities);
        let (terms, directory, email, trust) = (terms?, directory?, email?, trust?);
        let addresses = addresses?.unwrap_or_else(|| Some(Vec::new()));
        Some(terms.map(|terms| Self { directory, email, terms, addresses, trust }))
    }
}

/// Parses the URL of terms; `None` for `off`. `on` is that of earlier versions.
fn terms(raw: &str) -> Result<Option<AcceptedTerms>, String> {
    match raw {
        "off" => Ok(None),
        "on" => Ok(Some(AcceptedTerms::Unnamed)),
        // Compared as it is: servers give the same text.
        url if url::Url::parse(url).is_ok() => Ok(Some(AcceptedTerms::At(url.to_owned()))),
        _ => Err(
            "`off`, or the URL of the terms of service that you accept, which is `termsOfService` in the \
                  directory of the ACME server"
                .to_owned(),
        ),
    }
}

/// Parses a list of addresses; `None` for `off`.
fn addresses(raw: &str) -> Result<Option<Vec<IpAddr>>, String> {
    if raw == "off" {
        return Ok(None);
    }
    let items = raw.split(',').map(str::trim).filter(|item| !item.is_empty());
    let parsed: Result<Vec<IpAddr>, _> =
        items.map(|item| item.parse().map(|one: IpAddr| one.to_canonical())).collect();
    let hint = "`off`, or the public addresses of this installation with commas between them, such as 192.0.2.1, \
                2001:db8::1";
    parsed.ok().filter(|all| !all.is_empty()).map(Some).ok_or_else(|| hint.to_owned())
}

/// Parses the path of a file with certificates as PEM.
fn authorities(raw: &str) -> Result<Trust, String> {
    let hint =
        |error: std::io::Error| format!("a file with the certificates of authorities as PEM ({error})");
    let pem = std::fs::read_to_string(raw).map_err(hint)?;
    if !pem.contains("-----BEGIN CERTIFICATE-----") {
        return Err("a file with the certificates of authorities as PEM".to_owned());
    }
    Trust::only(&pem).map_err(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_accepted_by_their_url() {
        let url = "https://acme.example.com/terms-1.pdf";
        assert_eq!(terms(url), Ok(Some(AcceptedTerms::At(url.to_owned()))));
        assert_eq!(terms("off"), Ok(None));
        assert_eq!(terms("on"), Ok(Some(AcceptedTerms::Unnamed)));
        assert!(terms("yes").is_err());
    }

    #[test]
    fn addresses_are_a_list_or_off() {
        let two = vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        assert_eq!(addresses("::ffff:192.0.2.1, 2001:db8::1,"), Ok(Some(two)));
        assert_eq!(addresses("off"), Ok(None));
        for raw in [",", "shop.example.com", "192.0.2.0/24"] {
            assert!(addresses(raw).is_err(), "{raw}");
        }
    }
}
