//! The channels of the organization, and their forms.

use actix_web::HttpResponse;
use launchway_application::{
    Error,
    notifications::{NewSmtp, NewWebhook, SmtpChange, WebhookChange},
};
use launchway_domain::{
    applications::Port,
    notifications::{ChannelKind, MailSecurity, Recipients, SmtpConfig, WebhookKind, WebhookUrl},
    secret::Secret,
    users::EmailAddress,
    value::InvalidValue,
};

use super::{finish, show};
use crate::{
    applications::{State, port},
    context::PageContext,
    error::PageError,
    fields::Fields,
    form::{Form, Submitted},
    pages::Choice,
};

/// The titles of the channels by HTTP, and examples of their URLs.
const WEBHOOKS: &[(WebhookKind, &str, &str)] = &[
    (WebhookKind::Slack, "Slack", "https://hooks.slack.com/services/…"),
    (WebhookKind::Discord, "Discord", "https://discord.com/api/webhooks/…"),
    (WebhookKind::Generic, "Webhook", "https://example.com/hooks/launchway"),
];

/// A channel by HTTP.
pub(super) struct ChannelCard {
    pub(super) kind: &'static str,
    pub(super) title: &'static str,
    pub(super) example: &'static str,
    pub(super) state: State,
    /// The origin of the URL; empty if the channel is not configured.
    pub(super) address: String,
    /// The URL in the form.
    pub(super) url: String,
    pub(super) is_active: bool,
    pub(super) is_signed: bool,
    pub(super) is_open: bool,
}

/// The mail server.
pub(super) struct MailCard {
    pub(super) state: State,
    pub(super) is_configured: bool,
    pub(super) is_active: bool,
    pub(super) about: String,
    /// The values of the form.
    pub(super) form: Form,
    pub(super) securities: Vec<Choice>,
    pub(super) is_open: bool,
}

/// Returns the state of a channel.
fn state(is_active: Option<bool>) -> State {
    match is_active {
        Some(true) => State { text: "active", kind: "good" },
        Some(false) => State { text: "disabled", kind: "off" },
        None => State { text: "not set up", kind: "off" },
    }
}

/// Returns what was found; `None` if it does not exist.
fn found<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the channels by HTTP, with what was typed into a form that was refused.
pub(super) async fn cards(context: &PageContext, refused: Option<&Form>) -> Result<Vec<ChannelCard>, Error> {
    let mut cards = Vec::new();
    for &(kind, title, example) in WEBHOOKS {
        let shown = found(context.services().notifications.webhook(&context.visitor, kind).await)?;
        let typed = refused.filter(|form| form.text("type") == kind.as_str());
        let url = shown.as_ref().map(|shown| shown.url.clone()).unwrap_or_default();
        // Who may not change the channel gets it masked already.
        let masked = WebhookUrl::try_from(url.clone()).map_or_else(|_masked| url.clone(), |url| url.masked());
        cards.push(ChannelCard {
            kind: kind.as_str(),
            title,
            example,
            state: state(shown.as_ref().map(|shown| shown.config.is_active)),
            address: if shown.is_some() { masked } else { String::new() },
            url: typed.map_or(url, |form| form.text("webhook_url").to_owned()),
            is_active: shown.is_some_and(|shown| shown.config.is_active),
            is_signed: kind == WebhookKind::Generic,
            is_open: typed.is_some(),
        });
    }
    Ok(cards)
}

/// Returns the mail server, with what was typed into a form that was refused.
pub(super) async fn mail_card(context: &PageContext, refused: Option<&Form>) -> Result<MailCard, Error> {
    let config = found(context.services().notifications.smtp(&context.visitor).await)?;
    let typed = refused.filter(|form| form.is_checked("host"));
    let form = typed.cloned().unwrap_or_else(|| config.as_ref().map(mail_form).unwrap_or_default());
    Ok(MailCard {
        state: state(config.as_ref().map(|config| config.is_active)),
        is_configured: config.is_some(),
        is_active: config.as_ref().is_some_and(|config| config.is_active),
        about: config.as_ref().map(mail_text).unwrap_or_default(),
        securities: MailSecurity::ALL
            .iter()
            .map(|each| Choice::named(each.as_str(), form.text("security")))
            .collect(),
        form,
        is_open: typed.is_some(),
    })
}

