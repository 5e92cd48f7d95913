//! Two-factor login.

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web::Data};
use askama::Template;
use launchway_application::Error;
use qrcode::{Color, QrCode};

use crate::{
    Dashboard,
    error::PageError,
    form::Submitted,
    frame::{Frame, Section, page_with, see_other},
    router::PREFIX,
    visitor::Visitor,
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

fn frame(request: &HttpRequest, visitor: &Visitor) -> Frame {
    Frame::new(request, visitor, Section::Profile, "Two-factor login")
}

fn show(
    request: &HttpRequest,
    visitor: &Visitor,
    error: Option<&PageError>,
) -> Result<HttpResponse, PageError> {
    let template = TwoFactorPage {
        frame: frame(request, visitor).with_error(error),
        is_enabled: visitor.user().two_factor_enabled,
        secret: String::new(),
        code: None,
        recovery_codes: Vec::new(),
    };
    page_with(error.map_or(StatusCode::OK, PageError::status), &template)
}

pub(super) async fn two_factor_page(
    request: HttpRequest,
    visitor: Visitor,
) -> Result<HttpResponse, PageError> {
    show(&request, &visitor, None)
}

/// Shows the secret of a new authenticator. It is not stored in the page's address, and cannot be shown again.
pub(super) async fn set_up(
    request: HttpRequest,
    dashboard: Data<Dashboard>,
    Submitted { visitor, .. }: Submitted,
) -> Result<HttpResponse, PageError> {
    let setup = match dashboard.services.two_factor.set_up(&visitor).await {
        Ok(setup) => setup,
        Err(error) => return show(&request, &visitor, Some(&error.into())),
    };
    let template = TwoFactorPage {
        frame: frame(&request, &visitor),
        is_enabled: false,
        secret: setup.secret.expose().clone(),
        code: Picture::of(setup.otpauth_url.expose()),
        recovery_codes: Vec::new(),
    };
    page_with(StatusCode::OK, &template)
}

pub(super) async fn enable(
    request: HttpRequest,
    dashboard: Data<Dashboard>,
    Submitted { visitor, form }: Submitted,
) -> Result<HttpResponse, PageError> {
    match dashboard.services.two_factor.enable(&visitor, form.text("code").trim()).await {
        Ok(codes) => {
            let template = TwoFactorPage {
                frame: frame(&request, &visitor),
                is_enabled: true,
                secret: String::new(),
                code: None,
                recovery_codes: codes.iter().map(|code| code.expose().to_owned()).collect(),
            };
            page_with(StatusCode::OK, &template)
        }
        Err(error) => show(&request, &visitor, Some(&again(error))),
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

pub(super) async fn disable(
    request: HttpRequest,
    dashboard: Data<Dashboard>,
    Submitted { visitor, form }: Submitted,
) -> Result<HttpResponse, PageError> {
    match dashboard.services.two_factor.disable(&visitor, form.text("code").trim()).await {
        Ok(()) => Ok(see_other(format!("{PREFIX}/profile?done=two-factor-off"))),
        Err(error) => show(&request, &visitor, Some(&error.into())),
    }
}
