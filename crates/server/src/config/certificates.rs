//! The settings of certificates that are issued automatically.

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
    /// The authorities that the directory is trusted by; `None` for those of the machine.
    pub(crate) trust: Option<Trust>,
}

impl AcmeConfig {
    /// Reads the settings: `None` if one is invalid, `Some(None)` if the terms of the server are not accepted.
    pub(super) fn read(read: &mut Reader) -> Option<Option<Self>> {
        let terms = read.setting("LAUNCHWAY_ACME_ACCEPT_TERMS", "off", terms);
        let directory = read.setting("LAUNCHWAY_ACME_DIRECTORY", LETS_ENCRYPT, values::https_url);
        let email = read.optional("LAUNCHWAY_ACME_EMAIL", values::email_address);
        let trust = read.optional("LAUNCHWAY_ACME_CA_FILE", authorities);
        let (terms, directory, email, trust) = (terms?, directory?, email?, trust?);
        Some(terms.map(|terms| Self { directory, email, terms, trust }))
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
}
