//! Certificates: issued by an ACME server, or uploaded.

mod acme;
mod http;
mod parser;

pub use self::{
    acme::{AcceptedTerms, AcmeIssuer, AcmeOptions},
    parser::PemParser,
};
