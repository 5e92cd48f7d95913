//! The domains of an application.

use actix_web::{HttpResponse, web::Path};
use askama::Template;
use launchway_application::Error;
use launchway_domain::{
    applications::{Application, Hostname, ProxyServer},
    certificates::{Certificate, CertificateState},
};

use super::{Head, application_id};
use crate::{
    context::PageContext,
    error::PageError,
    fields::Fields,
    form::{Form, Submitted},
    format::Time,
    frame::{Frame, Section, page_after, see_other},
    router::PREFIX,
};

struct CertificateRow {
    domain: String,
    state: &'static str,
    kind: &'static str,
    not_after: Option<Time>,
    last_error: Option<String>,
}

impl From<(Certificate, CertificateState)> for CertificateRow {
    fn from((certificate, state): (Certificate, CertificateState)) -> Self {
        Self {
            domain: certificate.domain.to_string(),
            state: state.as_str(),
            kind: match state {
                CertificateState::Valid => "good",
                CertificateState::Pending => "busy",
                CertificateState::Expired | CertificateState::Failed => "bad",
            },
            not_after: certificate.issued.map(|issued| Time(issued.not_after)),
            last_error: certificate.last_error,
        }
    }
}

#[derive(Template)]
#[template(path = "domains.html")]
struct DomainsPage<'a> {
    frame: Frame,
    head: Head,
    main: Option<String>,
    further: Vec<String>,
    automatic: String,
    is_behind_caddy: bool,
    certificates: Vec<CertificateRow>,
    form: &'a Form,
}

pub(super) async fn domains_page(
    context: PageContext,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let (detail, _) =
        context.services().applications.detail(&context.visitor, application_id(&path)?).await?;
    show(&context, &detail.summary.application, &Form::default(), None).await
}

async fn show(
    context: &PageContext,
    application: &Application,
    form: &Form,
    error: Option<&PageError>,
) -> Result<HttpResponse, PageError> {
    let certificates =
        context.services().certificates.of_applications(&context.visitor, &[application.id]).await?;
    let title = format!("Domains of {}", application.blueprint.name);
    let template = DomainsPage {
        frame: context.frame(Section::Applications, title).with_error(error),
        head: Head::new(context, application, "domains"),
        main: application.blueprint.domain.as_ref().map(ToString::to_string),
        further: application.further_domains.iter().map(ToString::to_string).collect(),
        automatic: application.automatic_host.as_str().to_owned(),
        is_behind_caddy: application.blueprint.proxy_server == ProxyServer::Caddy,
        certificates: certificates.into_iter().map(CertificateRow::from).collect(),
        form,
    };
    page_after(error, &template)
}

fn domain(form: &Form) -> Result<Hostname, Error> {
    let mut fields = Fields::of(form);
    fields.required("domain").map_err(|_noted| fields.error())
}

pub(super) async fn add(
    Submitted { context, form }: Submitted,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let id = application_id(&path)?;
    let added = match domain(&form) {
        Ok(domain) => context.services().applications.add_domain(&context.visitor, id, domain).await,
        Err(error) => Err(error),
    };
    match added {
        Ok(_) => Ok(see_other(format!("{PREFIX}/applications/{id}/domains?done=added"))),
        Err(error) => {
            let (detail, _) = context.services().applications.detail(&context.visitor, id).await?;
            let application = &detail.summary.application;
            show(&context, application, &form, Some(&error.into())).await
        }
    }
}

pub(super) async fn remove(
    Submitted { context, form }: Submitted,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let id = application_id(&path)?;
    context.services().applications.remove_domain(&context.visitor, id, domain(&form)?).await?;
    Ok(see_other(format!("{PREFIX}/applications/{id}/domains?done=removed")))
}
