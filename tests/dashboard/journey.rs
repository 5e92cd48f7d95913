//! The way of a new administrator, in a real browser: register, deploy, watch, break, roll back, add a viewer.

use launchway_testkit::{
    authenticator::Authenticator,
    browser::Browser,
    client::Client,
    repository::Repository,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer, WITH_A_FRONT},
    wait::until,
};
use serde_json::{Value, json};

const VIEWER_PASSWORD: &str = "a viewer reads along";

/// Returns whether the page loaded anything from another host.
pub(crate) const LOADS_FROM_ELSEWHERE: &str =
    "performance.getEntriesByType('resource').some(e => !e.name.startsWith(location.origin))";

#[track_caller]
fn is_clean(browser: &Browser) {
    assert_eq!(browser.console_errors(), Vec::<Value>::new(), "{}", browser.url());
    assert_eq!(browser.value(LOADS_FROM_ELSEWHERE), false, "{}", browser.url());
}

#[test]
fn from_the_first_registration_to_a_rollback() {
    let folder = tempfile::tempdir().unwrap();
    let path = std::env::var("PATH").unwrap();
    let repositories = folder.path().display().to_string();
    let server = TestServer::configured(&[
        ("PATH", &path),
        ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", &repositories),
        WITH_A_FRONT,
    ]);
    let repository = Repository::empty(folder.path().join("site"));
    repository.write("public/index.html", "<h1>version one</h1>\n").commit();
    let browser = Browser::start();
    browser.resize(1280, 800, false);

    // Register: `/` leads there.
    browser.open(server.url());
    browser.wait_for("location.pathname === '/dashboard/register'");
    browser.picture("register.png");
    browser.fill("[name=username]", "ada");
    browser.fill("[name=email]", ADMIN_EMAIL);
    browser.fill("[name=password]", ADMIN_PASSWORD);
    browser.click("form button");
    browser.wait_for("document.querySelector('.empty h2')");
    browser.picture("empty.png");
    is_clean(&browser);

    // Deploy a site from a repository.
    browser.click(".empty .button.primary");
    browser.wait_for("document.querySelector('[name=repository]')");
    browser.picture("new.png");
    browser.fill("[name=repository]", &format!("file://{}", repository.path().display()));
    browser.fill("[name=name]", "Home page");
    browser.fill("[name=base_path]", "/public");
    browser.run("document.querySelector('[value=static]').click()");
    let call = browser.value("document.querySelector('[data-call] pre').textContent");
    assert!(call.as_str().unwrap().contains("\"build_pack\": \"static\""), "{call}");
    browser.run("document.querySelector('form.wide-form').requestSubmit()");

    // Watch the log go by: the states and the lines come without a reload.
    browser.wait_for("location.pathname.startsWith('/dashboard/deployments/')");
    browser.wait_for("document.querySelector('#progress .state.good')?.textContent === 'live'");
    browser.wait_for("document.querySelector('#log').textContent.includes('Deployed in')");
    assert_eq!(browser.value("document.querySelectorAll('.steps .done').length"), 5);
    let numbers = "[...document.querySelectorAll('#log .line')].map(each => each.id)";
    let lines = browser.value(numbers);
    let mut unique: Vec<_> = lines.as_array().unwrap().clone();
    unique.dedup();
    assert_eq!(unique.len(), lines.as_array().unwrap().len(), "a line came twice: {lines}");
    browser.picture("deployment.png");
    is_clean(&browser);

    // Open it, at the address that the page links.
    let address = browser.value("document.querySelector('.title .button[target]').href");
    let host = address.as_str().unwrap().trim_start_matches("http://").trim_end_matches('/').to_owned();
    let host = host.split(':').next().unwrap();
    assert!(server.visitor(host).get("/").text.contains("version one"));

    // A second version.
    let application = browser.value("document.querySelector('.tabs a').pathname");
    let application = format!("{}{}", server.url(), application.as_str().unwrap());
    repository.write("public/index.html", "<h1>version two</h1>\n").commit();
    browser.open(&application);
    browser.picture("application.png");
    browser.click(".title form[action$=redeploy] button");
    browser.wait_for("document.querySelector('#progress .state.good')?.textContent === 'live'");
    until("version two", || server.visitor(host).get("/").text.contains("version two").then_some(()));

    // Break it: a branch that does not exist fails, and the old version keeps running.
    browser.open(&format!("{application}/settings"));
    browser.fill("[name=branch]", "nowhere");
    browser.run("document.querySelector('form.wide-form').requestSubmit()");
    browser.wait_for("document.querySelector('.notice')");
    browser.open(&format!("{application}/deployments"));
    browser.wait_for("document.querySelector('.state.bad')");
    browser.picture("deployments.png");
    browser.run("document.querySelector('.state.bad').closest('tr').querySelector('a').click()");
    browser.wait_for("document.querySelector('.steps .failed')");
    browser.wait_for("document.querySelector('#log .line.error')");
    browser.picture("failed.png");
    assert!(server.visitor(host).get("/").text.contains("version two"));

    // Roll back to the first version, after a look at what changes.
    browser.open(&format!("{application}/deployments"));
    browser.run("[...document.querySelectorAll('a[href$=rollback]')].pop().click()");
    browser.wait_for("document.querySelector('h2')?.textContent === 'Roll back'");
    browser.picture("rollback.png");
    browser.click("form[action$=rollback] button");
    browser.wait_for("document.querySelector('#progress .state.good')?.textContent === 'live'");
    until("version one again", || server.visitor(host).get("/").text.contains("version one").then_some(()));
    is_clean(&browser);

    // A viewer reads, and is offered nothing else.
    browser.open(&format!("{}/dashboard/organization", server.url()));
    browser.fill("form[action$=members] [name=email]", "grace@example.com");
    browser.run("document.querySelector('form[action$=members] [name=role]').value = 'viewer'");
    browser.click("form[action$=members] button");
    browser.wait_for("document.querySelector('.shown pre')");
    browser.picture("organization.png");
    let token = browser.value("document.querySelector('.shown pre').textContent");
    browser.click(".account button");
    browser.wait_for("location.pathname === '/dashboard/login'");
    browser.open(&format!("{}/dashboard/join", server.url()));
    browser.fill("[name=token]", token.as_str().unwrap());
    browser.fill("[name=password]", VIEWER_PASSWORD);
    browser.click("form button");
    browser.wait_for("location.pathname === '/dashboard/login'");
    browser.fill("[name=email]", "grace@example.com");
    browser.fill("[name=password]", VIEWER_PASSWORD);
    browser.click("form button");
    browser.wait_for("document.querySelector('.name')");
    browser.picture("applications.png");
    assert_eq!(browser.value("document.querySelectorAll('a[href$=\"/new\"]').length"), 0);
    browser.open(&application);
    assert_eq!(browser.value("document.querySelectorAll('.title form').length"), 0);
    browser.open(&format!("{application}/variables"));
    assert_eq!(browser.value("document.querySelectorAll('textarea').length"), 0);
    is_clean(&browser);
    // What the page does not offer, the use case does not do.
    let session = Client::new(server.url());
    let login = session
        .post("/api/v1/auth/login", &json!({"email": "grace@example.com", "password": VIEWER_PASSWORD}));
    let token = login.success()["access_token"].as_str().unwrap().to_owned();
    let id = application.rsplit('/').next().unwrap();
    let stop = session.with_token(&token).post("/api/v1/deploy/application/stop", &json!({"id": id}));
    assert_eq!(stop.status, 403);
}

