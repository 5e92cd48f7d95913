//! The request bodies of notifications.

use launchway_application::notifications::{NewSmtp, NewWebhook, SmtpChange, WebhookChange};
use launchway_domain::{
    applications::Port,
    ids::SmtpConfigId,
    notifications::{
        ChannelKind, MailHost, MailSecurity, MailUsername, Recipients, SenderName, WebhookKind, WebhookUrl,
    },
    secret::Secret,
    users::EmailAddress,
};
use utoipa::ToSchema;

use crate::{body::Input, error::ApiError, fields::Fields};

#[derive(ToSchema)]
pub(crate) struct CreateWebhook {
    /// `slack`, `discord` or `generic`.
    #[schema(rename = "type", value_type = String, example = "slack")]
    kind: WebhookKind,
    #[schema(value_type = String, max_length = 2048, example = "https://hooks.example.com/services/T0/B0/x")]
    webhook_url: WebhookUrl,
    /// True by default.
    is_active: Option<bool>,
}

impl Input for CreateWebhook {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let kind = fields.required("type");
        let webhook_url = fields.required("webhook_url");
        let is_active = fields.optional("is_active");
        fields.finish()?;
        Ok(Self { kind: kind?, webhook_url: webhook_url?, is_active: is_active? })
    }
}

impl From<CreateWebhook> for NewWebhook {
    fn from(CreateWebhook { kind, webhook_url, is_active }: CreateWebhook) -> Self {
        Self { kind, url: webhook_url, is_active: is_active.unwrap_or(true) }
    }
}

/// Absent fields keep their values.
#[derive(ToSchema)]
pub(crate) struct UpdateWebhook {
    /// The channel to update: `slack`, `discord` or `generic`.
    #[schema(rename = "type", value_type = String, example = "slack")]
    kind: WebhookKind,
    #[schema(value_type = Option<String>, max_length = 2048)]
    webhook_url: Option<WebhookUrl>,
    is_active: Option<bool>,
}

impl Input for UpdateWebhook {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let kind = fields.required("type");
        let webhook_url = fields.optional("webhook_url");
        let is_active = fields.optional("is_active");
        fields.finish()?;
        Ok(Self { kind: kind?, webhook_url: webhook_url?, is_active: is_active? })
    }
}

impl From<UpdateWebhook> for (WebhookKind, WebhookChange) {
    fn from(UpdateWebhook { kind, webhook_url, is_active }: UpdateWebhook) -> Self {
        (kind, WebhookChange { url: webhook_url, is_active })
    }
}

#[derive(ToSchema)]
pub(crate) struct CreateSmtp {
    #[schema(value_type = String, max_length = 253, example = "smtp.example.com")]
    host: MailHost,
    /// By default 587 for `starttls`, 465 for `tls` and 25 for `none`.
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 65535)]
    port: Option<Port>,
    #[schema(value_type = Option<String>, max_length = 255)]
    username: Option<MailUsername>,
    /// Never shown again.
    #[schema(value_type = Option<String>)]
    password: Option<Secret<String>>,
    #[schema(value_type = String, example = "launchway@example.com")]
    from_email: EmailAddress,
    #[schema(value_type = Option<String>, max_length = 100)]
    from_name: Option<SenderName>,
    /// At most 50 addresses; the organization's admins by default.
    #[schema(value_type = Option<Vec<String>>, max_items = 50)]
    to: Option<Recipients>,
    /// `starttls`, `tls` or `none`; `starttls` by default.
    #[schema(value_type = Option<String>, example = "starttls")]
    security: Option<MailSecurity>,
}

impl Input for CreateSmtp {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let host = fields.required("host");
        let port = fields.optional("port");
        let username = fields.optional("username");
        let password = fields.optional("password");
        let from_email = fields.required("from_email");
        let from_name = fields.optional("from_name");
        let to = fields.optional("to");
        let security = fields.optional("security");
        fields.finish()?;
        Ok(Self {
            host: host?,
            port: port?,
            username: username?,
            password: password?,
            from_email: from_email?,
            from_name: from_name?,
            to: to?,
            security: security?,
        })
    }
}

impl From<CreateSmtp> for NewSmtp {
    fn from(body: CreateSmtp) -> Self {
        let CreateSmtp { host, port, username, password, from_email, from_name, to, security } = body;
        Self {
            host,
            port: port.map(Port::get),
            security: security.unwrap_or(MailSecurity::StartTls),
            username,
            password,
            from_email,
            from_name: from_name.unwrap_or_default(),
            to: to.unwrap_or_default(),
        }
    }
}

/// Absent fields keep their values.
#[derive(ToSchema)]
pub(crate) struct UpdateSmtp {
    #[schema(value_type = Option<String>, max_length = 253)]
    host: Option<MailHost>,
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 65535)]
    port: Option<Port>,
    #[schema(value_type = Option<String>, max_length = 255)]
    username: Option<MailUsername>,
    #[schema(value_type = Option<String>)]
    password: Option<Secret<String>>,
    #[schema(value_type = Option<String>)]
    from_email: Option<EmailAddress>,
    #[schema(value_type = Option<String>, max_length = 100)]
    from_name: Option<SenderName>,
    /// An empty list means the organization's admins.
    #[schema(value_type = Option<Vec<String>>, max_items = 50)]
    to: Option<Recipients>,
    #[schema(value_type = Option<String>)]
    security: Option<MailSecurity>,
    /// True if mail is sent.
    is_active: Option<bool>,
}

impl Input for UpdateSmtp {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let host = fields.optional("host");
        let port = fields.optional("port");
        let username = fields.optional("username");
        let password = fields.optional("password");
        let from_email = fields.optional("from_email");
        let from_name = fields.optional("from_name");
        let to = fields.optional("to");
        let security = fields.optional("security");
        let is_active = fields.optional("is_active");
        fields.finish()?;
        Ok(Self {
            host: host?,
            port: port?,
            username: username?,
            password: password?,
            from_email: from_email?,
            from_name: from_name?,
            to: to?,
            security: security?,
            is_active: is_active?,
        })
    }
}

impl From<UpdateSmtp> for SmtpChange {
    fn from(body: UpdateSmtp) -> Self {
        let UpdateSmtp { host, port, username, password, from_email, from_name, to, security, is_active } =
            body;
        let port = port.map(Port::get);
        Self { host, port, security, username, password, from_email, from_name, to, is_active }
    }
}

#[derive(ToSchema)]
pub(crate) struct DeleteSmtp {
    /// The organization's only one by default.
    #[schema(value_type = Option<String>)]
    pub(super) id: Option<SmtpConfigId>,
}

impl Input for DeleteSmtp {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let id = fields.id("id");
        fields.finish()?;
        Ok(Self { id: id? })
    }
}

#[derive(ToSchema)]
pub(crate) struct TryChannel {
    /// `slack`, `discord`, `generic` or `smtp`.
    #[schema(value_type = String, example = "slack")]
    pub(super) channel: ChannelKind,
}

impl Input for TryChannel {
    fn read(mut fields: Fields) -> Result<Self, ApiError> {
        let channel = fields.required("channel");
        fields.finish()?;
        Ok(Self { channel: channel? })
    }
}
