//! The variables of an application.

use actix_web::{HttpResponse, web::Path};
use askama::Template;
use launchway_application::{
    Error,
    applications::{ApplicationChange, ShownVariables},
};
use launchway_domain::{
    applications::{Application, Variables},
    auth::{Action, Resource},
};

use super::{Head, application_id};
use crate::{
    context::PageContext,
    error::PageError,
    fields::{Fields, read_env, write_env},
    form::{Form, Submitted},
    frame::{Frame, Section, page_after, see_other},
    router::PREFIX,
};

/// Reads the lines of an `.env` file as variables.
pub(super) fn read(text: &str) -> Result<Variables, String> {
    Variables::try_from(read_env(text)?).map_err(|invalid| invalid.to_string())
}

#[derive(Template)]
#[template(path = "variables.html")]
struct VariablesPage {
    frame: Frame,
    head: Head,
    may_see: bool,
    environment_names: Vec<String>,
    build_names: Vec<String>,
    environment: String,
    build: String,
    is_open: bool,
}

pub(super) async fn variables_page(
    context: PageContext,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let id = application_id(&path)?;
    let (detail, shown) = context.services().applications.detail(&context.visitor, id).await?;
    show(&context, &detail.summary.application, &shown, None)
}

fn show(
    context: &PageContext,
    application: &Application,
    shown: &ShownVariables,
    refused: Option<(&Form, &PageError)>,
) -> Result<HttpResponse, PageError> {
    let title = format!("Variables of {}", application.blueprint.name);
    let error = refused.map(|(_, error)| error);
    let names = |variables: &Variables| variables.iter().map(|(name, _)| name.to_owned()).collect();
    let text = |name: &str, variables: &Variables| match refused {
        Some((form, _)) => form.text(name).to_owned(),
        None => write_env(variables.iter()),
    };
    let template = VariablesPage {
        frame: context.frame(Section::Applications, title).with_error(error),
        head: Head::new(context, application, "variables"),
        may_see: context.may(Resource::Deploy, Action::Update),
        environment_names: names(&shown.environment),
        build_names: names(&shown.build),
        environment: text("environment_variables", &shown.environment),
        build: text("build_variables", &shown.build),
        is_open: refused.is_some(),
    };
    page_after(error, &template)
}

pub(super) async fn save(
    Submitted { context, form }: Submitted,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let id = application_id(&path)?;
    let (detail, shown) = context.services().applications.detail(&context.visitor, id).await?;
    let redeploy = form.is_checked("redeploy");
    let saved = match change(&form) {
        Ok(change) => {
            context.services().applications.update(&context.visitor, id, change, Some(redeploy), None).await
        }
        Err(error) => Err(error),
    };
    match saved {
        Ok(_) => {
            let done = if redeploy { "saved-redeployed" } else { "saved" };
            Ok(see_other(format!("{PREFIX}/applications/{id}/variables?done={done}")))
        }
        Err(error) => {
            let (application, error) = (&detail.summary.application, error.into());
            show(&context, application, &shown, Some((&form, &error)))
        }
    }
}

fn change(form: &Form) -> Result<ApplicationChange, Error> {
    let mut fields = Fields::of(form);
    let environment = fields.optional_by("environment_variables", read);
    let build = fields.optional_by("build_variables", read);
    let (Ok(environment), Ok(build)) = (environment, build) else { return Err(fields.error()) };
    Ok(ApplicationChange {
        environment_variables: Some(environment.unwrap_or_default()),
        build_variables: Some(build.unwrap_or_default()),
        ..ApplicationChange::default()
    })
}
