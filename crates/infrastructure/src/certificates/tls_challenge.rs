//! The certificate that answers a TLS-ALPN-01 challenge (RFC 8737).

use launchway_domain::applications::Hostname;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use sha2::{Digest as _, Sha256};

/// Returns a certificate for the domain that contains the digest of the proof, and its new key, both as PEM.
pub(crate) fn certificate(
    domain: &Hostname,
    key_authorization: &str,
) -> Result<(String, String), rcgen::Error> {
    let mut params = CertificateParams::new(vec![domain.as_str().to_owned()])?;
    let digest = Sha256::digest(key_authorization);
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(&digest)];
    let key = KeyPair::generate()?;
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

#[cfg(test)]
mod tests {
    use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject as _};
    use x509_parser::{extensions::GeneralName, parse_x509_certificate};

    use super::*;

    #[test]
    fn a_certificate_contains_the_domain_and_the_digest() {
        let (chain, key) = certificate(&"shop.example.com".parse().unwrap(), "token.thumbprint").unwrap();
        assert!(key.starts_with("-----BEGIN PRIVATE KEY-----"));
        let der = CertificateDer::from_pem_slice(chain.as_bytes()).unwrap();
        let (_, parsed) = parse_x509_certificate(&der).unwrap();
        let names = &parsed.subject_alternative_name().unwrap().unwrap().value.general_names;
        assert!(matches!(names.as_slice(), [GeneralName::DNSName("shop.example.com")]), "{names:?}");
        let of_acme = |oid: &str| oid == "1.3.6.1.5.5.7.1.31";
        let mut extensions = parsed.extensions().iter().filter(|one| of_acme(&one.oid.to_id_string()));
        let extension = extensions.next().unwrap();
        assert!(extension.critical);
        // An octet string of 32 bytes.
        let mut expected = vec![4, 32];
        expected.extend_from_slice(&Sha256::digest("token.thumbprint"));
        assert_eq!(extension.value, expected);
    }
}
