//! The certificates and HSTS policies of the domains of applications.

use actix_web::web::Data;
use launchway_application::{Error, applications::ShownVariables};
use launchway_domain::{
    applications::{ApplicationDetail, Hostname},
    auth::{Action, Permission, Resource},
    certificates::HstsMaxAge,
    ids::ApplicationId,
    secret::Secret,
};

use super::domains::DomainOfApplication;
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
const CERTIFICATES: &str = "/api/v1/deploy/application/certificates";
const HSTS: &str = "/api/v1/deploy/application/hsts";

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::put(CERTIFICATES, "upload_certificate", upload_certificate)
            .summary("Upload a certificate for a domain of an application")
            .about("It replaces any other one of the domain, is served at once, and is not renewed.")
            .cli("launchway domains set-certificate <APP> <DOMAIN> --chain <FILE> --key <FILE>")
            .requires(UPDATE)
            .fails(&[Code::NotFound]),
        Endpoint::delete(CERTIFICATES, "delete_certificate", delete_certificate)
            .summary("Delete the certificate of a domain of an application")
            .about("Where certificates are issued automatically, another one is requested.")
            .cli("launchway domains remove-certificate <APP> <DOMAIN>")
            .requires(UPDATE)
            .fails(&[Code::NotFound]),
        Endpoint::put(HSTS, "set_hsts", set_hsts)
            .summary("Set the HSTS policy of a domain of an application")
            .about(
                "Browsers use HTTPS only for the domain, and not for its subdomains, for `max_age` seconds after \
                 each visit; 15552000 (180 days) without it. 0 makes them forget it. It is sent while the front \
                 proxy serves HTTPS with a valid certificate of the domain; until then it is only stored.",
            )
            .cli("launchway domains set-hsts <APP> <DOMAIN>")
            .requires(UPDATE)
            .fails(&[Code::NotFound]),
        Endpoint::delete(HSTS, "remove_hsts", remove_hsts)
            .summary("Remove the HSTS policy of a domain of an application")
            .about("Browsers that have seen it use HTTPS only until its time is over.")
            .cli("launchway domains remove-hsts <APP> <DOMAIN>")
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
    struct SetHsts {
        id: ApplicationId,
        domain: Hostname,
        /// The time for which browsers use HTTPS only, in seconds.
        max_age: Option<HstsMaxAge>,
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
    Ok(success("Certificate uploaded successfully", written(&api, &caller, id).await?))
}

async fn delete_certificate(
    api: Data<Api>,
    caller: Caller,
    body: Body<DomainOfApplication>,
) -> Reply<ApplicationView> {
    let DomainOfApplication { id, domain } = body.read().await?;
    api.services.certificates.delete(&caller, id, domain).await?;
    Ok(success("Certificate deleted successfully", written(&api, &caller, id).await?))
}

async fn set_hsts(api: Data<Api>, caller: Caller, body: Body<SetHsts>) -> Reply<ApplicationView> {
    let SetHsts { id, domain, max_age } = body.read().await?;
    api.services.certificates.set_hsts(&caller, id, domain, max_age.unwrap_or_default()).await?;
    Ok(success("HSTS policy set successfully", written(&api, &caller, id).await?))
}

async fn remove_hsts(
    api: Data<Api>,
    caller: Caller,
    body: Body<DomainOfApplication>,
) -> Reply<ApplicationView> {
    let DomainOfApplication { id, domain } = body.read().await?;
    api.services.certificates.remove_hsts(&caller, id, domain).await?;
    Ok(success("HSTS policy removed successfully", written(&api, &caller, id).await?))
}

/// Returns the view of an application after a change by the caller.
async fn written(api: &Api, caller: &Caller, id: ApplicationId) -> Result<ApplicationView, Error> {
    with_certificates(api, caller, api.services.applications.written(caller, id).await?).await
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
