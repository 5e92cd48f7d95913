//! The request bodies of notifications.

use crate::input::input;
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

input! {
    pub(crate) struct CreateWebhook {
        /// `slack`, `discord` or `generic`.
        kind as "type": WebhookKind,
        webhook_url: WebhookUrl,
        /// True by default.
        is_active: Option<bool>,
    }
}

impl From<CreateWebhook> for NewWebhook {
    fn from(CreateWebhook { kind, webhook_url, is_active }: CreateWebhook) -> Self {
        Self { kind, url: webhook_url, is_active: is_active.unwrap_or(true) }
    }
}

input! {
    /// Absent fields keep their values.
    pub(crate) struct UpdateWebhook {
        /// The channel to update: `slack`, `discord` or `generic`.
        kind as "type": WebhookKind,
        webhook_url: Option<WebhookUrl>,
        is_active: Option<bool>,
    }
}

impl From<UpdateWebhook> for (WebhookKind, WebhookChange) {
    fn from(UpdateWebhook { kind, webhook_url, is_active }: UpdateWebhook) -> Self {
        (kind, WebhookChange { url: webhook_url, is_active })
    }
}

input! {
    pub(crate) struct CreateSmtp {
        host: MailHost,
        /// By default 587 for `starttls`, 465 for `tls` and 25 for `none`.
        port: Option<Port>,
        username: Option<MailUsername>,
        /// Never shown again.
        password: Option<Secret<String>>,
        from_email: EmailAddress,
        from_name: Option<SenderName>,
        /// At most 50 addresses; the organization's admins by default.
        to: Option<Recipients>,
        /// `starttls`, `tls` or `none`; `starttls` by default.
        security: Option<MailSecurity>,
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

input! {
    /// Absent fields keep their values.
    pub(crate) struct UpdateSmtp {
        host: Option<MailHost>,
        port: Option<Port>,
        username: Option<MailUsername>,
        password: Option<Secret<String>>,
        from_email: Option<EmailAddress>,
        from_name: Option<SenderName>,
        /// An empty list means the organization's admins.
        to: Option<Recipients>,
        security: Option<MailSecurity>,
        /// True if mail is sent.
        is_active: Option<bool>,
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

input! {
    pub(crate) struct DeleteSmtp {
        /// The organization's only one by default.
        pub(super) id: Option<SmtpConfigId>,
    }
}

input! {
    pub(crate) struct TryChannel {
        /// The type of the channel: `slack`, `discord`, `generic` or `smtp`; formerly `channel`.
        pub(super) channel as "type" | "channel": ChannelKind,
    }
}
