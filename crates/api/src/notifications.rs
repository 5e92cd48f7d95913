//! The endpoints of `/api/v1/notification`.

mod requests;
mod views;

use actix_web::{
    HttpResponse,
    web::{Data, Path},
};
use launchway_domain::{
    auth::{Action, Permission, Resource},
    notifications::{DeliveryFilter, WebhookKind},
};

use self::{
    requests::{CreateSmtp, CreateWebhook, DeleteSmtp, TryChannel, UpdateSmtp, UpdateWebhook},
    views::{DeliveriesView, DeliveryView, SigningSecretView, SmtpConfigView, TriedView, WebhookConfigView},
};
use crate::{
    Api,
    body::{Body, NoFields},
    caller::Caller,
    envelope::{Done, Envelope, Nothing, Reply, done, success},
    error::{ApiError, Code, path_id},
    idempotent::Idempotent,
    pages::PageSizes,
    query::Query,
    routes::Routes,
};

/// The permission of requests with an `Idempotency-Key`, also when they are repeated.
const CREATE: Permission = Permission::new(Resource::Notification, Action::Create);

pub(crate) fn routes(routes: &mut Routes) {
    routes
        .post("/api/v1/notification/webhook", create_webhook)
        .post("/api/v1/api/v1/notification/webhook", create_webhook_by_doubled_prefix)
        .put("/api/v1/notification/webhook", update_webhook)
        .get("/api/v1/notification/webhook/{type}", webhook)
        .delete("/api/v1/notification/webhook/{type}", delete_webhook)
        .post("/api/v1/notification/webhook/generic/secret", rotate_signing_secret)
        .get("/api/v1/notification/smtp", smtp)
        .post("/api/v1/notification/smtp", create_smtp)
        .put("/api/v1/notification/smtp", update_smtp)
        .delete("/api/v1/notification/smtp", delete_smtp)
        .delete("/api/v1/api/v1/notification/smtp", delete_smtp_by_doubled_prefix)
        .post("/api/v1/notification/test", try_channel)
        .get("/api/v1/notification/deliveries", list_deliveries)
        .post("/api/v1/notification/deliveries/{delivery_id}/replay", replay_delivery);
}

const PAGES: PageSizes = PageSizes { default: 20, largest: 100 };

/// Create a webhook channel
///
/// One for each organization and type. URLs with private or loopback addresses are rejected unless the
/// operator allows them.
#[utoipa::path(post, path = "/api/v1/notification/webhook", tag = "notifications", security(("bearer" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated key returns the first response")),
    request_body = CreateWebhook, responses((status = 200, body = Done)))]
pub(crate) async fn create_webhook(
    api: Data<Api>,
    caller: Caller,
    body: Idempotent<CreateWebhook>,
) -> Result<HttpResponse, ApiError> {
    let (wish, once) = body.read(&caller, CREATE).await?;
    let notifications = &api.services.notifications;
    let make = async |key| notifications.create_webhook(&caller, wish.into(), key).await;
    once.answer_done(&api, "Webhook config created successfully", make).await
}

/// Create a webhook channel, as by `/api/v1/notification/webhook`
#[utoipa::path(post, path = "/api/v1/api/v1/notification/webhook", tag = "notifications",
    security(("bearer" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated key returns the first response")),
    request_body = CreateWebhook, responses((status = 200, body = Done)))]
pub(crate) async fn create_webhook_by_doubled_prefix(
    api: Data<Api>,
    caller: Caller,
    body: Idempotent<CreateWebhook>,
) -> Result<HttpResponse, ApiError> {
    create_webhook(api, caller, body).await
}

/// Update a webhook channel
///
/// A disabled channel gets no more messages, and its pending deliveries are given up.
#[utoipa::path(put, path = "/api/v1/notification/webhook", tag = "notifications", security(("bearer" = [])),
    request_body = UpdateWebhook, responses((status = 200, body = Envelope<WebhookConfigView>)))]
pub(crate) async fn update_webhook(
    api: Data<Api>,
    caller: Caller,
    body: Body<UpdateWebhook>,
) -> Reply<WebhookConfigView> {
    let (kind, change) = body.read().await?.into();
    let shown = api.services.notifications.update_webhook(&caller, kind, change).await?;
    Ok(success("Webhook config updated successfully", shown.into()))
}

