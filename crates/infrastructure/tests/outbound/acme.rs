//! An ACME server of which Pebble has nothing: renewal information (ARI), and terms of several kinds.

use std::time::Duration;

use chrono::DateTime;
use data_encoding::BASE64URL_NOPAD;
use launchway_domain::{
    certificates::{CertificateIssuer as _, RenewalWindow},
    secret::Secret,
};
use launchway_infrastructure::{
    certificates::{AcceptedTerms, AcmeIssuer, AcmeOptions},
    outbound::Trust,
};
use launchway_testkit::external::{Authority, Receiver};
use rcgen::{CertificateParams, IsCa, Issuer, KeyIdMethod, KeyPair, SerialNumber};
use serde_json::{Value, json};

/// The example of RFC 9773, 4.1: the key of the authority, the serial number, and the identifier of both.
const AUTHORITY_KEY: &str = "aYhba4dGQEHhs3uEe6CuLN4ByNQ";
const SERIAL: u64 = 0x8765_4321;
const ID: &str = "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE";
const TERMS: &str = "https://acme.example.com/terms-2.pdf";

/// A server with this directory, which has `{host}` for itself, and this response to renewals.
struct Server {
    receiver: Receiver,
    issuer: AcmeIssuer,
    account: Secret<String>,
}

impl Server {
    fn new(directory: &Value, renewal: &'static str, terms: AcceptedTerms) -> Self {
        let authority = Authority::new();
        let tls = authority.vouch_for(&["127.0.0.1"]).shown_by_a_server();
        let directory = directory.to_string();
        let receiver = Receiver::talking_in_secret(tls, move |conversation| {
            let Some(request) = conversation.read_request() else { return };
            let host = request.header("host").unwrap_or_default();
            let body = directory.replace("{host}", host);
            let found = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            conversation.say(match request.line.split(' ').nth(1) {
                Some("/dir") => found.as_str(),
                Some(path) if path == format!("/renewal/{ID}") => renewal,
                _ => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            });
        });
        let url = format!("https://127.0.0.1:{}", receiver.port);
        let key = KeyPair::generate().unwrap();
        let account = json!({
            "id": format!("{url}/account/1"),
            "key_pkcs8": BASE64URL_NOPAD.encode(&key.serialize_der()),
            "directory": format!("{url}/dir"),
        });
        let issuer = AcmeIssuer::new(AcmeOptions {
            directory: format!("{url}/dir"),
            email: None,
            terms,
            trust: Trust::only(authority.pem()).unwrap(),
        });
        Self { receiver, issuer, account: Secret::new(account.to_string()) }
    }

    async fn window(&self) -> Result<Option<RenewalWindow>, String> {
        let window = self.issuer.renewal_window(&self.account, &chain(true)).await;
        window.map_err(|error| error.message)
    }
}

fn directory() -> Value {
    let of = |name: &str| format!("https://{{host}}/{name}");
    json!({
        "newNonce": of("nonce"), "newAccount": of("account"), "newOrder": of("order"),
        "renewalInfo": of("renewal"), "meta": { "termsOfService": TERMS },
    })
}

/// Returns a certificate that names the key of its authority, or one that does not.
fn chain(names_its_authority: bool) -> String {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let identifier = BASE64URL_NOPAD.decode(AUTHORITY_KEY.as_bytes()).unwrap();
    authority.key_identifier_method = KeyIdMethod::PreSpecified(identifier);
    let issuer = Issuer::new(authority, KeyPair::generate().unwrap());
    let mut params = CertificateParams::new(vec!["shop.example.com".to_owned()]).unwrap();
    params.serial_number = Some(SerialNumber::from(SERIAL));
    params.use_authority_key_identifier_extension = names_its_authority;
    params.signed_by(&KeyPair::generate().unwrap(), &issuer).unwrap().pem()
}

const ANSWER: &str = concat!(
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nRetry-After: 21600\r\nContent-Length: 86\r\n\r\n",
    r#"{"suggestedWindow":{"start":"2026-01-02T04:00:00Z","end":"2026-01-03T04:00:00+00:00"}}"#,
);

#[tokio::test]
async fn the_server_is_asked_when_to_renew_a_certificate() {
    let server = Server::new(&directory(), ANSWER, AcceptedTerms::Unnamed);
    let window = server.window().await.unwrap().unwrap();
    assert_eq!(window.start, DateTime::from_timestamp(1_767_326_400, 0).unwrap());
    assert_eq!(window.end, DateTime::from_timestamp(1_767_412_800, 0).unwrap());
    // Counted from the moment of the response.
    assert!(window.retry_after <= Duration::from_secs(21_600));
    assert!(window.retry_after > Duration::from_secs(21_000), "{window:?}");
    let lines: Vec<String> = server.receiver.requests().into_iter().map(|request| request.line).collect();
    assert_eq!(lines, ["GET /dir HTTP/1.1".to_owned(), format!("GET /renewal/{ID} HTTP/1.1")]);
}

#[tokio::test]
async fn a_server_or_certificate_without_ari_has_no_window() {
    let mut without = directory();
    without.as_object_mut().unwrap().remove("renewalInfo");
    let server = Server::new(&without, ANSWER, AcceptedTerms::Unnamed);
    assert_eq!(server.window().await, Ok(None));
    let server = Server::new(&directory(), ANSWER, AcceptedTerms::Unnamed);
    assert_eq!(server.issuer.renewal_window(&server.account, &chain(false)).await, Ok(None));
    assert_eq!(server.receiver.connections(), 0);
}

#[tokio::test]
async fn a_renewal_that_cannot_be_asked_for_is_an_error() {
    for answer in [
        "HTTP/1.1 503 X\r\nRetry-After: 60\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nRetry-After: 60\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        "",
    ] {
        let window = Server::new(&directory(), answer, AcceptedTerms::Unnamed).window().await;
        assert!(window.is_err_and(|message| message.starts_with("the ACME server")), "{answer}");
    }
}

#[tokio::test]
async fn an_account_is_not_registered_under_other_terms() {
    for (accepted, named) in [
        (AcceptedTerms::Unnamed, "none"),
        (
            AcceptedTerms::At("https://acme.example.com/terms-1.pdf".to_owned()),
            "https://acme.example.com/terms-1.pdf",
        ),
    ] {
        let server = Server::new(&directory(), "", accepted);
        let error = server.issuer.register().await.unwrap_err();
        let expected = format!(
            "the terms of service of the ACME server are {TERMS}, and LAUNCHWAY_ACME_ACCEPT_TERMS names {named}: read \
             them, and set it to their URL to accept them"
        );
        assert_eq!(error.message, expected);
        assert_eq!(server.receiver.requests().len(), 1);
    }
    // Under the right terms it goes on to the account, which this server does not have.
    let server = Server::new(&directory(), "", AcceptedTerms::At(TERMS.to_owned()));
    server.issuer.register().await.unwrap_err();
    assert!(server.receiver.requests().iter().any(|request| request.line.contains("/nonce")));
}
