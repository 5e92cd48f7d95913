//! An ACME server (RFC 8555), with HTTP-01 challenges.

use std::time::Duration;

use async_trait::async_trait;
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, ChallengeType, Error, Identifier, NewAccount, NewOrder,
    Order, OrderStatus, Problem, RetryPolicy,
};
use launchway_domain::{
    applications::Hostname,
    certificates::{CertificateIssuer, Challenge, ChallengeResponder, IssueError, NewCertificate},
    secret::Secret,
};
use serde::Deserialize;

use super::{http::Http, parser};
use crate::outbound::Trust;

/// The polls of an order. The server may look at a domain from several places.
const POLLS: RetryPolicy =
    RetryPolicy::new().initial_delay(Duration::from_millis(500)).timeout(Duration::from_secs(90));
/// The wait after an error about rate limits, if the server names none.
const RATE_LIMITED: Duration = Duration::from_secs(60 * 60);
/// The longest text of a server in an error.
const LONGEST: usize = 500;

/// The options of an ACME server.
#[derive(Debug, Clone)]
pub struct AcmeOptions {
    /// The URL of its directory.
    pub directory: String,
    /// The address of the operator, for warnings of the server.
    pub email: Option<String>,
    /// The terms of service that the operator accepts.
    pub terms: AcceptedTerms,
    /// The trusted certificate authorities.
    pub trust: Trust,
}

/// The terms of service that the operator accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AcceptedTerms {
    /// Those at this URL.
    At(String),
    /// Accepted without their URL, as earlier versions did. An account that exists is used, and no other is registered.
    Unnamed,
}

/// The part of a directory that an account depends on (RFC 8555, 7.1.1).
#[derive(Debug, Default, Deserialize)]
struct Directory {
    #[serde(default)]
    meta: Metadata,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    #[serde(rename = "termsOfService")]
    terms: Option<String>,
}

/// Issues certificates by an ACME server whose terms the operator has accepted.
pub struct AcmeIssuer {
    directory: String,
    email: Option<String>,
    terms: AcceptedTerms,
    http: Http,
}

impl AcmeIssuer {
    /// Returns the issuer with these options.
    #[must_use]
    pub fn new(options: AcmeOptions) -> Self {
        let AcmeOptions { directory, email, terms, trust } = options;
        Self { directory, email, terms, http: Http::new(trust) }
    }

    /// Compares the terms of the server with those that the operator accepts. A server may have none.
    async fn check_terms(&self) -> Result<(), IssueError> {
        let body = self.http.get(&self.directory).await.map_err(|error| unreached(&error))?;
        let directory: Directory = serde_json::from_slice(&body).map_err(|error| in_words(error.into()))?;
        let Some(terms) = directory.meta.terms else { return Ok(()) };
        let accepted = match &self.terms {
            AcceptedTerms::At(accepted) if *accepted == terms => return Ok(()),
            AcceptedTerms::At(accepted) => accepted,
            AcceptedTerms::Unnamed => "none",
        };
        Err(IssueError::new(format!(
            "the terms of service of the ACME server are {}, and LAUNCHWAY_ACME_ACCEPT_TERMS names {accepted}: read \
             them, and set it to their URL to accept them",
            shortened(&terms),
        )))
    }

    async fn order(
        &self,
        account: &Secret<String>,
        domain: &Hostname,
        responder: &dyn ChallengeResponder,
    ) -> Result<NewCertificate, IssueError> {
        let credentials: AccountCredentials = serde_json::from_str(account.expose())
            .map_err(|_unreadable| IssueError::new("the stored account at the ACME server is unreadable"))?;
        let account = Account::builder_with_http(Box::new(self.http.clone()))
            .from_credentials(credentials)
            .await
            .map_err(in_words)?;
        let identifiers = [Identifier::Dns(domain.as_str().to_owned())];
        let mut order = account.new_order(&NewOrder::new(&identifiers)).await.map_err(in_words)?;
        answer_challenges(&mut order, responder).await?;
        match order.poll_ready(&POLLS).await {
            Ok(OrderStatus::Ready) => {}
            Ok(_) => return Err(refusal(&mut order, None).await),
            Err(error) => return Err(refusal(&mut order, Some(error)).await),
        }
        let key = Secret::new(order.finalize().await.map_err(in_words)?);
        let chain = order.poll_certificate(&POLLS).await.map_err(in_words)?;
        let (not_before, not_after) = parser::validity(&chain).map_err(IssueError::new)?;
        Ok(NewCertificate { chain, key, not_before, not_after })
    }
}