/// Get a webhook channel
///
/// The URL is shown in full only to callers who may change it.
#[utoipa::path(get, path = "/api/v1/notification/webhook/{type}", tag = "notifications",
    security(("bearer" = [])), params(("type" = String, Path, description = "`slack`, `discord` or `generic`")),
    responses((status = 200, body = Envelope<WebhookConfigView>)))]
pub(crate) async fn webhook(api: Data<Api>, caller: Caller, path: Path<String>) -> Reply<WebhookConfigView> {
    let shown = api.services.notifications.webhook(&caller, kind_in(&path)?).await?;
    Ok(success("Webhook config retrieved successfully", shown.into()))
}

/// Delete a webhook channel
#[utoipa::path(delete, path = "/api/v1/notification/webhook/{type}", tag = "notifications",
    security(("bearer" = [])), params(("type" = String, Path, description = "`slack`, `discord` or `generic`")),
    responses((status = 200, body = Envelope<Nothing>)))]
pub(crate) async fn delete_webhook(api: Data<Api>, caller: Caller, path: Path<String>) -> Reply<Nothing> {
    api.services.notifications.delete_webhook(&caller, kind_in(&path)?).await?;
    Ok(success("Webhook config deleted successfully", Nothing))
}

/// Rotate the signing secret of the generic webhook channel
///
/// Signatures follow Standard Webhooks. The previous secret signs for 24 hours too.
#[utoipa::path(post, path = "/api/v1/notification/webhook/generic/secret", tag = "notifications",
    security(("bearer" = [])), responses((status = 200, body = Envelope<SigningSecretView>)))]
pub(crate) async fn rotate_signing_secret(
    api: Data<Api>,
    caller: Caller,
    body: Body<NoFields>,
) -> Reply<SigningSecretView> {
    body.read().await?;
    let secret = api.services.notifications.rotate_signing_secret(&caller).await?.expose();
    Ok(success("Signing secret replaced successfully", SigningSecretView { secret }))
}

/// Get the mail server of this organization
#[utoipa::path(get, path = "/api/v1/notification/smtp", tag = "notifications", security(("bearer" = [])),
    responses((status = 200, body = Envelope<SmtpConfigView>)))]
pub(crate) async fn smtp(api: Data<Api>, caller: Caller) -> Reply<SmtpConfigView> {
    let config = api.services.notifications.smtp(&caller).await?;
    Ok(success("SMTP configuration retrieved successfully", config.into()))
}

/// Configure the mail server of this organization
///
/// Mail goes to the addresses in `to`, or to the organization's admins. Unencrypted connections are
/// possible only to addresses that the operator allows.
#[utoipa::path(post, path = "/api/v1/notification/smtp", tag = "notifications", security(("bearer" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated key returns the first response")),
    request_body = CreateSmtp, responses((status = 200, body = Envelope<SmtpConfigView>)))]
pub(crate) async fn create_smtp(
    api: Data<Api>,
    caller: Caller,
    body: Idempotent<CreateSmtp>,
) -> Result<HttpResponse, ApiError> {
    let notifications = &api.services.notifications;
    let (wish, once) = body.read(&caller, CREATE).await?;
    once.answer(
        &api,
        "SMTP configuration created successfully",
        async |key| notifications.create_smtp(&caller, wish.into(), key).await,
        async |_id| notifications.smtp(&caller).await,
        SmtpConfigView::from,
    )
    .await
}

/// Update the mail server
///
/// Absent fields keep their values.
#[utoipa::path(put, path = "/api/v1/notification/smtp", tag = "notifications", security(("bearer" = [])),
    request_body = UpdateSmtp, responses((status = 200, body = Envelope<SmtpConfigView>)))]
pub(crate) async fn update_smtp(
    api: Data<Api>,
    caller: Caller,
    body: Body<UpdateSmtp>,
) -> Reply<SmtpConfigView> {
    let change = body.read().await?.into();
    let config = api.services.notifications.update_smtp(&caller, change).await?;
    Ok(success("SMTP configuration updated successfully", config.into()))
}

