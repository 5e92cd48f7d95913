//! The certificates of the domains of applications.

use actix_web::web::Data;
use launchway_application::{Error, applications::ShownVariables};
use launchway_domain::{
    applications::{ApplicationDetail, Hostname},
    auth::{Action, Permission, Resource},
    ids::ApplicationId,
    secret::Secret,
};

use crate::{
    Api,
    body::Body,
    caller::Caller,
    endpoint::Endpoint,
    envelope::{Reply, success},
    error::Code,
    input::input,
    views::applications::ApplicationView,
};

const UPDATE: Permission = Permission::new(Resource::Deploy, Action::Update);
const PATH: &str = "/api/v1/deploy/application/certificates";

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::put(PATH, "upload_certificate", upload_certificate)
            .summary("Upload a certificate for a domain of an application")
            .about("It replaces any other one of the domain, is served at once, and is not renewed.")
            .cli("launchway domains set-certificate <APP> <DOMAIN> --chain <FILE> --key <FILE>")
            .requires(UPDATE)
            .fails(&[Code::NotFound]),
        Endpoint::delete(PATH, "delete_certificate", delete_certificate)
            .summary("Delete the certificate of a domain of an application")
            .about("Where certificates are issued automatically, another one is requested.")
            .cli("launchway domains remove-certificate <APP> <DOMAIN>")
            .requires(UPDATE)
            .fails(&[Code::NotFound]),
    ]
}

input! {
    struct UploadCertificate {
        id: ApplicationId,
        domain: Hostname,
        /// The certificate and the intermediate ones after it, as PEM.
        certificate: String,
        /// Its private key, unencrypted, as PEM.
        private_key: String,
    }
}

input! {
    struct CertificateOfApplication {
        id: ApplicationId,
        domain: Hostname,
    }
}

async fn upload_certificate(
    api: Data<Api>,
    caller: Caller,
    body: Body<UploadCertificate>,
) -> Reply<ApplicationView> {
    let UploadCertificate { id, domain, certificate, private_key } = body.read().await?;
    let key = Secret::new(private_key);
    api.services.certificates.upload(&caller, id, domain, &certificate, &key).await?;
    let detail = api.services.applications.written(&caller, id).await?;
    Ok(success("Certificate uploaded successfully", with_certificates(&api, &caller, detail).await?))
}

async fn delete_certificate(
    api: Data<Api>,
    caller: Caller,
    body: Body<CertificateOfApplication>,
) -> Reply<ApplicationView> {
    let CertificateOfApplication { id, domain } = body.read().await?;
    api.services.certificates.delete(&caller, id, domain).await?;
    let detail = api.services.applications.written(&caller, id).await?;
    Ok(success("Certificate deleted successfully", with_certificates(&api, &caller, detail).await?))
}

/// Returns the view of an application with the certificates and HSTS policies of its domains.
pub(super) async fn with_certificates(
    api: &Api,
    caller: &Caller,
    detail: (ApplicationDetail, ShownVariables),
) -> Result<ApplicationView, Error> {
    let id = detail.0.summary.application.id;
    // Whoever may only change applications sees no certificate.
    let certificates = match api.services.certificates.of_applications(caller, &[id]).await {
        Err(Error::Forbidden(_)) => return Ok(ApplicationView::from(detail)),
        certificates => certificates?,
    };
    let policies = api.services.certificates.hsts_of(caller, &[id]).await?;
    Ok(ApplicationView::from(detail).with_certificates(&certificates, &policies))
}
