//! An ACME server (RFC 8555), with HTTP-01 and TLS-ALPN-01 challenges.

use std::time::Duration;

use async_trait::async_trait;
use chrono::DateTime;
use instant_acme::{
    Account, AccountCredentials, AuthorizationStatus, CertificateIdentifier, ChallengeType, Error,
    Identifier, NewAccount, NewOrder, Order, OrderStatus, Problem, RetryPolicy,
};
use launchway_domain::{
    applications::Hostname,
    certificates::{
        CertificateIssuer, Challenge, ChallengeResponder, IssueError, NewCertificate, RenewalWindow,
    },
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
/// The challenges that are answered. The second one is tried if the server does not offer the first one or could not
/// complete it, because the port of one may be blocked.
const CHALLENGES: [ChallengeType; 2] = [ChallengeType::Http01, ChallengeType::TlsAlpn01];
/// The problems of a challenge that another one has as well.
const OF_EVERY_CHALLENGE: [&str; 4] = ["caa", "dns", "rateLimited", "rejectedIdentifier"];
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

    async fn account(&self, account: &Secret<String>) -> Result<Account, IssueError> {
        let credentials: AccountCredentials = serde_json::from_str(account.expose())
            .map_err(|_unreadable| IssueError::new("the stored account at the ACME server is unreadable"))?;
        let builder = Account::builder_with_http(Box::new(self.http.clone()));
        builder.from_credentials(credentials).await.map_err(in_words)
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

    async fn renewal_window(
        &self,
        account: &Secret<String>,
        chain: &str,
    ) -> Result<Option<RenewalWindow>, IssueError> {
        // A certificate without the key of its authority cannot be asked for.
        let Some(id) = parser::identifier(chain) else { return Ok(None) };
        let (info, retry_after) = match self.account(account).await?.renewal_info(&id).await {
            Ok(answer) => answer,
            Err(Error::Unsupported(_)) => return Ok(None),
            Err(error) => return Err(in_words(error)),
        };
        let time = |seconds| DateTime::from_timestamp(seconds, 0);
        let window = info.suggested_window;
        let times = (time(window.start.unix_timestamp()), time(window.end.unix_timestamp()));
        let (Some(start), Some(end)) = times else { return Ok(None) };
        Ok(Some(RenewalWindow { start, end, retry_after }))
    }

    async fn issue(
        &self,
        account: &Secret<String>,
        domain: &Hostname,
        replaced: Option<&str>,
        responder: &dyn ChallengeResponder,
    ) -> Result<NewCertificate, IssueError> {
        let account = self.account(account).await?;
        let request = Request { domain, replaced: replaced.and_then(parser::identifier) };
        Box::pin(order(&account, &request, responder)).await
    }
}

/// The certificate that is ordered.
struct Request<'a> {
    domain: &'a Hostname,
    /// The certificate that it replaces, which a server may treat preferentially (RFC 9773, 5).
    replaced: Option<CertificateIdentifier<'static>>,
}

async fn order(
    account: &Account,
    request: &Request<'_>,
    responder: &dyn ChallengeResponder,
) -> Result<NewCertificate, IssueError> {
    let mut order = match authorized(account, request, responder, &CHALLENGES).await {
        Ok(order) => order,
        Err(Unauthorized { error, other: None }) => return Err(error),
        // The order is invalid after a challenge that failed.
        Err(Unauthorized { error: first, other: Some(other) }) => {
            authorized(account, request, responder, &[other])
                .await
                .map_err(|second| first.and(second.error))?
        }
    };
    let key = Secret::new(order.finalize().await.map_err(in_words)?);
    let chain = order.poll_certificate(&POLLS).await.map_err(in_words)?;
    let (not_before, not_after) = parser::validity(&chain).map_err(IssueError::new)?;
    Ok(NewCertificate { chain, key, not_before, not_after })
}

/// An order that did not become ready.
struct Unauthorized {
    error: IssueError,
    /// The challenge that may succeed instead.
    other: Option<ChallengeType>,
}

impl From<IssueError> for Unauthorized {
    fn from(error: IssueError) -> Self {
        Self { error, other: None }
    }
}

