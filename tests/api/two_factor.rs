//! Two-factor login, from the setup to disabling it.

use launchway_testkit::{
    authenticator::Authenticator,
    client::Answer,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
};
use serde_json::{Value, json};

use crate::wait::at_once;

const SETUP: &str = "/api/v1/auth/two-factor/setup";
const ENABLE: &str = "/api/v1/auth/two-factor/enable";
const DISABLE: &str = "/api/v1/auth/two-factor/disable";

super::on_both_databases!(
    once_it_is_on_a_login_needs_a_code,
    a_code_works_once,
    a_code_works_for_one_of_two_logins_at_the_same_moment,
    a_recovery_code_stands_in_once,
    it_can_be_turned_off_and_on_again,
);

fn once_it_is_on_a_login_needs_a_code(server: TestServer) {
    let admin = server.admin();
    let answer = admin.post(SETUP, &json!({}));
    let setup = answer.success();
    let secret = setup["secret"].as_str().unwrap();
    let url = format!("otpauth://totp/Launchway:ada%40example.com?secret={secret}&issuer=Launchway");
    assert_eq!(setup, json!({"secret": secret, "otpauth_url": url}));

    // Nothing is demanded until it is enabled.
    assert_eq!(admin.get("/api/v1/user").success()["two_factor_enabled"], false);
    log_in(&server, None).success();

    let mut authenticator = Authenticator::new(&setup);
    let enabled = admin.post(ENABLE, &json!({"code": authenticator.next_code()})).success();
    assert_eq!(enabled.as_object().unwrap().len(), 1);
    let user = admin.get("/api/v1/user").success();
    assert_eq!((&user["two_factor_enabled"], &user["two_factor_secret"]), (&json!(true), &json!("")));

    for none in [None, Some("")] {
        log_in(&server, none).failure(401, "two_factor_required");
    }
    log_in(&server, Some(&authenticator.wrong_code())).failure(401, "invalid_credentials");
    let answer = log_in(&server, Some(&authenticator.next_code()));
    assert_eq!(answer.success()["user"], user);
}

fn a_code_works_once(server: TestServer) {
    let admin = server.admin();
    let (mut authenticator, _) = Authenticator::enabled_for(&admin);
    // Neither the one that turned it on,
    log_in(&server, Some(&authenticator.last_code())).failure(401, "invalid_credentials");
    // nor the one of a login.
    let code = authenticator.next_code();
    log_in(&server, Some(&code)).success();
    log_in(&server, Some(&code)).failure(401, "invalid_credentials");
    admin.post(DISABLE, &json!({"code": code})).failure(401, "invalid_credentials");
    assert_eq!(admin.get("/api/v1/user").success()["two_factor_enabled"], true);
}

fn a_code_works_for_one_of_two_logins_at_the_same_moment(server: TestServer) {
    let (mut authenticator, recovery_codes) = Authenticator::enabled_for(&server.admin());
    for code in [authenticator.next_code(), recovery_codes[0].clone()] {
        let answers = at_once(4, |_| log_in(&server, Some(&code)));
        let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
        assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 3, "{statuses:?}");
    }
}

fn a_recovery_code_stands_in_once(server: TestServer) {
    let (_, codes) = Authenticator::enabled_for(&server.admin());
    let mut distinct = codes.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 10);

    log_in(&server, Some(&codes[0])).success();
    log_in(&server, Some(&codes[0])).failure(401, "invalid_credentials");
    let as_typed = codes[1].to_uppercase().replace('-', " ");
    log_in(&server, Some(&as_typed)).success();
    log_in(&server, Some(&codes[1])).failure(401, "invalid_credentials");
    log_in(&server, Some("aaaa-bbbb-cccc-dddd")).failure(401, "invalid_credentials");
}