fn addresses(config: &SmtpConfig) -> String {
    config.to.addresses().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn mail_text(config: &SmtpConfig) -> String {
    let to = match config.to.addresses() {
        [] => "the admins of the organization".to_owned(),
        _ => addresses(config),
    };
    format!("From {} by {}:{} to {to}", config.from_email, config.host, config.port)
}

/// Returns the configuration as the values of its form. The password is never shown.
fn mail_form(config: &SmtpConfig) -> Form {
    Form::default()
        .with("host", config.host.to_string())
        .with("port", config.port.to_string())
        .with("security", config.security.as_str())
        .with("username", config.username.as_ref().map(ToString::to_string).unwrap_or_default())
        .with("from_email", config.from_email.to_string())
        .with("from_name", config.from_name.to_string())
        .with("to", addresses(config))
}

/// Reads the channel that a button belongs to.
pub(super) fn kind(form: &Form) -> Result<ChannelKind, Error> {
    form.text("channel").parse().map_err(|invalid| Error::Invalid(format!("channel {invalid}")))
}

/// Returns the kind of a channel by HTTP; `None` for mail.
fn webhook_kind(kind: ChannelKind) -> Option<WebhookKind> {
    WEBHOOKS.iter().map(|(kind, ..)| *kind).find(|each| ChannelKind::from(*each) == kind)
}

pub(super) async fn save_webhook(submitted: Submitted) -> Result<HttpResponse, PageError> {
    let outcome = store_webhook(&submitted).await;
    finish(&submitted, outcome.map(|()| "saved")).await
}

async fn store_webhook(Submitted { context, form }: &Submitted) -> Result<(), Error> {
    let mut fields = Fields::of(form);
    let kind = fields.required("type");
    let url = fields.required_by("webhook_url", |text| WebhookUrl::try_from(text.trim().to_owned()));
    let (Ok(kind), Ok(url)) = (kind, url) else { return Err(fields.error()) };
    let (notifications, visitor) = (&context.services().notifications, &context.visitor);
    match found(notifications.webhook(visitor, kind).await)? {
        Some(_) => {
            let change = WebhookChange { url: Some(url), is_active: None };
            notifications.update_webhook(visitor, kind, change).await.map(drop)
        }
        None => {
            let new = NewWebhook { kind, url, is_active: true };
            notifications.create_webhook(visitor, new, None).await.map(drop)
        }
    }
}

pub(super) async fn save_smtp(submitted: Submitted) -> Result<HttpResponse, PageError> {
    let outcome = store_smtp(&submitted).await;
    finish(&submitted, outcome.map(|()| "saved")).await
}

async fn store_smtp(Submitted { context, form }: &Submitted) -> Result<(), Error> {
    let change = mail_change(form)?;
    let (notifications, visitor) = (&context.services().notifications, &context.visitor);
    if found(notifications.smtp(visitor).await)?.is_some() {
        return notifications.update_smtp(visitor, change).await.map(drop);
    }
    let SmtpChange { host, port, security, username, password, from_email, from_name, to, .. } = change;
    let (Some(host), Some(from_email)) = (host, from_email) else {
        return Err(Error::Invalid("host and from_email are required".to_owned()));
    };
    let new = NewSmtp {
        host,
        port,
        security: security.unwrap_or(MailSecurity::StartTls),
        username,
        password,
        from_email,
        from_name: from_name.unwrap_or_default(),
        to: to.unwrap_or_default(),
    };
    notifications.create_smtp(visitor, new, None).await.map(drop)
}

fn mail_change(form: &Form) -> Result<SmtpChange, Error> {
    let mut fields = Fields::of(form);
    let (host, security) = (fields.required("host"), fields.required("security"));
    let port = fields.optional_by("port", port);
    let (username, from_name) = (fields.optional("username"), fields.optional("from_name"));
    let (from_email, to) = (fields.required("from_email"), fields.optional_by("to", recipients));
    let (Ok(host), Ok(security), Ok(port), Ok(username)) = (host, security, port, username) else {
        return Err(fields.error());
    };
    let (Ok(from_name), Ok(from_email), Ok(to)) = (from_name, from_email, to) else {
        return Err(fields.error());
    };
    let password = form.text("password");
    Ok(SmtpChange {
        host: Some(host),
        port: port.map(Port::get),
        security: Some(security),
        username,
        // An empty field keeps the stored one.
        password: (!password.is_empty()).then(|| Secret::new(password.to_owned())),
        from_email: Some(from_email),
        from_name,
        to: Some(to.unwrap_or_default()),
        is_active: None,
    })
}

/// Reads addresses, separated by commas.
fn recipients(text: &str) -> Result<Recipients, InvalidValue> {
    let addresses = text.split(',').map(str::trim).filter(|address| !address.is_empty());
    addresses.map(str::parse::<EmailAddress>).collect::<Result<Vec<_>, _>>()?.try_into()
}

/// Enables or disables a channel.
pub(super) async fn switch(submitted: Submitted) -> Result<HttpResponse, PageError> {
    let is_active = Some(submitted.form.is_checked("is_active"));
    let Submitted { context, form } = &submitted;
    let (notifications, visitor) = (&context.services().notifications, &context.visitor);
    let outcome = match kind(form).map(webhook_kind) {
        Ok(Some(kind)) => {
            let change = WebhookChange { url: None, is_active };
            notifications.update_webhook(visitor, kind, change).await.map(drop)
        }
        Ok(None) => {
            let change = SmtpChange { is_active, ..SmtpChange::default() };
            notifications.update_smtp(visitor, change).await.map(drop)
        }
        Err(error) => Err(error),
    };
    finish(&submitted, outcome.map(|()| "saved")).await
}

pub(super) async fn delete(submitted: Submitted) -> Result<HttpResponse, PageError> {
    let Submitted { context, form } = &submitted;
    let (notifications, visitor) = (&context.services().notifications, &context.visitor);
    let outcome = match kind(form).map(webhook_kind) {
        Ok(Some(kind)) => notifications.delete_webhook(visitor, kind).await,
        Ok(None) => notifications.delete_smtp(visitor, None).await,
        Err(error) => Err(error),
    };
    finish(&submitted, outcome.map(|()| "channel-deleted")).await
}

/// Shows a new signing secret, once.
pub(super) async fn rotate_secret(submitted: Submitted) -> Result<HttpResponse, PageError> {
    let context = &submitted.context;
    match context.services().notifications.rotate_signing_secret(&context.visitor).await {
        Ok(secret) => show(context, None, Some(secret.expose())).await,
        Err(error) => finish(&submitted, Err(error)).await,
    }
}