#[async_trait]
impl CertificateIssuer for AcmeIssuer {
    fn directory(&self) -> String {
        self.directory.clone()
    }

    async fn register(&self) -> Result<Secret<String>, IssueError> {
        self.check_terms().await?;
        let contact = self.email.as_ref().map(|email| format!("mailto:{email}"));
        let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
        let account =
            NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
        let builder = Account::builder_with_http(Box::new(self.http.clone()));
        let created = builder.create(&account, self.directory.clone(), None).await;
        let (_, credentials) = created.map_err(in_words)?;
        let text = serde_json::to_string(&credentials);
        text.map(Secret::new).map_err(|error| IssueError::new(error.to_string()))
    }

    async fn issue(
        &self,
        account: &Secret<String>,
        domain: &Hostname,
        responder: &dyn ChallengeResponder,
    ) -> Result<NewCertificate, IssueError> {
        Box::pin(self.order(account, domain, responder)).await
    }
}

async fn answer_challenges(order: &mut Order, responder: &dyn ChallengeResponder) -> Result<(), IssueError> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.map_err(in_words)?;
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let offered = authorization.challenge(ChallengeType::Http01);
        let mut challenge =
            offered.ok_or_else(|| IssueError::new("the ACME server offers no HTTP-01 challenge"))?;
        let key_authorization = challenge.key_authorization().as_str().to_owned();
        responder.publish(Challenge { token: challenge.token.clone(), key_authorization }).await?;
        challenge.set_ready().await.map_err(in_words)?;
    }
    Ok(())
}

/// Returns the reason why an order is not ready: that of its challenge, or else `error`.
async fn refusal(order: &mut Order, error: Option<Error>) -> IssueError {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        // Without the reason of the challenge, that of the order is good enough.
        let Ok(state) = authorization.refresh().await else { continue };
        if let Some(problem) = state.challenges.iter().find_map(|challenge| challenge.error.as_ref()) {
            return problem_in_words(problem);
        }
    }
    error.map_or_else(|| IssueError::new("the ACME server refused the order"), in_words)
}

fn in_words(error: Error) -> IssueError {
    match error {
        Error::Api(problem) => problem_in_words(&problem),
        Error::Other(cause) => unreached(&*cause),
        error => IssueError::new(format!("the ACME server did not answer as expected: {error}")),
    }
}

fn unreached(error: &(dyn std::error::Error + 'static)) -> IssueError {
    let causes = std::iter::successors(Some(error), |cause| cause.source());
    let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    IssueError::new(format!("the ACME server cannot be reached: {}", shortened(&text)))
}

fn problem_in_words(problem: &Problem) -> IssueError {
    let kind = problem.r#type.as_deref().unwrap_or_default();
    let kind = kind.strip_prefix("urn:ietf:params:acme:error:").unwrap_or(kind);
    let detail = shortened(problem.detail.as_deref().unwrap_or("no reason given"));
    let retry_after = (kind == "rateLimited").then_some(RATE_LIMITED);
    IssueError { message: format!("the ACME server refused ({kind}): {detail}"), retry_after }
}

/// Returns the text on one line, without control characters.
fn shortened(text: &str) -> String {
    let plain = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    plain.take(LONGEST).collect::<String>().trim_end_matches('.').to_owned()
}
