//! The deploy key of the organization.

use actix_web::HttpResponse;
use askama::Template;
use launchway_domain::auth::{Action, Resource};

use crate::{
    context::PageContext,
    error::PageError,
    form::Submitted,
    frame::{Frame, Section, page, see_other},
    router::PREFIX,
};

#[derive(Template)]
#[template(path = "deploy_key.html")]
struct DeployKeyPage {
    frame: Frame,
    public_key: String,
    may_update: bool,
}

/// Shows the public key. The first visit creates it.
pub(super) async fn deploy_key_page(context: PageContext) -> Result<HttpResponse, PageError> {
    let public_key = context.services().deploy_keys.public_key(&context.visitor).await?;
    page(&DeployKeyPage {
        frame: context.frame(Section::Organization, "Deploy key"),
        public_key,
        may_update: context.may(Resource::Organization, Action::Update),
    })
}

pub(super) async fn replace(Submitted { context, .. }: Submitted) -> Result<HttpResponse, PageError> {
    context.services().deploy_keys.rotate(&context.visitor).await?;
    Ok(see_other(format!("{PREFIX}/organization/deploy-key?done=key-replaced")))
}
