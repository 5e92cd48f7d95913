//! Reads certificates and private keys.

use chrono::DateTime;
use data_encoding::BASE64;
use instant_acme::CertificateIdentifier;
use launchway_domain::{
    applications::Hostname,
    certificates::{CertificateParser, NewCertificate},
    clock::Timestamp,
    secret::Secret,
};
use tokio_rustls::rustls::{
    client::verify_server_name,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
    server::ParsedCertificate,
    sign::CertifiedKey,
};
use x509_parser::parse_x509_certificate;

/// The most certificates of a chain.
const MOST: usize = 10;
/// The longest chain, and the longest key, in bytes.
const LONGEST: usize = 64 * 1024;
/// The length of a line of PEM.
const LINE: usize = 64;

/// Reads certificates and keys as PEM.
#[derive(Debug, Clone, Copy, Default)]
pub struct PemParser;

impl CertificateParser for PemParser {
    fn parse(
        &self,
        chain: &str,
        key: &Secret<String>,
        domain: &Hostname,
        now: Timestamp,
    ) -> Result<NewCertificate, String> {
        if chain.len() > LONGEST || key.expose().len() > LONGEST {
            return Err(format!("the certificate and the key have at most {LONGEST} bytes each"));
        }
        let certificates = certificates_of(chain)?;
        let leaf = certificates.first().ok_or("the chain has no certificate as PEM")?;
        let (not_before, not_after) = validity_of(leaf)?;
        if not_after <= now {
            return Err(format!("the certificate has expired on {}", not_after.format("%Y-%m-%d")));
        }
        if not_before > now {
            return Err(format!("the certificate is valid from {} on", not_before.format("%Y-%m-%d")));
        }
        check_name(leaf, domain)?;
        let der = PrivateKeyDer::from_pem_slice(key.expose().as_bytes())
            .map_err(|_unreadable| "the private key cannot be read: it has to be unencrypted PEM")?;
        // Written anew, so that nothing else of what was sent is stored.
        let key = Secret::new(pem_of(label_of(&der), der.secret_der()));
        let chain = certificates.iter().map(|one| pem_of("CERTIFICATE", one)).collect();
        CertifiedKey::from_der(certificates, der, &ring::default_provider())
            .map_err(|error| format!("the private key is not that of the certificate: {error}"))?;
        Ok(NewCertificate { chain, key, not_before, not_after })
    }
}

/// Returns the times between which the first certificate of a chain is valid.
pub(super) fn validity(chain: &str) -> Result<(Timestamp, Timestamp), String> {
    validity_of(certificates_of(chain)?.first().ok_or("the chain has no certificate")?)
}

/// Returns the identifier of the first certificate of a chain (RFC 9773, 4.1); `None` if it does not name the key of its
/// authority.
pub(super) fn identifier(chain: &str) -> Option<CertificateIdentifier<'static>> {
    let certificates = certificates_of(chain).ok()?;
    CertificateIdentifier::try_from(certificates.first()?).ok()
}

fn certificates_of(chain: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain.as_bytes()).collect();
    let certificates = read.map_err(|error| format!("the chain cannot be read: {error}"))?;
    match certificates.len() <= MOST {
        true => Ok(certificates),
        false => Err(format!("the chain has more than {MOST} certificates")),
    }
}

fn validity_of(certificate: &CertificateDer<'_>) -> Result<(Timestamp, Timestamp), String> {
    let (_, parsed) =
        parse_x509_certificate(certificate).map_err(|_unreadable| "the certificate cannot be read")?;
    let validity = parsed.validity();
    let time = |seconds| DateTime::from_timestamp(seconds, 0).ok_or("the certificate has an impossible time");
    Ok((time(validity.not_before.timestamp())?, time(validity.not_after.timestamp())?))
}

fn check_name(certificate: &CertificateDer<'_>, domain: &Hostname) -> Result<(), String> {
    let name = ServerName::try_from(domain.as_str()).map_err(|error| error.to_string())?;
    let parsed = ParsedCertificate::try_from(certificate).map_err(|error| error.to_string())?;
    verify_server_name(&parsed, &name).map_err(|_other| format!("the certificate is not for `{domain}`"))
}

fn label_of(key: &PrivateKeyDer<'_>) -> &'static str {
    match key {
        PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
        PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
        _ => "PRIVATE KEY",
    }
}

fn pem_of(label: &str, der: &[u8]) -> String {
    let text = BASE64.encode(der);
    let mut pem = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(LINE));
        pem.push_str(line);
        pem.push('\n');
        rest = more;
    }
    pem.push_str(&format!("-----END {label}-----\n"));
    pem
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use launchway_testkit::external::{Authority, Identity};

    use super::*;

    fn parse(identity: &Identity, key: &str, domain: &str) -> Result<NewCertificate, String> {
        let now = DateTime::from_timestamp(1_900_000_000, 0).unwrap();
        let domain = domain.parse().unwrap();
        PemParser.parse(&identity.certificate, &Secret::new(key.to_owned()), &domain, now)
    }

    #[test]
    fn a_certificate_with_its_key_is_taken_for_its_names() {
        let identity = Authority::new().vouch_for(&["shop.example.com", "*.shops.example.com"]);
        for domain in ["shop.example.com", "a.shops.example.com"] {
            let new = parse(&identity, &identity.key, domain).unwrap();
            assert_eq!(new.chain.trim(), identity.certificate.replace('\r', "").trim());
            assert_eq!(new.key.expose().trim(), identity.key.replace('\r', "").trim());
            assert!(new.not_after - new.not_before > TimeDelta::days(1));
        }
        for domain in ["other.example.com", "a.b.shops.example.com"] {
            let error = parse(&identity, &identity.key, domain).unwrap_err();
            assert_eq!(error, format!("the certificate is not for `{domain}`"));
        }
    }

    #[test]
    fn what_cannot_be_served_is_refused_with_a_reason() {
        let authority = Authority::new();
        let (own, other) =
            (authority.vouch_for(&["shop.example.com"]), authority.vouch_for(&["a.example.com"]));
        let expired = authority.vouched_for(&["shop.example.com"]);
        let nothing = Identity { certificate: "nothing".to_owned(), key: String::new() };
        let long = Identity { certificate: "x".repeat(LONGEST + 1), key: String::new() };
        let many = Identity { certificate: own.certificate.repeat(MOST + 1), key: String::new() };
        for (identity, key, expected) in [
            (&own, &other.key, "the private key is not that of the certificate"),
            (&own, &"nothing".to_owned(), "the private key cannot be read"),
            (&expired, &expired.key, "the certificate has expired on 2002-01-01"),
            (&nothing, &own.key, "the chain has no certificate as PEM"),
            (&long, &own.key, "at most 65536 bytes"),
            (&many, &own.key, "more than 10 certificates"),
        ] {
            let error = parse(identity, key, "shop.example.com").unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
