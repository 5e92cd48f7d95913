//! Certificates: issued by an ACME server, or uploaded.

mod acme;
mod http;
mod parser;
mod resolver;
pub(crate) mod tls_challenge;

pub use self::{
    acme::{AcceptedTerms, AcmeIssuer, AcmeOptions},
    parser::PemParser,
    resolver::SystemResolver,
};
