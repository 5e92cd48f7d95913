//! The HSTS policies of the domains of applications.

use actix_web::web::Data;
use launchway_domain::{
    applications::Hostname,
    auth::{Action, Permission, Resource},
    certificates::HstsMaxAge,
    ids::ApplicationId,
};

use super::certificates::with_certificates;
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
const PATH: &str = "/api/v1/deploy/application/hsts";

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::put(PATH, "set_hsts", set_hsts)
            .summary("Set the HSTS policy of a domain of an application")
            .about(
                "Browsers use HTTPS only for the domain, and not for its subdomains, for `max_age` seconds after \
                 each visit; 15552000 (180 days) without it. 0 makes them forget it.",
            )
            .cli("launchway domains set-hsts <APP> <DOMAIN>")
            .requires(UPDATE)
            .fails(&[Code::NotFound]),
        Endpoint::delete(PATH, "remove_hsts", remove_hsts)
            .summary("Remove the HSTS policy of a domain of an application")
            .about("Browsers that have seen it use HTTPS only until its time is over.")
            .cli("launchway domains remove-hsts <APP> <DOMAIN>")
            .requires(UPDATE)
            .fails(&[Code::NotFound]),
    ]
}

input! {
    struct SetHsts {
        id: ApplicationId,
        domain: Hostname,
        /// The time for which browsers use HTTPS only, in seconds.
        max_age: Option<HstsMaxAge>,
    }
}

input! {
    struct HstsOfApplication {
        id: ApplicationId,
        domain: Hostname,
    }
}

async fn set_hsts(api: Data<Api>, caller: Caller, body: Body<SetHsts>) -> Reply<ApplicationView> {
    let SetHsts { id, domain, max_age } = body.read().await?;
    api.services.certificates.set_hsts(&caller, id, domain, max_age.unwrap_or_default()).await?;
    let detail = api.services.applications.written(&caller, id).await?;
    Ok(success("HSTS policy set successfully", with_certificates(&api, &caller, detail).await?))
}

async fn remove_hsts(
    api: Data<Api>,
    caller: Caller,
    body: Body<HstsOfApplication>,
) -> Reply<ApplicationView> {
    let HstsOfApplication { id, domain } = body.read().await?;
    api.services.certificates.remove_hsts(&caller, id, domain).await?;
    let detail = api.services.applications.written(&caller, id).await?;
    Ok(success("HSTS policy removed successfully", with_certificates(&api, &caller, detail).await?))
}
