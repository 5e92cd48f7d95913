//! API tokens.

use actix_web::web::Data;
use launchway_domain::ids::ApiTokenId;

use super::requests::IssueToken;
use crate::{
    Api,
    body::Body,
    caller::SessionCaller,
    endpoint::Endpoint,
    envelope::{List, Nothing, Reply, success},
    error::Code,
    input::{NoFields, input},
    query::Path,
    views::auth::{ApiTokenView, IssuedApiTokenView},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/api/v1/auth/tokens", "list_tokens", list_tokens)
            .summary("List the caller's API tokens in this organization")
            .cli("launchway tokens list"),
        Endpoint::post("/api/v1/auth/tokens", "issue_token", issue_token)
            .summary("Create an API token")
            .cli("launchway tokens create <NAME>")
            .about("It works in this organization only.")
            .fails(&[Code::Conflict]),
        Endpoint::delete("/api/v1/auth/tokens/{id}", "revoke_token", revoke_token)
            .summary("Revoke an API token")
            .cli("launchway tokens revoke <TOKEN>")
            .fails(&[Code::NotFound]),
    ]
}

input! {
    struct TokenPath {
        /// The token's id
        id: ApiTokenId,
    }
}

async fn list_tokens(api: Data<Api>, caller: SessionCaller) -> Reply<List<ApiTokenView>> {
    let tokens = api.services.api_tokens.list(&caller).await?;
    Ok(success("Tokens retrieved successfully", tokens.into_iter().map(Into::into).collect()))
}

async fn issue_token(
    api: Data<Api>,
    caller: SessionCaller,
    body: Body<IssueToken>,
) -> Reply<IssuedApiTokenView> {
    let request = body.read().await?.into();
    let issued = api.services.api_tokens.issue(&caller, request).await?;
    Ok(success("Token created successfully", issued.into()))
}

async fn revoke_token(
    api: Data<Api>,
    caller: SessionCaller,
    path: Path<TokenPath>,
    body: Body<NoFields>,
) -> Reply<Nothing> {
    body.read().await?;
    api.services.api_tokens.revoke(&caller, path.read()?.id).await?;
    Ok(success("Token deleted successfully", Nothing))
}
