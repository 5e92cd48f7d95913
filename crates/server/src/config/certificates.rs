//! The settings of certificates that are issued automatically.

use launchway_infrastructure::outbound::Trust;

use super::{reader::Reader, values};

/// The production directory of Let's Encrypt.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// The settings of the ACME server.
#[derive(Debug, Clone)]
pub(crate) struct AcmeConfig {
    pub(crate) directory: String,
    pub(crate) email: Option<String>,
    /// The authorities that the directory is trusted by; `None` for those of the machine.
    pub(crate) trust: Option<Trust>,
}

impl AcmeConfig {
    /// Reads the settings: `None` if one is invalid, `Some(None)` if the terms of the server are not accepted.
    pub(super) fn read(read: &mut Reader) -> Option<Option<Self>> {
        let accepts_terms = read.setting("LAUNCHWAY_ACME_ACCEPT_TERMS", "off", values::switch);
        let directory = read.setting("LAUNCHWAY_ACME_DIRECTORY", LETS_ENCRYPT, values::https_url);
        let email = read.optional("LAUNCHWAY_ACME_EMAIL", values::email_address);
        let trust = read.optional("LAUNCHWAY_ACME_CA_FILE", authorities);
        let (accepts_terms, directory, email, trust) = (accepts_terms?, directory?, email?, trust?);
        Some(accepts_terms.then_some(Self { directory, email, trust }))
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
