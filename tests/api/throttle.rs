//! Passwords cannot be guessed for long, and no one is locked out by a stranger elsewhere.

use launchway_testkit::{
    client::{Answer, Client},
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
};
use serde_json::json;

use crate::{auth::credentials, wait::at_once};

super::on_both_databases!(
    after_ten_wrong_passwords_even_the_right_one_has_to_wait,
    guesses_at_the_same_moment_are_counted_too,
    right_passwords_at_the_same_moment_are_no_failures,
);

fn after_ten_wrong_passwords_even_the_right_one_has_to_wait(mut server: TestServer) {
    server.admin();
    let other_tenant = server.other_tenant("member");
    for _ in 0..9 {
        guess(&server.client(), ADMIN_EMAIL).failure(401, "invalid_credentials");
    }
    // A success does not count as a failure, and resets none.
    server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
    guess(&server.client(), "ADA@example.com").failure(401, "invalid_credentials");
    has_to_wait(&right(&server.client()));

    server.kill();
    server.restart();
    has_to_wait(&right(&server.client()));
    has_to_wait(&guess(&server.client(), ADMIN_EMAIL));
    // Others at the same address do not.
    server.log_in(other_tenant.email, ADMIN_PASSWORD);
}

fn guesses_at_the_same_moment_are_counted_too(server: TestServer) {
    server.admin();
    let answers = at_once(24, |_| guess(&server.client(), ADMIN_EMAIL));
    let (tried, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 401);
    assert_eq!(tried.len(), 10);
    for answer in refused {
        has_to_wait(answer);
    }
    has_to_wait(&right(&server.client()));
}

fn right_passwords_at_the_same_moment_are_no_failures(server: TestServer) {
    server.admin();
    for answer in at_once(16, |_| right(&server.client())) {
        answer.success();
    }
    server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
}

#[test]
fn right_passwords_one_after_another_are_no_failures() {
    let server = TestServer::on_sqlite();
    server.admin();
    for _ in 0..12 {
        server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
    }
}

#[test]
fn after_fifty_failures_an_address_has_to_wait() {
    let server = TestServer::on_sqlite();
    server.admin();
    for account in 0..4 {
        let email = format!("nobody{account}@example.com");
        for _ in 0..10 {
            guess(&server.client(), &email).failure(401, "invalid_credentials");
        }
        // The response does not reveal whether the account exists.
        has_to_wait(&guess(&server.client(), &email));
    }
    for _ in 0..9 {
        guess(&server.client(), "nobody4@example.com").failure(401, "invalid_credentials");
    }
    server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
    guess(&server.client(), "nobody5@example.com").failure(401, "invalid_credentials");
    has_to_wait(&right(&server.client()));
}

#[test]
fn a_forged_address_does_not_count() {
    let server = TestServer::on_sqlite();
    server.admin();
    let from = |number: u8| {
        let address = format!("203.0.113.{number}");
        server
            .client()
            .with_header("x-forwarded-for", &address)
            .with_header("forwarded", &format!("for={address}"))
    };
    for number in 0..10 {
        guess(&from(number), ADMIN_EMAIL).failure(401, "invalid_credentials");
    }
    has_to_wait(&right(&from(99)));
    has_to_wait(&right(&server.client()));
}

#[test]
fn behind_a_trusted_proxy_the_address_that_it_saw_counts() {
    let server = TestServer::configured(&[("LAUNCHWAY_TRUSTED_PROXIES", "127.0.0.1, 10.0.0.0/9")]);
    server.admin();
    let from = |hops: &str| server.client().with_header("x-forwarded-for", hops);
    for number in 0..10 {
        // Forged addresses are left of the one that the proxy added.
        let hops = format!("203.0.113.{number}, 198.51.100.1, 10.9.9.9");
        guess(&from(&hops), ADMIN_EMAIL).failure(401, "invalid_credentials");
    }
    has_to_wait(&right(&from("198.51.100.1")));
    has_to_wait(&right(&from("198.51.100.2, 198.51.100.1")));
    right(&from("198.51.100.2")).success();
    right(&server.client()).success();
}

#[test]
fn an_account_is_throttled_everywhere_after_100_failures() {
    let server = TestServer::configured(&[("LAUNCHWAY_TRUSTED_PROXIES", "127.0.0.1")]);
    server.admin();
    let other_tenant = server.other_tenant("member");
    let from =
        |number: usize| server.client().with_header("x-forwarded-for", &format!("198.51.100.{number}"));
    for ten in 0..10 {
        for answer in at_once(10, |_| guess(&from(ten), ADMIN_EMAIL)) {
            answer.failure(401, "invalid_credentials");
        }
    }
    has_to_wait(&right(&from(200)));
    let other = credentials(other_tenant.email, ADMIN_PASSWORD);
    from(200).post("/api/v1/auth/login", &other).success();
}

#[test]
fn an_ipv6_customer_has_one_address_however_many_they_use() {
    let server = TestServer::configured(&[("LAUNCHWAY_TRUSTED_PROXIES", "127.0.0.1")]);
    server.admin();
    let from = |address: &str| server.client().with_header("x-forwarded-for", address);
    for number in 0..10 {
        guess(&from(&format!("2001:db8:1:2::{number}")), ADMIN_EMAIL).failure(401, "invalid_credentials");
    }
    has_to_wait(&right(&from("2001:db8:1:2:ffff::1")));
    right(&from("2001:db8:1:3::1")).success();
}

#[test]
fn the_present_password_cannot_be_guessed_by_changing_it() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let change = |current: &str| {
        let body = json!({"current_password": current, "new_password": "another good one"});
        admin.patch("/api/v1/user/password", &body)
    };
    for _ in 0..10 {
        change("not the password").failure(401, "invalid_credentials");
    }
    has_to_wait(&change(ADMIN_PASSWORD));
}

fn guess(client: &Client, email: &str) -> Answer {
    client.post("/api/v1/auth/login", &credentials(email, "not the password"))
}

fn right(client: &Client) -> Answer {
    client.post("/api/v1/auth/login", &credentials(ADMIN_EMAIL, ADMIN_PASSWORD))
}

#[track_caller]
fn has_to_wait(answer: &Answer) {
    answer.failure(429, "rate_limited");
    let seconds: u64 = answer.headers["retry-after"].parse().unwrap();
    assert!((1..=900).contains(&seconds), "{seconds}");
}
