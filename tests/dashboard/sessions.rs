//! Sessions, cookies and forms, by HTTP.

use launchway_testkit::server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer};
use serde_json::json;

use crate::requests::{Visitor, form, own_page};

macro_rules! on_both_databases {
    ($($name:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[test] fn $name() { super::$name(&launchway_testkit::server::TestServer::on_sqlite()); })*
        }
        mod on_postgres {
            $(#[test] fn $name() { super::$name(&launchway_testkit::server::TestServer::on_postgres()); })*
        }
    };
}
on_both_databases!(
    the_first_administrator_registers_and_logs_out,
    logging_out_everywhere_ends_every_session,
    a_login_gives_a_new_session,
);

const LOGIN: [(&str, &str); 2] = [("email", ADMIN_EMAIL), ("password", ADMIN_PASSWORD)];

fn the_first_administrator_registers_and_logs_out(server: &TestServer) {
    let page = server.client().get("/dashboard/login");
    assert_eq!((page.status, page.headers["location"].as_str()), (303, "/dashboard/register"));
    let fields = [LOGIN[0], LOGIN[1], ("username", "ada")];
    let answer = own_page(server).send("POST", "/dashboard/register", Some(&form(&fields)));
    assert_eq!((answer.status, answer.headers["location"].as_str()), (303, "/dashboard/applications"));
    let again = own_page(server).send("POST", "/dashboard/register", Some(&form(&fields)));
    assert_eq!(again.status, 403, "{}", again.text);

    let ada = Visitor::log_in(server, ADMIN_EMAIL, ADMIN_PASSWORD);
    assert_eq!(ada.get("/applications").status, 200);
    let answer = ada.send("/logout", &[]);
    assert_eq!(answer.headers["location"], "/dashboard/login?done=logged-out");
    assert!(answer.headers["set-cookie"].contains("Max-Age=0"), "{}", answer.headers["set-cookie"]);
    assert_eq!(ada.get("/applications").headers["location"], "/dashboard/login?next=/applications");
}

fn logging_out_everywhere_ends_every_session(server: &TestServer) {
    let by_api = server.admin();
    let [one, two] = [(); 2].map(|()| Visitor::log_in(server, ADMIN_EMAIL, ADMIN_PASSWORD));
    assert_eq!(one.get("/profile").text.matches("/dashboard/profile/sessions/end").count(), 2);
    assert_eq!(one.send("/logout-everywhere", &[]).status, 303);
    assert_eq!(two.get("/applications").status, 303);
    assert_eq!(by_api.get("/api/v1/user").status, 401);
}

fn a_login_gives_a_new_session(server: &TestServer) {
    server.admin();
    let fixed = "launchway-session=lws_chosen_by_somebody_else";
    let client = own_page(server).with_header("cookie", fixed);
    let answer = client.send("POST", "/dashboard/login", Some(&form(&LOGIN)));
    let cookie = &answer.headers["set-cookie"];
    assert!(cookie.starts_with("launchway-session=lws_") && !cookie.contains("chosen"), "{cookie}");
    assert_eq!(client.get("/dashboard/applications").status, 303);
}

#[test]
fn the_cookie_is_protected_on_each_transport() {
    let server = TestServer::on_sqlite();
    server.admin();
    let plain = own_page(&server).send("POST", "/dashboard/login", Some(&form(&LOGIN)));
    let cookie = &plain.headers["set-cookie"];
    assert!(cookie.contains("; Path=/; HttpOnly; SameSite=Lax") && !cookie.contains("Secure"), "{cookie}");
    let proxied = own_page(&server).with_header("x-forwarded-proto", "https");
    let proxied = proxied.with_header("x-forwarded-for", "192.0.2.7");
    let answer = proxied.send("POST", "/dashboard/login", Some(&form(&LOGIN)));
    let cookie = &answer.headers["set-cookie"];
    assert!(cookie.starts_with("__Host-launchway-session=lws_"), "{cookie}");
    assert!(cookie.contains("; Path=/; HttpOnly; SameSite=Lax") && cookie.ends_with("; Secure"), "{cookie}");
}

#[test]
fn over_plain_http_from_elsewhere_nobody_logs_in() {
    let server = TestServer::on_sqlite();
    server.admin();
    let elsewhere = own_page(&server).with_header("x-forwarded-for", "192.0.2.7");
    let page = elsewhere.get("/dashboard/login");
    assert!(page.text.contains("HTTPS is needed") && !page.text.contains("<form"), "{}", page.text);
    let answer = elsewhere.send("POST", "/dashboard/login", Some(&form(&LOGIN)));
    assert_eq!(answer.status, 403);
    assert!(!answer.headers.contains_key("set-cookie"));
}