fn it_can_be_turned_off_and_on_again(server: TestServer) {
    let admin = server.admin();
    let (mut authenticator, old_codes) = Authenticator::enabled_for(&admin);
    admin.post(SETUP, &json!({})).failure(409, "conflict");
    admin.post(ENABLE, &json!({"code": authenticator.last_code()})).failure(409, "conflict");
    admin.post(DISABLE, &json!({"code": authenticator.wrong_code()})).failure(401, "invalid_credentials");
    let answer = admin.post(DISABLE, &json!({"code": authenticator.next_code()}));
    assert_eq!(answer.success(), Value::Null);
    assert_eq!(admin.get("/api/v1/user").success()["two_factor_enabled"], false);
    log_in(&server, None).success();
    admin.post(DISABLE, &json!({"code": old_codes[0]})).failure(409, "conflict");

    let (_, new_codes) = Authenticator::enabled_for(&admin);
    log_in(&server, Some(&old_codes[1])).failure(401, "invalid_credentials");
    log_in(&server, Some(&new_codes[1])).success();
    // Without the telephone, a recovery code works.
    admin.post(DISABLE, &json!({"code": new_codes[2]})).success();
    log_in(&server, None).success();
}

#[test]
fn a_set_up_can_be_begun_anew_and_the_last_one_counts() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let mut first = Authenticator::new(&admin.post(SETUP, &json!({})).success());
    let mut second = Authenticator::new(&admin.post(SETUP, &json!({})).success());
    assert_ne!(first.secret, second.secret);
    admin.post(ENABLE, &json!({"code": first.next_code()})).failure(401, "invalid_credentials");
    admin.post(ENABLE, &json!({"code": second.wrong_code()})).failure(401, "invalid_credentials");
    admin.post(ENABLE, &json!({"code": second.next_code()})).success();
}

#[test]
fn nothing_can_be_turned_on_or_off_that_was_not_set_up() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    admin.post(ENABLE, &json!({"code": "123456"})).failure(409, "conflict");
    admin.post(DISABLE, &json!({"code": "123456"})).failure(409, "conflict");
    admin.post(SETUP, &json!({})).success();
    admin.post(DISABLE, &json!({"code": "123456"})).failure(409, "conflict");
    for path in [ENABLE, DISABLE] {
        assert_eq!(admin.post(path, &json!({})).failure(400, "validation_failed"), "code is required");
    }
}

#[test]
fn only_who_knows_the_password_learns_that_a_code_is_needed() {
    let server = TestServer::on_sqlite();
    Authenticator::enabled_for(&server.admin());
    let guess = json!({"email": ADMIN_EMAIL, "password": "not the password"});
    let wrong = server.client().post("/api/v1/auth/login", &guess);
    wrong.failure(401, "invalid_credentials");
    let guess = json!({"email": "nobody@example.com", "password": "not the password"});
    assert_eq!(server.client().post("/api/v1/auth/login", &guess).text, wrong.text);
}

#[test]
fn codes_cannot_be_guessed_for_long() {
    let server = TestServer::on_sqlite();
    let (mut authenticator, _) = Authenticator::enabled_for(&server.admin());
    for _ in 0..10 {
        log_in(&server, Some(&authenticator.wrong_code())).failure(401, "invalid_credentials");
    }
    let answer = log_in(&server, Some(&authenticator.next_code()));
    answer.failure(429, "rate_limited");
    assert!(answer.headers.contains_key("retry-after"));
}

#[test]
fn the_secret_and_the_recovery_codes_are_never_shown_again() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let (mut authenticator, codes) = Authenticator::enabled_for(&admin);
    let answers = [
        admin.get("/api/v1/user"),
        admin.get("/api/v1/user/organizations"),
        admin.get("/api/v1/user/settings"),
        admin.patch("/api/v1/user/settings/theme", &json!({"theme": "dark"})),
        admin.patch("/api/v1/user/name", &json!({"name": "Ada L."})),
        admin.get("/api/v1/auth/tokens"),
        admin.post("/api/v1/auth/tokens", &json!({"name": "ci"})),
        log_in(&server, Some(&authenticator.next_code())),
        admin.post(SETUP, &json!({})),
    ];
    for answer in answers {
        let shown =
            std::iter::once(&authenticator.secret).chain(&codes).any(|secret| answer.text.contains(secret));
        assert!(!shown, "{answer:?}");
    }
}

fn log_in(server: &TestServer, code: Option<&str>) -> Answer {
    let login = json!({"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD, "totp_code": code});
    server.client().post("/api/v1/auth/login", &login)
}
