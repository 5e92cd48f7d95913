//! The JSON of certificates.

use launchway_domain::certificates::{Certificate, CertificateState, HstsPolicy};
use serde::Serialize;
use utoipa::ToSchema;

use crate::timestamp::Moment;

/// The certificate of a domain.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = Certificate)]
pub(crate) struct CertificateView {
    #[schema(example = "shop.example.com")]
    domain: String,
    /// `pending`, `valid`, `expired` or `failed`.
    #[schema(example = "valid")]
    state: &'static str,
    /// The time at which it expires; null until one was issued.
    not_after: Option<Moment>,
    /// The reason why it could not be issued or renewed; null after a success.
    last_error: Option<String>,
}

impl From<&(Certificate, CertificateState)> for CertificateView {
    fn from((certificate, state): &(Certificate, CertificateState)) -> Self {
        Self {
            domain: certificate.domain.as_str().to_owned(),
            state: state.as_str(),
            not_after: certificate.issued.as_ref().map(|issued| issued.not_after.into()),
            last_error: certificate.last_error.clone(),
        }
    }
}

/// The HSTS policy of a domain.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = HstsPolicy)]
pub(crate) struct HstsView {
    #[schema(example = "shop.example.com")]
    domain: String,
    /// The time for which browsers use HTTPS only, in seconds.
    #[schema(example = 15_552_000)]
    max_age: u32,
}

impl From<&HstsPolicy> for HstsView {
    fn from(policy: &HstsPolicy) -> Self {
        Self { domain: policy.domain.as_str().to_owned(), max_age: policy.max_age.get() }
    }
}
