//! The cookies of the dashboard: the session, and the selected organization.
//!
//! **Invariant:** the cookie of the session is `HttpOnly` and `SameSite=Lax`; over HTTPS it is also `Secure`, and its
//! prefix `__Host-` makes browsers refuse it from any other host or path.

use actix_web::{
    HttpRequest,
    http::header::{COOKIE, HOST, HeaderValue},
};

use crate::state::DashboardOptions;

/// The lifetime of a session that is not used, as `launchway_domain::auth::Session::LIFETIME`.
const SESSION_SECONDS: i64 = 7 * 24 * 60 * 60;

/// The names of the cookies, which depend on the transport.
pub(crate) struct Cookies {
    is_secure: bool,
}

impl Cookies {
    pub(crate) fn of(request: &HttpRequest, options: &DashboardOptions) -> Self {
        Self { is_secure: is_https(request, options) }
    }

    /// Returns whether the browser speaks HTTPS.
    pub(crate) fn is_secure(&self) -> bool {
        self.is_secure
    }

    fn session_name(&self) -> &'static str {
        if self.is_secure { "__Host-launchway-session" } else { "launchway-session" }
    }

    /// Returns the session token that the browser sent.
    pub(crate) fn session(&self, request: &HttpRequest) -> Option<String> {
        read(request, self.session_name())
    }

    /// Returns the id of the selected organization that the browser sent.
    pub(crate) fn organization(&self, request: &HttpRequest) -> Option<String> {
        read(request, "launchway-organization")
    }

    /// Returns the header that stores a session.
    pub(crate) fn store_session(&self, token: &str) -> HeaderValue {
        self.header(self.session_name(), token, SESSION_SECONDS)
    }

    /// Returns the header that removes the session.
    pub(crate) fn remove_session(&self) -> HeaderValue {
        self.header(self.session_name(), "", 0)
    }

    /// Returns the header that selects an organization.
    pub(crate) fn store_organization(&self, id: &str) -> HeaderValue {
        self.header("launchway-organization", id, SESSION_SECONDS)
    }

    fn header(&self, name: &str, value: &str, seconds: i64) -> HeaderValue {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
        // Tokens and ids consist of letters, digits, `_` and `-`.
        HeaderValue::from_str(&text).unwrap_or_else(|_invalid| HeaderValue::from_static(""))
    }
}

fn read(request: &HttpRequest, name: &str) -> Option<String> {
    let headers = request.headers().get_all(COOKIE).filter_map(|header| header.to_str().ok());
    let mut pairs =
        headers.flat_map(|header| header.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value.to_owned())
        .filter(|value| !value.is_empty())
}

/// Returns whether the browser speaks HTTPS: a proxy in front says so, or the request is for the public URL. A client
/// that lies gets a cookie that its browser does not send over plain HTTP.
fn is_https(request: &HttpRequest, options: &DashboardOptions) -> bool {
    let text = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(protocol) = text("x-forwarded-proto") {
        return protocol.split(',').next().is_some_and(|first| first.trim().eq_ignore_ascii_case("https"));
    }
    let public = options.public_origin.as_deref().and_then(|origin| origin.strip_prefix("https://"));
    public.zip(text(HOST.as_str())).is_some_and(|(public, host)| public.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn cookies(is_secure: bool) -> Cookies {
        Cookies { is_secure }
    }

    #[test]
    fn over_https_the_cookie_is_bound_to_the_host() {
        let header = cookies(true).store_session("lws_abc");
        assert_eq!(
            header,
            "__Host-launchway-session=lws_abc; Path=/; HttpOnly; SameSite=Lax; Max-Age=604800; Secure"
        );
    }

    #[test]
    fn over_plain_http_the_cookie_has_no_prefix() {
        let header = cookies(false).store_session("lws_abc");
        assert_eq!(header, "launchway-session=lws_abc; Path=/; HttpOnly; SameSite=Lax; Max-Age=604800");
    }

    #[test]
    fn each_transport_reads_its_own_cookie_only() {
        let request = TestRequest::default()
            .insert_header((COOKIE, "a=b; launchway-session=plain; __Host-launchway-session=secure"))
            .to_http_request();
        assert_eq!(cookies(true).session(&request).as_deref(), Some("secure"));
        assert_eq!(cookies(false).session(&request).as_deref(), Some("plain"));
        let empty = TestRequest::default().insert_header((COOKIE, "launchway-session=")).to_http_request();
        assert_eq!(cookies(false).session(&empty), None);
    }
}
