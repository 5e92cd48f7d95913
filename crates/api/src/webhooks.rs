//! The webhook of code hosts, and the secret that they sign with.

use std::time::Duration;

use actix_web::{HttpRequest, web::Data};
use launchway_application::Error;
use launchway_domain::{ids::ApplicationId, webhooks::Delivery};
use serde::Serialize;
use tokio::{sync::SemaphorePermit, time::timeout};
use utoipa::ToSchema;

use crate::{
    Api,
    body::{Body, NoFields},
    caller::Caller,
    client::FromClient,
    envelope::{Done, Envelope, Reply, done, success},
    error::ApiError,
    query::Query,
    routes::Routes,
};

pub(crate) fn routes(routes: &mut Routes) {
    routes
        .post("/api/v1/webhook", receive)
        .post("/api/v1/api/v1/webhook", receive_by_doubled_prefix)
        .get("/api/v1/deploy/application/webhook-secret", webhook_secret)
        .post("/api/v1/deploy/application/webhook-secret", rotate_webhook_secret);
}

/// The webhook secret of a repository.
#[derive(Serialize, ToSchema)]
pub(crate) struct WebhookSecretView {
    /// Shared by all applications of the repository.
    #[schema(example = "6d0f3ad8b2c1…")]
    secret: String,
}

/// The largest delivery that is read without a permit.
const SMALL: usize = 256 * 1024;
/// The time that a larger one waits for a permit.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The body of a delivery, in the format of its code host, of at most 5 MiB.
pub(crate) struct FromCodeHost;

/// Receive a push of a code host
///
/// Signed by GitHub (`X-Hub-Signature-256`), GitLab (`X-Gitlab-Token`), Gitea (`X-Gitea-Signature`),
/// Forgejo (`X-Forgejo-Signature`) or Bitbucket (`X-Hub-Signature` with `sha256=`), with the secret of
/// `GET /api/v1/deploy/application/webhook-secret`. JSON, or a form with the field `payload`.
#[utoipa::path(post, path = "/api/v1/webhook", tag = "webhooks", request_body = Object,
    responses((status = 200, body = Done)))]
pub(crate) async fn receive(
    api: Data<Api>,
    request: HttpRequest,
    client: FromClient,
    body: Body<FromCodeHost>,
) -> Result<Done, ApiError> {
    let _place = match body.is_within(SMALL) {
        true => None,
        false => Some(place(&api).await?),
    };
    let body = body.raw(Delivery::LARGEST).await?;
    let header = |name: &str| request.headers().get(name)?.to_str().ok().map(str::to_owned);
    // An unsigned delivery gets the same response as one with a wrong signature.
    let delivery = Delivery::read(header, body.into()).ok_or(Error::InvalidSignature)?;
    let handled = api.services.webhooks.receive(delivery, client.0).await?;
    Ok(done(handled.to_string()))
}

/// Receive a push of a code host, as by `/api/v1/webhook`
#[utoipa::path(post, path = "/api/v1/api/v1/webhook", tag = "webhooks", request_body = Object,
    responses((status = 200, body = Done)))]
pub(crate) async fn receive_by_doubled_prefix(
    api: Data<Api>,
    request: HttpRequest,
    client: FromClient,
    body: Body<FromCodeHost>,
) -> Result<Done, ApiError> {
    receive(api, request, client, body).await
}

/// Get the webhook secret of an application's repository
///
/// One for each repository of an organization, created when it is first read.
#[utoipa::path(get, path = "/api/v1/deploy/application/webhook-secret", tag = "webhooks", security(("bearer" = [])),
    params(("id" = String, Query, description = "Id of an application of the repository")),
    responses((status = 200, body = Envelope<WebhookSecretView>)))]
pub(crate) async fn webhook_secret(api: Data<Api>, caller: Caller, query: Query) -> Reply<WebhookSecretView> {
    let secret = api.services.webhooks.secret(&caller, application_in(&query)?).await?;
    let secret = secret.expose().to_owned();
    Ok(success("Webhook secret retrieved successfully", WebhookSecretView { secret }))
}

/// Rotate the webhook secret of an application's repository
///
/// The old one stays valid for 24 hours.
#[utoipa::path(post, path = "/api/v1/deploy/application/webhook-secret", tag = "webhooks", security(("bearer" = [])),
    params(("id" = String, Query, description = "Id of an application of the repository")),
    responses((status = 200, body = Envelope<WebhookSecretView>)))]
pub(crate) async fn rotate_webhook_secret(
    api: Data<Api>,
    caller: Caller,
    query: Query,
    body: Body<NoFields>,
) -> Reply<WebhookSecretView> {
    body.read().await?;
    let secret = api.services.webhooks.rotate(&caller, application_in(&query)?).await?;
    let secret = secret.expose().to_owned();
    Ok(success("Webhook secret replaced successfully", WebhookSecretView { secret }))
}

/// Acquires a permit for a large delivery, so that concurrent ones do not exhaust the memory.
async fn place(api: &Api) -> Result<SemaphorePermit<'_>, ApiError> {
    let busy = || Error::RateLimited { retry_after: Duration::from_secs(1) };
    let place = timeout(TIMEOUT, api.large_deliveries.acquire()).await;
    Ok(place.map_err(|_elapsed| busy())?.map_err(|_closed| busy())?)
}

fn application_in(query: &Query) -> Result<ApplicationId, ApiError> {
    let mut query = query.read()?;
    let id = query.required_id("id");
    query.finish_query()?;
    Ok(id?)
}
