//! API tokens.

use actix_web::web::{Data, Path};

use super::{
    requests::IssueToken,
    views::{ApiTokenView, IssuedApiTokenView},
};
use crate::{
    Api,
    body::{Body, NoFields},
    caller::SessionCaller,
    envelope::{Envelope, Nothing, Reply, success},
    error::path_id,
    routes::Routes,
};

pub(super) fn routes(routes: &mut Routes) {
    routes
        .get("/api/v1/auth/tokens", list_tokens)
        .post("/api/v1/auth/tokens", issue_token)
        .delete("/api/v1/auth/tokens/{id}", revoke_token);
}

/// List the caller's API tokens in this organization
#[utoipa::path(get, path = "/api/v1/auth/tokens", tag = "auth", security(("bearer" = [])),
    responses((status = 200, body = Envelope<Vec<ApiTokenView>>)))]
pub(crate) async fn list_tokens(api: Data<Api>, caller: SessionCaller) -> Reply<Vec<ApiTokenView>> {
    let tokens = api.services.api_tokens.list(&caller).await?;
    Ok(success("Tokens retrieved successfully", tokens.into_iter().map(Into::into).collect()))
}

/// Create an API token
///
/// It works in this organization only. Needs a session, not an API token.
#[utoipa::path(post, path = "/api/v1/auth/tokens", tag = "auth", security(("bearer" = [])),
    request_body = IssueToken, responses((status = 200, body = Envelope<IssuedApiTokenView>)))]
pub(crate) async fn issue_token(
    api: Data<Api>,
    caller: SessionCaller,
    body: Body<IssueToken>,
) -> Reply<IssuedApiTokenView> {
    let wish = body.read().await?.into();
    let issued = api.services.api_tokens.issue(&caller, wish).await?;
    Ok(success("Token created successfully", issued.into()))
}

/// Revoke an API token
#[utoipa::path(delete, path = "/api/v1/auth/tokens/{id}", tag = "auth", security(("bearer" = [])),
    params(("id" = String, Path, description = "The token's id")),
    responses((status = 200, body = Envelope<Nothing>)))]
pub(crate) async fn revoke_token(
    api: Data<Api>,
    caller: SessionCaller,
    id: Path<String>,
    body: Body<NoFields>,
) -> Reply<Nothing> {
    body.read().await?;
    api.services.api_tokens.revoke(&caller, path_id("id", &id)?).await?;
    Ok(success("Token deleted successfully", Nothing))
}
