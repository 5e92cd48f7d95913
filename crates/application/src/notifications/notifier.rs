//! Sends one event to one channel.

use std::{sync::Arc, time::Duration};

use launchway_domain::{
    clock::{Clock, Timestamp},
    extensions::ExecutionRepository,
    logs::{LogFilter, LogReader},
    notifications::{
        Attempt, Channel, Event, EventKind, Fact, KeptSigningSecret, Mail, MailLogin, Mailer, Post,
        SendError, Sent, SigningSecret, SmtpConfig, Verdict, WebhookConfig, WebhookKind, WebhookSender,
        WebhookUrl,
    },
    organizations::{OrganizationRepository, Role, Scope},
    page::PageRequest,
    secret::{Sealed, Secret, SecretBox, SecretBoxError},
    store::StoreError,
    users::EmailAddress,
    value::InvalidValue,
};

use super::{
    document::{Document, Findings, shortened},
    text,
};

/// The number of log lines of a failure that are sent.
const LAST_LINES: i64 = 15;

/// The ports of a notifier.
pub struct NotifierPorts {
    /// Reads the name of the organization.
    pub organizations: Arc<dyn OrganizationRepository>,
    /// Reads the tail of the log of a deployment.
    pub logs: Arc<dyn LogReader>,
    /// Reads the runs of extensions.
    pub executions: Arc<dyn ExecutionRepository>,
    /// Decrypts URLs, passwords and signing secrets.
    pub secrets: Arc<dyn SecretBox>,
    /// Sends messages over HTTP.
    pub webhooks: Arc<dyn WebhookSender>,
    /// Sends mail.
    pub mailer: Arc<dyn Mailer>,
    /// Provides the time of signatures.
    pub clock: Arc<dyn Clock>,
}

/// Composes the messages of events, and sends them to channels.
pub struct Notifier {
    ports: NotifierPorts,
    /// The public URL of this installation, if it is known.
    public_url: Option<String>,
}

/// The result of sending a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeliveryResult {
    pub(super) verdict: Verdict,
    /// The status code of the response.
    pub(super) status: Option<u16>,
    /// The error; empty on success.
    pub(super) error: String,
    began: Timestamp,
    took: Duration,
}

impl DeliveryResult {
    /// Returns this result as attempt `number` at a delivery.
    pub(super) fn as_attempt(&self, number: i32) -> Attempt {
        let error = shortened(&self.error, Attempt::LONGEST_ERROR);
        Attempt { number, at: self.began, took: self.took, status: self.status, error }
    }
}

impl Notifier {
    /// Returns a notifier over `ports`. Messages link to `public_url`.
    pub fn new(ports: NotifierPorts, public_url: Option<String>) -> Self {
        Self { ports, public_url }
    }

    /// Composes the message of an event.
    pub(super) async fn compose(&self, event: &Event) -> Result<Document, StoreError> {
        let scope = Scope::of_record(event.organization_id);
        let organization = match event.facts.contains_key(&Fact::Organization) {
            true => None,
            false => self.ports.organizations.detail(scope).await?,
        };
        let organization = organization.map(|detail| detail.organization.name.as_str().to_owned());
        let last_lines = self.last_lines(scope, event).await?;
        Ok(Document::of(event, Findings { organization, last_lines, url: self.url(event) }))
    }

    /// Sends a message to a channel. A failure is part of the result.
    pub(super) async fn deliver(&self, event: &Event, words: &Document, channel: &Channel) -> DeliveryResult {
        let began = self.ports.clock.now();
        let outcome = match channel {
            Channel::Webhook { config, secrets } => self.post(event, words, config, secrets, began).await,
            Channel::Mail(config) => self.mail(event, words, config).await,
        };
        let (verdict, status, error) = outcome.unwrap_or_else(|error| failed(&error));
        let took = (self.ports.clock.now() - began).to_std().unwrap_or_default();
        DeliveryResult { verdict, status, error, began, took }
    }

    async fn post(
        &self,
        event: &Event,
        words: &Document,
        config: &WebhookConfig,
        secrets: &[KeptSigningSecret],
        at: Timestamp,
    ) -> Result<(Verdict, Option<u16>, String), Failure> {
        let url: WebhookUrl =
            self.open(&WebhookConfig::associated_data(config.id), &config.url)?.try_into()?;
        let (body, headers) = match config.kind {
            WebhookKind::Slack => (text::slack(words), Vec::new()),
            WebhookKind::Discord => (text::discord(words), Vec::new()),
            WebhookKind::Generic => {
                let body = words.as_str().to_owned();
                let headers = self.signed(&event.message_id(), at, &body, secrets)?;
                (body, headers)
            }
        };
        let answer = self.ports.webhooks.post(Post { url, headers, body }).await?;
        let verdict = Verdict::of_http(answer.status, answer.retry_after);
        let error = match verdict {
            Verdict::Taken => String::new(),
            _ if answer.excerpt.is_empty() => format!("the receiver answered {}", answer.status),
            _ => format!("the receiver answered {}: {}", answer.status, answer.excerpt),
        };
        Ok((verdict, Some(answer.status), error))
    }

    /// Returns the headers of Standard Webhooks, with a signature by each valid secret. Before an admin has
    /// created the first one, there is none.
    fn signed(
        &self,
        message_id: &str,
        at: Timestamp,
        body: &str,
        secrets: &[KeptSigningSecret],
    ) -> Result<Vec<(&'static str, String)>, Failure> {
        let sign = |kept: &KeptSigningSecret| {
            let secret: SigningSecret =
                self.open(&KeptSigningSecret::associated_data(kept.id), &kept.secret)?.try_into()?;
            Ok(secret.sign(message_id, at, body))
        };
        let signatures: Vec<String> = secrets.iter().map(sign).collect::<Result<_, Failure>>()?;
        let mut headers =
            vec![("webhook-id", message_id.to_owned()), ("webhook-timestamp", at.timestamp().to_string())];
        if !signatures.is_empty() {
            headers.push(("webhook-signature", signatures.join(" ")));
        }
        Ok(headers)
    }

