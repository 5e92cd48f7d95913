//! The settings of an application.

use actix_web::{HttpResponse, http::StatusCode, web::Path};
use askama::Template;
use launchway_application::{Error, applications::ApplicationChange};
use launchway_domain::{applications::Application, ids::ApplicationId};

use super::{
    Head, application_id, blueprint,
    new::{PACKS, Pack},
};
use crate::{
    context::PageContext,
    error::PageError,
    fields::Fields,
    form::{Form, Submitted},
    frame::{Frame, Section, page_with, see_other},
    router::PREFIX,
};

#[derive(Template)]
#[template(path = "application_settings.html")]
struct SettingsPage<'a> {
    frame: Frame,
    head: Head,
    form: &'a Form,
    packs: &'static [Pack],
}

pub(super) async fn settings_page(
    context: PageContext,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let application = application(&context, application_id(&path)?).await?;
    show(&context, &application, &blueprint::shown(&application), None)
}

async fn application(context: &PageContext, id: ApplicationId) -> Result<Application, Error> {
    let (detail, _) = context.services().applications.detail(&context.visitor, id).await?;
    Ok(detail.summary.application)
}

fn show(
    context: &PageContext,
    application: &Application,
    form: &Form,
    error: Option<&PageError>,
) -> Result<HttpResponse, PageError> {
    let title = format!("Settings of {}", application.blueprint.name);
    let frame = context.frame(Section::Applications, title).with_error(error);
    let head = Head::new(context, application, "settings");
    let status = error.map_or(StatusCode::OK, PageError::status);
    page_with(status, &SettingsPage { frame, head, form, packs: PACKS })
}

pub(super) async fn save(
    Submitted { context, form }: Submitted,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let id = application_id(&path)?;
    let before = application(&context, id).await?;
    let redeploy = form.is_checked("redeploy");
    let saved = match change(&form, &blueprint::shown(&before)) {
        Ok(change) => {
            context.services().applications.update(&context.visitor, id, change, Some(redeploy), None).await
        }
        Err(error) => Err(error),
    };
    match saved {
        Ok(_) => {
            let done = if redeploy { "saved-redeployed" } else { "saved" };
            Ok(see_other(format!("{PREFIX}/applications/{id}/settings?done={done}")))
        }
        Err(error) => show(&context, &before, &form, Some(&error.into())),
    }
}

/// Returns the change of the fields that differ from `shown`, which the visitor saw. Fields that were emptied cannot be
/// removed by an update.
fn change(form: &Form, shown: &Form) -> Result<ApplicationChange, Error> {
    // Browsers send the lines of a field with carriage returns.
    let is_changed = |name: &str, value: &str| shown.text(name).trim() != value.replace("\r\n", "\n").trim();
    let changed: Vec<_> = form.iter().filter(|(name, value)| is_changed(name, value)).collect();
    let mut fields = Fields::of(form);
    let mut change = ApplicationChange::default();
    for (name, value) in changed {
        let is_emptied = value.trim().is_empty() && !shown.text(name).is_empty();
        if is_emptied && !matches!(name, "labels" | "watch_paths") {
            let _noted = fields.refuse::<()>(format!("{name} cannot be removed, only changed"));
            continue;
        }
        let read = match name {
            "name" => fields.required(name).map(|value| change.name = Some(value)),
            "repository" => fields.required(name).map(|value| change.repository = Some(value)),
            "branch" => fields.required(name).map(|value| change.branch = Some(value)),
            "base_path" => fields.required(name).map(|value| change.base_path = Some(value)),
            "dockerfile_path" => fields.required(name).map(|value| change.dockerfile_path = Some(value)),
            "environment" => fields.required(name).map(|value| change.environment = Some(value)),
            "domain" => fields.required(name).map(|value| change.domain = Some(value)),
            "pre_run_command" => fields.required(name).map(|value| change.pre_run_command = Some(value)),
            "post_run_command" => fields.required(name).map(|value| change.post_run_command = Some(value)),
            "health_check_path" => fields.required(name).map(|value| change.health_check_path = Some(value)),
            "port" => fields.required_by(name, blueprint::port).map(|value| change.port = Some(value)),
            "replicas" => {
                fields.required_by(name, blueprint::copies).map(|value| change.copies = Some(value))
            }
            "build_pack" => {
                fields.required_by(name, blueprint::build_pack).map(|value| change.build_pack = Some(value))
            }
            "proxy_server" => fields
                .required_by(name, blueprint::proxy_server)
                .map(|value| change.proxy_server = Some(value)),
            "labels" => {
                let labels = blueprint::labels(value);
                labels
                    .map(|value| change.labels = Some(value))
                    .or_else(|invalid| fields.refuse(format!("labels {invalid}")))
            }
            "watch_paths" => {
                let patterns = blueprint::watch_paths(value);
                patterns
                    .map(|value| change.watch_paths = Some(value))
                    .or_else(|invalid| fields.refuse(format!("watch_paths {invalid}")))
            }
            _ => Ok(()),
        };
        if read.is_err() {
            continue;
        }
    }
    if form.is_checked("auto_deploy") != shown.is_checked("auto_deploy") {
        change.auto_deploy = Some(form.is_checked("auto_deploy"));
    }
    if fields.has_problems() { Err(fields.error()) } else { Ok(change) }
}