/// Delete the mail server
#[utoipa::path(delete, path = "/api/v1/notification/smtp", tag = "notifications", security(("bearer" = [])),
    params(("id" = Option<String>, Query, description = "Id of the configuration; default: the only one")),
    request_body = Option<DeleteSmtp>, responses((status = 200, body = Done)))]
pub(crate) async fn delete_smtp(
    api: Data<Api>,
    caller: Caller,
    query: Query,
    body: Body<DeleteSmtp>,
) -> Result<Done, ApiError> {
    let mut query = query.read()?;
    let in_query = query.id("id");
    query.finish_query()?;
    let id = body.read().await?.id.or(in_query?);
    api.services.notifications.delete_smtp(&caller, id).await?;
    Ok(done("SMTP configuration deleted successfully"))
}

/// Delete the mail server, as by `/api/v1/notification/smtp`
#[utoipa::path(delete, path = "/api/v1/api/v1/notification/smtp", tag = "notifications",
    security(("bearer" = [])),
    params(("id" = Option<String>, Query, description = "Id of the configuration; default: the only one")),
    request_body = Option<DeleteSmtp>, responses((status = 200, body = Done)))]
pub(crate) async fn delete_smtp_by_doubled_prefix(
    api: Data<Api>,
    caller: Caller,
    query: Query,
    body: Body<DeleteSmtp>,
) -> Result<Done, ApiError> {
    delete_smtp(api, caller, query, body).await
}

/// Send a test message
///
/// Works with a disabled channel too. It is not retried.
#[utoipa::path(post, path = "/api/v1/notification/test", tag = "notifications", security(("bearer" = [])),
    request_body = TryChannel, responses((status = 200, body = Envelope<TriedView>)))]
pub(crate) async fn try_channel(api: Data<Api>, caller: Caller, body: Body<TryChannel>) -> Reply<TriedView> {
    let TryChannel { channel } = body.read().await?;
    let tried = api.services.notifications.try_channel(&caller, channel).await?;
    let message = match tried.delivered {
        true => "Test message delivered",
        false => "Test message not delivered",
    };
    Ok(success(message, tried.into()))
}

/// List the deliveries of this organization, newest first
#[utoipa::path(get, path = "/api/v1/notification/deliveries", tag = "notifications", security(("bearer" = [])),
    params(
        ("state" = Option<String>, Query, description = "`pending`, `sending`, `delivered` or `dead`"),
        ("channel" = Option<String>, Query, description = "`slack`, `discord`, `generic` or `smtp`"),
        ("page" = Option<i64>, Query, description = "Page number, from 1"),
        ("page_size" = Option<i64>, Query, description = "Page size: default 20, at most 100; also `pageSize`"),
    ),
    responses((status = 200, body = Envelope<DeliveriesView>)))]
pub(crate) async fn list_deliveries(api: Data<Api>, caller: Caller, query: Query) -> Reply<DeliveriesView> {
    let mut query = query.read()?;
    let state = query.optional("state");
    let channel = query.optional("channel");
    let page = PAGES.take(&mut query);
    query.finish_query()?;
    let filter = DeliveryFilter { state: state?, channel: channel? };
    let found = api.services.notifications.deliveries(&caller, filter, page?).await?;
    Ok(success("Deliveries retrieved successfully", found.into()))
}

/// Retry a dead delivery
#[utoipa::path(post, path = "/api/v1/notification/deliveries/{delivery_id}/replay", tag = "notifications",
    security(("bearer" = [])), params(("delivery_id" = String, Path, description = "Id of a dead delivery")),
    responses((status = 200, body = Envelope<DeliveryView>)))]
pub(crate) async fn replay_delivery(
    api: Data<Api>,
    caller: Caller,
    path: Path<String>,
    body: Body<NoFields>,
) -> Reply<DeliveryView> {
    body.read().await?;
    let id = path_id("delivery_id", &path)?;
    let delivery = api.services.notifications.replay(&caller, id).await?;
    Ok(success("Delivery queued for replay", delivery.into()))
}

fn kind_in(path: &str) -> Result<WebhookKind, ApiError> {
    let refused = |refused| ApiError::new(Code::ValidationFailed, format!("type {refused}"));
    path.to_owned().try_into().map_err(refused)
}
