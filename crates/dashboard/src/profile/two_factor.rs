//! Two-factor login.

use actix_web::HttpResponse;
use askama::Template;
use launchway_application::Error;
use qrcode::{Color, QrCode};

use crate::{
    context::PageContext,
    error::PageError,
    form::Submitted,
    frame::{Frame, Section, page, page_after, see_other},
    router::PREFIX,
};

#[derive(Template)]
#[template(path = "two_factor.html")]
struct TwoFactorPage {
    frame: Frame,
    is_enabled: bool,
    /// The new secret, which is shown once.
    secret: String,
    /// The QR code of its URL.
    code: Option<Picture>,
    recovery_codes: Vec<String>,
}

/// A QR code as one path of an SVG image.
struct Picture {
    size: usize,
    path: String,
}

impl Picture {
    fn of(text: &str) -> Option<Self> {
        let code = QrCode::new(text).ok()?;
        let size = code.width();
        let dark = code.to_colors().into_iter().enumerate().filter(|(_, color)| *color == Color::Dark);
        let path = dark.map(|(at, _)| format!("M{} {}h1v1h-1z", at % size + 4, at / size + 4)).collect();
        Some(Self { size: size + 8, path })
    }
}

fn frame(context: &PageContext) -> Frame {
    context.frame(Section::Profile, "Two-factor login")
}

fn show(context: &PageContext, error: Option<&PageError>) -> Result<HttpResponse, PageError> {
    let template = TwoFactorPage {
        frame: frame(context).with_error(error),
        is_enabled: context.visitor.user().two_factor_enabled,
        secret: String::new(),
        code: None,
        recovery_codes: Vec::new(),
    };
    page_after(error, &template)
}

pub(super) async fn two_factor_page(context: PageContext) -> Result<HttpResponse, PageError> {
    show(&context, None)
}

/// Shows the secret of a new authenticator. It is not stored in the page's address, and cannot be shown again.
pub(super) async fn set_up(Submitted { context, .. }: Submitted) -> Result<HttpResponse, PageError> {
    let setup = match context.services().two_factor.set_up(&context.visitor).await {
        Ok(setup) => setup,
        Err(error) => return show(&context, Some(&error.into())),
    };
    let template = TwoFactorPage {
        frame: frame(&context),
        is_enabled: false,
        secret: setup.secret.expose().clone(),
        code: Picture::of(setup.otpauth_url.expose()),
        recovery_codes: Vec::new(),
    };
    page(&template)
}

pub(super) async fn enable(Submitted { context, form }: Submitted) -> Result<HttpResponse, PageError> {
    match context.services().two_factor.enable(&context.visitor, form.text("code").trim()).await {
        Ok(codes) => {
            let template = TwoFactorPage {
                frame: frame(&context),
                is_enabled: true,
                secret: String::new(),
                code: None,
                recovery_codes: codes.iter().map(|code| code.expose().to_owned()).collect(),
            };
            page(&template)
        }
        Err(error) => show(&context, Some(&again(error))),
    }
}

/// Returns the error of a wrong code, with the way on.
fn again(error: Error) -> PageError {
    let is_wrong = matches!(error, Error::InvalidCredentials(_));
    let error = PageError::from(error);
    match is_wrong {
        true => {
            PageError::new(error.status(), format!("{}; begin again with a new QR code", error.message()))
        }
        false => error,
    }
}

pub(super) async fn disable(Submitted { context, form }: Submitted) -> Result<HttpResponse, PageError> {
    match context.services().two_factor.disable(&context.visitor, form.text("code").trim()).await {
        Ok(()) => Ok(see_other(format!("{PREFIX}/profile?done=two-factor-off"))),
        Err(error) => show(&context, Some(&error.into())),
    }
}