/// Orders a certificate for a domain, and answers the first of these challenges that the server offers.
async fn authorized(
    account: &Account,
    request: &Request<'_>,
    responder: &dyn ChallengeResponder,
    challenges: &[ChallengeType],
) -> Result<Order, Unauthorized> {
    let mut order = new_order(account, request).await?;
    let other = answer_challenges(&mut order, request.domain, responder, challenges).await?;
    let error = match order.poll_ready(&POLLS).await {
        Ok(OrderStatus::Ready) => return Ok(order),
        Ok(_) => None,
        Err(error) => Some(error),
    };
    match failed_challenge(&mut order).await {
        Some(problem) if OF_EVERY_CHALLENGE.contains(&kind_of(&problem)) => {
            Err(problem_in_words(&problem).into())
        }
        Some(problem) => Err(Unauthorized { error: problem_in_words(&problem), other }),
        // Without the reason of the challenge, that of the order is good enough.
        None => {
            let refused = || IssueError::new("the ACME server refused the order");
            Err(error.map_or_else(refused, in_words).into())
        }
    }
}

async fn new_order(account: &Account, request: &Request<'_>) -> Result<Order, IssueError> {
    let identifiers = [Identifier::Dns(request.domain.as_str().to_owned())];
    if let Some(replaced) = &request.replaced {
        match account.new_order(&NewOrder::new(&identifiers).replaces(replaced.clone())).await {
            Err(Error::Api(problem)) if kind_of(&problem) == "rateLimited" => {
                return Err(problem_in_words(&problem));
            }
            // The server has no such certificate, has replaced it, or knows nothing of this.
            Err(error) => tracing::debug!(%error, "order without the certificate that it replaces"),
            order => return order.map_err(in_words),
        }
    }
    account.new_order(&NewOrder::new(&identifiers)).await.map_err(in_words)
}

/// Answers one challenge of each authorization, and returns another one that the server offers too.
async fn answer_challenges(
    order: &mut Order,
    domain: &Hostname,
    responder: &dyn ChallengeResponder,
    challenges: &[ChallengeType],
) -> Result<Option<ChallengeType>, IssueError> {
    let mut other = None;
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.map_err(in_words)?;
        if authorization.status == AuthorizationStatus::Valid {
            continue;
        }
        let offers =
            |wanted: &&ChallengeType| authorization.challenges.iter().any(|one| one.r#type == **wanted);
        let mut offered = challenges.iter().filter(offers).cloned().collect::<Vec<_>>().into_iter();
        let none =
            || IssueError::new("the ACME server offers neither an HTTP-01 nor a TLS-ALPN-01 challenge");
        let first = offered.next().ok_or_else(none)?;
        other = offered.next();
        let tls_domain = (first == ChallengeType::TlsAlpn01).then(|| domain.clone());
        let mut challenge = authorization.challenge(first).ok_or_else(none)?;
        let key_authorization = challenge.key_authorization().as_str().to_owned();
        let token = challenge.token.clone();
        responder.publish(Challenge { token, key_authorization, tls_domain }).await?;
        challenge.set_ready().await.map_err(in_words)?;
    }
    Ok(other)
}

/// Returns the problem of the challenge for which an order is not ready.
async fn failed_challenge(order: &mut Order) -> Option<Problem> {
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        if authorization.refresh().await.is_err() {
            continue;
        }
        let problem = authorization.challenges.iter().find_map(|challenge| challenge.error.clone());
        if problem.is_some() {
            return problem;
        }
    }
    None
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
    let kind = kind_of(problem);
    let detail = shortened(problem.detail.as_deref().unwrap_or("no reason given"));
    let retry_after = (kind == "rateLimited").then_some(RATE_LIMITED);
    let message = format!("the ACME server refused ({kind}): {detail}");
    IssueError { retry_after, ..IssueError::new(message) }
}

fn kind_of(problem: &Problem) -> &str {
    let kind = problem.r#type.as_deref().unwrap_or_default();
    kind.strip_prefix("urn:ietf:params:acme:error:").unwrap_or(kind)
}

/// Returns the text on one line, without control characters.
fn shortened(text: &str) -> String {
    let plain = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    plain.take(LONGEST).collect::<String>().trim_end_matches('.').to_owned()
}