    async fn mail(
        &self,
        event: &Event,
        words: &Document,
        config: &SmtpConfig,
    ) -> Result<(Verdict, Option<u16>, String), Failure> {
        let to = self.recipients(config).await?;
        if to.is_empty() {
            let nobody = "no recipients: the organization has no admin, and `to` is empty".to_owned();
            return Ok((Verdict::Refused, None, nobody));
        }
        let login = match (&config.username, &config.password) {
            (Some(username), Some(password)) => {
                let password = Secret::new(self.open(&SmtpConfig::associated_data(config.id), password)?);
                Some(MailLogin { username: username.clone(), password })
            }
            _ => None,
        };
        let (subject, text) = text::mail(words);
        let mail = Mail {
            host: config.host.clone(),
            port: config.port,
            security: config.security,
            login,
            from: (config.from_name.clone(), config.from_email.clone()),
            to,
            message_id: event.message_id(),
            subject,
            text,
        };
        let Sent { code, left_out } = self.ports.mailer.send(mail).await?;
        Ok((Verdict::of_smtp(code), Some(code), left_out.join("; ")))
    }

    /// Returns the recipients of a mail: those of the configuration, or else the admins.
    async fn recipients(&self, config: &SmtpConfig) -> Result<Vec<EmailAddress>, StoreError> {
        if !config.to.addresses().is_empty() {
            return Ok(config.to.addresses().to_vec());
        }
        let detail = self.ports.organizations.detail(Scope::of_record(config.organization_id)).await?;
        let members = detail.map(|detail| detail.members).unwrap_or_default();
        let admins = members.into_iter().filter(|member| member.membership.role == Role::Admin);
        Ok(admins.map(|member| member.user.email).collect())
    }

    fn open(&self, place: &str, sealed: &Sealed) -> Result<String, Failure> {
        let plain = self.ports.secrets.open(place, sealed)?;
        Ok(String::from_utf8_lossy(plain.expose()).into_owned())
    }

    /// Returns the tail of the log of a failure, oldest first.
    async fn last_lines(&self, scope: Scope, event: &Event) -> Result<Vec<String>, StoreError> {
        let id = |fact| event.facts.get(&fact).map(String::as_str).unwrap_or_default();
        match event.kind {
            EventKind::DeploymentFailed => {
                let (Ok(application), Ok(deployment)) =
                    (id(Fact::ApplicationId).parse(), id(Fact::DeploymentId).parse())
                else {
                    return Ok(Vec::new());
                };
                let Ok(newest) = PageRequest::new(1, LAST_LINES, LAST_LINES) else { return Ok(Vec::new()) };
                let filter = LogFilter { deployment: Some(deployment), ..LogFilter::default() };
                let page = self.ports.logs.page(scope, application, &filter, newest).await?;
                let lines = page.map(|page| page.items).unwrap_or_default();
                Ok(lines.into_iter().rev().map(|line| line.text).collect())
            }
            EventKind::ExtensionFailed => {
                let Ok(execution) = id(Fact::ExecutionId).parse() else { return Ok(Vec::new()) };
                let Some((run, _steps)) = self.ports.executions.get(scope, execution).await? else {
                    return Ok(Vec::new());
                };
                let after = (run.log_seq - LAST_LINES).max(0);
                let lines = self.ports.executions.lines(scope, execution, after, LAST_LINES).await?;
                Ok(lines.unwrap_or_default().into_iter().map(|line| line.text).collect())
            }
            _ => Ok(Vec::new()),
        }
    }

    fn url(&self, event: &Event) -> Option<String> {
        let base = self.public_url.as_deref()?.trim_end_matches('/');
        let about = [
            (Fact::DeploymentId, "deploy/application/deployments"),
            (Fact::ExecutionId, "extensions/execution"),
        ];
        let (id, path) = about.iter().find_map(|(fact, path)| Some((event.facts.get(fact)?, path)))?;
        Some(format!("{base}/api/v1/{path}/{id}"))
    }
}

/// The error of a message that could not be sent.
enum Failure {
    Send(SendError),
    /// The stored configuration is invalid.
    Unusable(String),
    Store(StoreError),
}

impl From<SendError> for Failure {
    fn from(error: SendError) -> Self {
        Self::Send(error)
    }
}

impl From<InvalidValue> for Failure {
    fn from(error: InvalidValue) -> Self {
        Self::Unusable(error.to_string())
    }
}

impl From<SecretBoxError> for Failure {
    fn from(_cannot_open: SecretBoxError) -> Self {
        Self::Unusable("cannot be decrypted with this installation's key".to_owned())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn failed(failure: &Failure) -> (Verdict, Option<u16>, String) {
    match failure {
        Failure::Send(SendError::Answered { code, text }) => {
            let error = format!("the server answered {code}: {text}");
            (Verdict::of_smtp(*code), Some(*code), error)
        }
        // The host name may resolve to another address next time.
        Failure::Send(SendError::Forbidden(error) | SendError::Unreachable(error)) => {
            (Verdict::Later(None), None, error.clone())
        }
        Failure::Unusable(why) => (
            Verdict::Refused,
            None,
            format!("the stored configuration of the channel {why}: configure it again"),
        ),
        Failure::Store(error) => {
            tracing::warn!(%error, "recipients could not be read");
            (Verdict::Later(None), None, "the database is not available".to_owned())
        }
    }
}
