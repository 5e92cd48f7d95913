//! The endpoints of `/api/v1/notification`.

mod requests;

use actix_web::web::Data;
use launchway_domain::{
    auth::{Action, Permission, Resource},
    ids::DeliveryId,
    notifications::{ChannelKind, DeliveryFilter, DeliveryState, WebhookKind},
};

use self::requests::{CreateSmtp, CreateWebhook, DeleteSmtp, TryChannel, UpdateSmtp, UpdateWebhook};
use crate::{
    Api,
    body::Body,
    caller::Caller,
    endpoint::Endpoint,
    envelope::{Done, Envelope, Nothing, Reply, done, success},
    error::{ApiError, Code},
    idempotent::{Idempotent, Stored},
    input::{NoFields, input},
    pages::Paged,
    query::{Path, Query},
    views::notifications::{
        DeliveriesView, DeliveryView, SigningSecretView, SmtpConfigView, TriedView, WebhookConfigView,
    },
};

const CREATE: Permission = Permission::new(Resource::Notification, Action::Create);
const READ: Permission = Permission::new(Resource::Notification, Action::Read);
const UPDATE: Permission = Permission::new(Resource::Notification, Action::Update);
const DELETE: Permission = Permission::new(Resource::Notification, Action::Delete);

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        create_webhook_at("/api/v1/notification/webhook", "create_webhook"),
        create_webhook_at("/api/v1/api/v1/notification/webhook", "create_webhook_deprecated").deprecated(),
        Endpoint::put("/api/v1/notification/webhook", "update_webhook", update_webhook)
            .summary("Update a webhook channel")
            .about("A disabled channel gets no more messages, and its pending deliveries are given up.")
            .requires(UPDATE)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::get("/api/v1/notification/webhook/{type}", "webhook", webhook)
            .summary("Get a webhook channel")
            .cli("launchway notifications list")
            .about("The URL is shown in full only to callers who may change it.")
            .requires(READ)
            .fails(&[Code::NotFound]),
        Endpoint::delete("/api/v1/notification/webhook/{type}", "delete_webhook", delete_webhook)
            .summary("Delete a webhook channel")
            .requires(DELETE)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::post("/api/v1/notification/webhook/generic/secret", "rotate_signing_secret", rotate_signing_secret)
            .summary("Rotate the signing secret of the generic webhook channel")
            .about("Signatures follow Standard Webhooks. The previous secret signs for 24 hours too.")
            .requires(UPDATE)
            .fails(&[Code::NotFound, Code::Conflict]),
        Endpoint::get("/api/v1/notification/smtp", "smtp", smtp)
            .summary("Get the mail server of this organization")
            .cli("launchway notifications list")
            .requires(READ)
            .fails(&[Code::NotFound]),
        Endpoint::post("/api/v1/notification/smtp", "create_smtp", create_smtp)
            .summary("Configure the mail server of this organization")
            .about("Mail goes to the addresses in `to`, or to the organization's admins. Unencrypted connections are possible only to addresses that the operator allows.")
            .requires(CREATE)
            .fails(&[Code::Conflict]),
        Endpoint::put("/api/v1/notification/smtp", "update_smtp", update_smtp)
            .summary("Update the mail server")
            .about("Absent fields keep their values.")
            .requires(UPDATE)
            .fails(&[Code::Conflict, Code::NotFound]),
        delete_smtp_at("/api/v1/notification/smtp", "delete_smtp"),
        delete_smtp_at("/api/v1/api/v1/notification/smtp", "delete_smtp_deprecated").deprecated(),
        Endpoint::post("/api/v1/notification/test", "try_channel", try_channel)
            .summary("Send a test message")
            .cli("launchway notifications test <CHANNEL>")
            .about("Works with a disabled channel too. It is not retried.")
            .requires(UPDATE)
            .fails(&[Code::NotFound, Code::Conflict, Code::RateLimited]),
        Endpoint::get("/api/v1/notification/deliveries", "list_deliveries", list_deliveries)
            .summary("List the deliveries of this organization, newest first")
            .cli("launchway notifications deliveries")
            .requires(READ),
        Endpoint::post("/api/v1/notification/deliveries/{delivery_id}/replay", "replay_delivery", replay_delivery)
            .summary("Retry a dead delivery")
            .cli("launchway notifications replay <DELIVERY>")
            .requires(UPDATE)
            .fails(&[Code::NotFound, Code::Conflict]),
    ]
}

fn create_webhook_at(path: &'static str, id: &'static str) -> Endpoint {
    Endpoint::post(path, id, create_webhook)
            .summary("Create a webhook channel")
            .about("One for each organization and type. URLs with private or loopback addresses are rejected unless the operator allows them.")
            .requires(CREATE)
            .fails(&[Code::Conflict])
}

fn delete_smtp_at(path: &'static str, id: &'static str) -> Endpoint {
    Endpoint::delete(path, id, delete_smtp)
        .summary("Delete the mail server")
        .requires(DELETE)
        .fails(&[Code::Conflict, Code::NotFound])
}

