//! The webhook of code hosts, and the secret that they sign with.

use std::time::Duration;

use actix_web::{HttpRequest, web::Data};
use launchway_application::Error;
use launchway_domain::{
    auth::{Action, Permission, Resource},
    ids::ApplicationId,
    webhooks::Delivery,
};
use serde::Serialize;
use serde_json::json;
use tokio::{sync::SemaphorePermit, time::timeout};
use utoipa::ToSchema;

use crate::{
    Api,
    body::Body,
    caller::Caller,
    client::FromClient,
    endpoint::{Description, Endpoint, Part},
    envelope::{Done, Reply, done, success},
    error::{ApiError, Code},
    input::{NoFields, input},
    query::Query,
};

const UPDATE: Permission = Permission::new(Resource::Organization, Action::Update);

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        receive_at("/api/v1/webhook", "receive_push"),
        receive_at("/api/v1/api/v1/webhook", "receive_push_deprecated").deprecated(),
        Endpoint::get("/api/v1/deploy/application/webhook-secret", "webhook_secret", webhook_secret)
            .summary("Get the webhook secret of an application's repository")
            .cli("launchway webhook-secret <APP>")
            .about("One for each repository of an organization, created when it is first read.")
            .requires(UPDATE)
            .fails(&[Code::NotFound, Code::Conflict]),
        Endpoint::post(
            "/api/v1/deploy/application/webhook-secret",
            "rotate_webhook_secret",
            rotate_webhook_secret,
        )
        .summary("Rotate the webhook secret of an application's repository")
        .cli("launchway webhook-secret <APP> --rotate")
        .about("The old one stays valid for 24 hours.")
        .requires(UPDATE)
        .fails(&[Code::NotFound, Code::Conflict]),
    ]
}

fn receive_at(path: &'static str, id: &'static str) -> Endpoint {
    Endpoint::post(path, id, receive)
            .summary("Receive a push or a change of a request of a code host")
            .about("Signed by GitHub (`X-Hub-Signature-256`), GitLab (`X-Gitlab-Token`), Gitea (`X-Gitea-Signature`), Forgejo (`X-Forgejo-Signature`) or Bitbucket (`X-Hub-Signature` with `sha256=`), with the secret of `GET /api/v1/deploy/application/webhook-secret`. JSON, or a form with the field `payload`.")
            .fails(&[Code::InvalidSignature, Code::RateLimited, Code::Conflict])
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

impl Part for Body<FromCodeHost> {
    fn describe(description: &mut Description) {
        description.body(|_| json!({"type": "object"}), true);
        description.fails(&[Code::InvalidJson, Code::RequestTimeout, Code::PayloadTooLarge]);
    }
}

async fn receive(
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

input! {
    struct ApplicationQuery {
        /// Id of an application of the repository
        id: ApplicationId,
    }
}

async fn webhook_secret(
    api: Data<Api>,
    caller: Caller,
    query: Query<ApplicationQuery>,
) -> Reply<WebhookSecretView> {
    let secret = api.services.webhooks.secret(&caller, query.read()?.id).await?;
    let secret = secret.expose().to_owned();
    Ok(success("Webhook secret retrieved successfully", WebhookSecretView { secret }))
}

async fn rotate_webhook_secret(
    api: Data<Api>,
    caller: Caller,
    query: Query<ApplicationQuery>,
    body: Body<NoFields>,
) -> Reply<WebhookSecretView> {
    body.read().await?;
    let secret = api.services.webhooks.rotate(&caller, query.read()?.id).await?;
    let secret = secret.expose().to_owned();
    Ok(success("Webhook secret replaced successfully", WebhookSecretView { secret }))
}

/// Acquires a permit for a large delivery, so that concurrent ones do not exhaust the memory.
async fn place(api: &Api) -> Result<SemaphorePermit<'_>, ApiError> {
    let busy = || Error::RateLimited { retry_after: Duration::from_secs(1) };
    let place = timeout(TIMEOUT, api.large_deliveries.acquire()).await;
    Ok(place.map_err(|_elapsed| busy())?.map_err(|_closed| busy())?)
}