#[test]
fn forms_of_other_pages_are_refused() {
    let server = TestServer::on_sqlite();
    server.admin();
    let ada = Visitor::log_in(&server, ADMIN_EMAIL, ADMIN_PASSWORD);
    let token = ada.form_token();
    let rename = |token: &str, headers: &[(&str, &str)]| {
        let client = server.client().with_header("content-type", "application/x-www-form-urlencoded");
        let client = client.with_header("cookie", &ada.cookie);
        let client = headers.iter().fold(client, |client, (name, value)| client.with_header(name, value));
        let body = form(&[("username", "mallory"), ("form_token", token)]);
        client.send("POST", "/dashboard/profile/name", Some(&body)).status
    };
    for site in ["cross-site", "same-site", "none"] {
        assert_eq!(rename(&token, &[("sec-fetch-site", site)]), 403, "{site}");
    }
    assert_eq!(rename(&token, &[]), 403, "neither header");
    assert_eq!(rename(&token, &[("origin", "http://evil.example")]), 403);
    assert_eq!(rename(&token, &[("origin", "null")]), 403);
    assert_eq!(rename("", &[("sec-fetch-site", "same-origin")]), 403);
    assert_eq!(rename(&token.to_lowercase(), &[("sec-fetch-site", "same-origin")]), 403);
    assert!(!ada.get("/profile").text.contains("mallory"));
    assert_eq!(rename(&token, &[("origin", server.url())]), 303);
    assert_eq!(rename(&token, &[("sec-fetch-site", "same-origin")]), 303);
}

#[test]
fn a_login_leads_to_no_other_site() {
    let server = TestServer::on_sqlite();
    server.admin();
    for next in
        ["//evil.example", "https://evil.example", "/\\evil.example", "/\nSet-Cookie: a=b", ".evil.example"]
    {
        let fields = [LOGIN[0], LOGIN[1], ("next", next)];
        let answer = own_page(&server).send("POST", "/dashboard/login", Some(&form(&fields)));
        assert_eq!(answer.headers["location"], "/dashboard/applications", "{next}");
    }
    let fields = [LOGIN[0], LOGIN[1], ("next", "/applications/new?a=b")];
    let answer = own_page(&server).send("POST", "/dashboard/login", Some(&form(&fields)));
    assert_eq!(answer.headers["location"], "/dashboard/applications/new?a=b");
}

#[test]
fn the_api_accepts_no_cookie_and_pages_no_token() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let ada = Visitor::log_in(&server, ADMIN_EMAIL, ADMIN_PASSWORD);
    assert_eq!(server.client().with_header("cookie", &ada.cookie).get("/api/v1/user").status, 401);
    let token = admin.post("/api/v1/auth/tokens", &json!({"name": "robot"})).success()["token"].clone();
    let cookie = format!("launchway-session={}", token.as_str().unwrap());
    assert_eq!(server.client().with_header("cookie", &cookie).get("/dashboard/applications").status, 303);
}

#[test]
fn wrong_passwords_are_throttled_as_by_the_api() {
    let server = TestServer::on_sqlite();
    server.admin();
    let wrong = form(&[("email", ADMIN_EMAIL), ("password", "wrong horse battery")]);
    let statuses: Vec<u16> =
        (0..30).map(|_| own_page(&server).send("POST", "/dashboard/login", Some(&wrong)).status).collect();
    assert_eq!(statuses.first(), Some(&401));
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    let answer = own_page(&server).send("POST", "/dashboard/login", Some(&form(&LOGIN)));
    assert!(answer.status == 429 && answer.headers.contains_key("retry-after"), "{answer:?}");
    let by_api = json!({"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD});
    assert_eq!(server.client().post("/api/v1/auth/login", &by_api).status, 429);
}

#[test]
fn pages_are_private_and_protected() {
    let server = TestServer::on_sqlite();
    server.admin();
    let ada = Visitor::log_in(&server, ADMIN_EMAIL, ADMIN_PASSWORD);
    for answer in [ada.get("/applications"), ada.get("/nowhere"), server.client().get("/dashboard/login")] {
        assert_eq!(answer.headers["cache-control"], "no-store");
        let policy = &answer.headers["content-security-policy"];
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"), "{policy}");
        assert_eq!(answer.headers["referrer-policy"], "same-origin");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        assert_eq!(answer.headers["x-frame-options"], "DENY");
    }
    let page = ada.get("/nowhere");
    assert_eq!((page.status, page.headers["content-type"].as_str()), (404, "text/html; charset=utf-8"));
}

#[test]
fn programs_keep_the_envelope_outside_of_the_dashboard() {
    let server = TestServer::on_sqlite();
    let browser = server.client().with_header("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
    let page = browser.get("/");
    assert_eq!((page.status, page.headers["location"].as_str()), (303, "/dashboard/applications"));
    for accept in ["*/*", "application/json"] {
        let answer = server.client().with_header("accept", accept).get("/");
        assert_eq!((answer.status, answer.json()["error"].as_str()), (404, Some("route_not_found")));
    }
    for path in ["/dashboards", "/favicon.ico", "/nowhere"] {
        assert_eq!(browser.get(path).json()["error"], "route_not_found", "{path}");
    }
}

#[test]
fn a_form_that_is_too_large_is_refused() {
    let server = TestServer::on_sqlite();
    server.admin();
    let ada = Visitor::log_in(&server, ADMIN_EMAIL, ADMIN_PASSWORD);
    let large = "a".repeat(1024 * 1024);
    assert_eq!(ada.send("/profile/name", &[("username", &large)]).status, 413);
    assert_eq!(ada.send("/profile/name", &[("username", &large[..1000])]).status, 400);
}