input! {
    struct WebhookPath {
        /// The type of the channel
        kind as "type": WebhookKind,
    }
}

input! {
    struct ListDeliveries {
        /// Only those with this status; formerly `state`
        state as "status" | "state": Option<DeliveryState>,
        /// Only those of this type of channel; formerly `channel`
        channel as "type" | "channel": Option<ChannelKind>,
        page: Paged<20, 100>,
    }
}

input! {
    struct DeliveryPath {
        /// Id of a dead delivery
        delivery_id: DeliveryId,
    }
}

async fn create_webhook(
    api: Data<Api>,
    caller: Caller,
    body: Idempotent<CreateWebhook>,
) -> Result<Stored<Done>, ApiError> {
    let (request, once) = body.read(&caller, CREATE).await?;
    let notifications = &api.services.notifications;
    let make = async |key| notifications.create_webhook(&caller, request.into(), key).await;
    once.answer_done(&api, "Webhook config created successfully", make).await
}

async fn update_webhook(
    api: Data<Api>,
    caller: Caller,
    body: Body<UpdateWebhook>,
) -> Reply<WebhookConfigView> {
    let (kind, change) = body.read().await?.into();
    let shown = api.services.notifications.update_webhook(&caller, kind, change).await?;
    Ok(success("Webhook config updated successfully", shown.into()))
}

async fn webhook(api: Data<Api>, caller: Caller, path: Path<WebhookPath>) -> Reply<WebhookConfigView> {
    let shown = api.services.notifications.webhook(&caller, path.read()?.kind).await?;
    Ok(success("Webhook config retrieved successfully", shown.into()))
}

async fn delete_webhook(api: Data<Api>, caller: Caller, path: Path<WebhookPath>) -> Reply<Nothing> {
    api.services.notifications.delete_webhook(&caller, path.read()?.kind).await?;
    Ok(success("Webhook config deleted successfully", Nothing))
}

async fn rotate_signing_secret(
    api: Data<Api>,
    caller: Caller,
    body: Body<NoFields>,
) -> Reply<SigningSecretView> {
    body.read().await?;
    let secret = api.services.notifications.rotate_signing_secret(&caller).await?.expose();
    Ok(success("Signing secret replaced successfully", SigningSecretView { secret }))
}

async fn smtp(api: Data<Api>, caller: Caller) -> Reply<SmtpConfigView> {
    let config = api.services.notifications.smtp(&caller).await?;
    Ok(success("SMTP configuration retrieved successfully", config.into()))
}

async fn create_smtp(
    api: Data<Api>,
    caller: Caller,
    body: Idempotent<CreateSmtp>,
) -> Result<Stored<Envelope<SmtpConfigView>>, ApiError> {
    let notifications = &api.services.notifications;
    let (request, once) = body.read(&caller, CREATE).await?;
    once.answer(
        &api,
        "SMTP configuration created successfully",
        async |key| notifications.create_smtp(&caller, request.into(), key).await,
        async |_id| notifications.smtp(&caller).await,
        SmtpConfigView::from,
    )
    .await
}

async fn update_smtp(api: Data<Api>, caller: Caller, body: Body<UpdateSmtp>) -> Reply<SmtpConfigView> {
    let change = body.read().await?.into();
    let config = api.services.notifications.update_smtp(&caller, change).await?;
    Ok(success("SMTP configuration updated successfully", config.into()))
}

async fn delete_smtp(
    api: Data<Api>,
    caller: Caller,
    query: Query<DeleteSmtp>,
    body: Body<DeleteSmtp>,
) -> Result<Done, ApiError> {
    let in_query = query.read()?.id;
    let id = body.read().await?.id.or(in_query);
    api.services.notifications.delete_smtp(&caller, id).await?;
    Ok(done("SMTP configuration deleted successfully"))
}

async fn try_channel(api: Data<Api>, caller: Caller, body: Body<TryChannel>) -> Reply<TriedView> {
    let TryChannel { channel } = body.read().await?;
    let tried = api.services.notifications.try_channel(&caller, channel).await?;
    let message = match tried.delivered {
        true => "Test message delivered",
        false => "Test message not delivered",
    };
    Ok(success(message, tried.into()))
}

async fn list_deliveries(
    api: Data<Api>,
    caller: Caller,
    query: Query<ListDeliveries>,
) -> Reply<DeliveriesView> {
    let ListDeliveries { state, channel, page } = query.read()?;
    let found =
        api.services.notifications.deliveries(&caller, DeliveryFilter { state, channel }, page.0).await?;
    Ok(success("Deliveries retrieved successfully", found.into()))
}

async fn replay_delivery(
    api: Data<Api>,
    caller: Caller,
    path: Path<DeliveryPath>,
    body: Body<NoFields>,
) -> Reply<DeliveryView> {
    body.read().await?;
    let DeliveryPath { delivery_id } = path.read()?;
    let delivery = api.services.notifications.replay(&caller, delivery_id).await?;
    Ok(success("Delivery queued for replay", delivery.into()))
}