#[test]
fn two_factor_login_is_set_up_by_a_qr_code() {
    let server = TestServer::on_sqlite();
    server.admin();
    let browser = Browser::start();
    log_in(&browser, &server);
    browser.open(&format!("{}/dashboard/profile/two-factor", server.url()));
    browser.click("main form button");
    browser.wait_for("document.querySelector('svg.qr path')");
    browser.picture("two-factor.png");
    let secret = browser.value("document.querySelector('main pre').textContent");
    let code = Authenticator::new(&json!({"secret": secret})).next_code();
    browser.fill("[name=code]", &code);
    browser.click("main form button");
    browser.wait_for("document.querySelectorAll('ul.codes li').length >= 8");
    let recovery = browser.value("document.querySelector('ul.codes code').textContent");
    browser.click(".account button");
    browser.wait_for("location.pathname === '/dashboard/login'");
    browser.fill("[name=email]", ADMIN_EMAIL);
    browser.fill("[name=password]", ADMIN_PASSWORD);
    browser.click("form button");
    // The password stays in its field while the code is asked for.
    browser.wait_for("!document.querySelector('[data-code]').hidden");
    assert_eq!(browser.value("document.querySelector('[name=password]').value"), ADMIN_PASSWORD);
    browser.fill("[name=totp_code]", recovery.as_str().unwrap());
    browser.click("form button");
    browser.wait_for("location.pathname === '/dashboard/applications'");
}

/// Logs in as the administrator.
pub(crate) fn log_in(browser: &Browser, server: &TestServer) {
    log_in_as(browser, server, ADMIN_EMAIL, ADMIN_PASSWORD);
}

/// Logs in.
pub(crate) fn log_in_as(browser: &Browser, server: &TestServer, email: &str, password: &str) {
    browser.open(&format!("{}/dashboard/login", server.url()));
    browser.fill("[name=email]", email);
    browser.fill("[name=password]", password);
    browser.click("form button");
    browser.wait_for("location.pathname === '/dashboard/applications'");
}
