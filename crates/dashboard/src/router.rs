//! The paths of the dashboard.

use actix_web::{
    guard::{Get, Guard, GuardContext},
    http::header::ACCEPT,
    middleware::from_fn,
    web::{self, PayloadConfig, ServiceConfig, get},
};

use crate::{
    applications, assets, audit, deployments, error::PageError, extensions, frame::see_other, installation,
    logs, middleware::middleware, notifications, organization, profile, sessions,
};

/// The prefix of every page.
pub const PREFIX: &str = "/dashboard";

/// The largest form, in bytes.
const LARGEST_FORM: usize = 1024 * 1024;

/// Mounts the dashboard, and leads browsers to it from `/`.
pub fn configure(config: &mut ServiceConfig) {
    config.service(
        web::resource("/")
            .guard(Browser)
            .route(get().to(async || see_other(format!("{PREFIX}/applications")))),
    );
    config.service(
        web::scope(PREFIX)
            .app_data(PayloadConfig::new(LARGEST_FORM))
            .wrap(from_fn(middleware))
            .configure(routes)
            .default_service(web::to(async || Err::<&str, _>(PageError::unknown_page()))),
    );
}

fn routes(config: &mut ServiceConfig) {
    config
        .route("", get().to(async || see_other(format!("{PREFIX}/applications"))))
        .route("/", get().to(async || see_other(format!("{PREFIX}/applications"))))
        .route("/assets/{folder}/{name}", get().to(assets::asset));
    sessions::routes(config);
    applications::routes(config);
    deployments::routes(config);
    logs::routes(config);
    extensions::routes(config);
    notifications::routes(config);
    organization::routes(config);
    audit::routes(config);
    installation::routes(config);
    profile::routes(config);
}

/// Matches a browser that asks for a page. A program, which accepts anything or JSON, gets the envelope.
struct Browser;

impl Guard for Browser {
    fn check(&self, context: &GuardContext<'_>) -> bool {
        let accepts = context.head().headers().get(ACCEPT).and_then(|value| value.to_str().ok());
        Get().check(context) && accepts.is_some_and(|accepts| accepts.contains("text/html"))
    }
}
