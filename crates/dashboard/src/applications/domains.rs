//! The domains of an application.

use actix_web::{
    HttpRequest, HttpResponse,
    http::StatusCode,
    web::{Data, Path},
};
use askama::Template;
use launchway_application::Error;
use launchway_domain::applications::{Application, Hostname, ProxyServer};

use super::{Head, application_id};
use crate::{
    Dashboard,
    error::PageError,
    fields::Fields,
    form::{Form, Submitted},
    frame::{Frame, Section, page_with, see_other},
    router::PREFIX,
    visitor::Visitor,
};

#[derive(Template)]
#[template(path = "domains.html")]
struct DomainsPage<'a> {
    frame: Frame,
    head: Head,
    main: Option<String>,
    further: Vec<String>,
    automatic: String,
    is_behind_caddy: bool,
    form: &'a Form,
}

pub(super) async fn domains_page(
    request: HttpRequest,
    dashboard: Data<Dashboard>,
    visitor: Visitor,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let (detail, _) = dashboard.services.applications.detail(&visitor, application_id(&path)?).await?;
    show(&request, &dashboard, &visitor, &detail.summary.application, &Form::default(), None)
}

fn show(
    request: &HttpRequest,
    dashboard: &Dashboard,
    visitor: &Visitor,
    application: &Application,
    form: &Form,
    error: Option<&PageError>,
) -> Result<HttpResponse, PageError> {
    let title = format!("Domains of {}", application.blueprint.name);
    let template = DomainsPage {
        frame: Frame::new(request, visitor, Section::Applications, title).with_error(error),
        head: Head::new(dashboard, visitor, application, "domains"),
        main: application.blueprint.domain.as_ref().map(ToString::to_string),
        further: application.further_domains.iter().map(ToString::to_string).collect(),
        automatic: application.automatic_host.as_str().to_owned(),
        is_behind_caddy: application.blueprint.proxy_server == ProxyServer::Caddy,
        form,
    };
    page_with(error.map_or(StatusCode::OK, PageError::status), &template)
}

fn domain(form: &Form) -> Result<Hostname, Error> {
    let mut fields = Fields::of(form);
    fields.required("domain").map_err(|_noted| fields.error())
}

pub(super) async fn add(
    request: HttpRequest,
    dashboard: Data<Dashboard>,
    Submitted { visitor, form }: Submitted,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let id = application_id(&path)?;
    let added = match domain(&form) {
        Ok(domain) => dashboard.services.applications.add_domain(&visitor, id, domain).await,
        Err(error) => Err(error),
    };
    match added {
        Ok(_) => Ok(see_other(format!("{PREFIX}/applications/{id}/domains?done=added"))),
        Err(error) => {
            let (detail, _) = dashboard.services.applications.detail(&visitor, id).await?;
            let application = &detail.summary.application;
            show(&request, &dashboard, &visitor, application, &form, Some(&error.into()))
        }
    }
}

pub(super) async fn remove(
    dashboard: Data<Dashboard>,
    Submitted { visitor, form }: Submitted,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let id = application_id(&path)?;
    dashboard.services.applications.remove_domain(&visitor, id, domain(&form)?).await?;
    Ok(see_other(format!("{PREFIX}/applications/{id}/domains?done=removed")))
}
