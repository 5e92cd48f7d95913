//! The page of a new application.

use actix_web::{HttpResponse, http::StatusCode};
use askama::Template;
use launchway_application::Error;
use launchway_domain::auth::{Action, Permission, Resource};

use super::blueprint::new_application;
use crate::{
    context::PageContext,
    error::PageError,
    form::{Form, Submitted},
    frame::{Frame, Section, page_with, see_other},
    router::PREFIX,
};

const CREATE: Permission = Permission::new(Resource::Deploy, Action::Create);

/// A choice of a build pack, with its description.
pub(super) struct Pack {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) about: &'static str,
}

/// The build packs, the one that most people need first.
pub(super) const PACKS: &[Pack] = &[
    Pack {
        name: "dockerfile",
        title: "Dockerfile",
        about: "Builds an image by a Dockerfile of the repository.",
    },
    Pack {
        name: "nixpacks",
        title: "Nixpacks",
        about: "Detects the language, and builds an image without a Dockerfile.",
    },
    Pack { name: "static", title: "Static site", about: "Publishes the files of a folder as they are." },
    Pack { name: "docker-compose", title: "Compose file", about: "Runs the services of a compose file." },
    Pack { name: "image", title: "Image", about: "Runs a prebuilt image. The repository is its reference." },
];

#[derive(Template)]
#[template(path = "new_application.html")]
struct NewPage<'a> {
    frame: Frame,
    form: &'a Form,
    packs: &'static [Pack],
}

pub(super) async fn new_page(context: PageContext) -> Result<HttpResponse, PageError> {
    context.visitor.require(CREATE).map_err(Error::from)?;
    let form = Form::default()
        .with("branch", "main")
        .with("environment", "production")
        .with("port", "8080")
        .with("build_pack", "dockerfile")
        .with("auto_deploy", "on");
    show(&context, &form, None)
}

fn show(context: &PageContext, form: &Form, error: Option<&PageError>) -> Result<HttpResponse, PageError> {
    let frame = context.frame(Section::Applications, "New application").with_error(error);
    let status = error.map_or(StatusCode::OK, PageError::status);
    page_with(status, &NewPage { frame, form, packs: PACKS })
}

pub(super) async fn create(Submitted { context, form }: Submitted) -> Result<HttpResponse, PageError> {
    let created = match new_application(&form) {
        Ok(new) => context.services().applications.create(&context.visitor, new, None).await,
        Err(error) => Err(error),
    };
    match created {
        Ok((detail, _)) => {
            let first = detail.deployments.first().map(|deployment| deployment.id);
            Ok(see_other(match first {
                Some(id) => format!("{PREFIX}/deployments/{id}?done=created"),
                None => format!("{PREFIX}/applications/{}?done=created", detail.summary.application.id),
            }))
        }
        Err(error) => show(&context, &form, Some(&error.into())),
    }
}
