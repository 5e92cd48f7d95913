//! Passwords and codes are guessed, from one address, from forged ones, and from many real ones.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use launchway_testkit::{authenticator::Authenticator, client::Client};
use serde_json::{Value, json};

use crate::{
    harness::{EMAIL, Harness, PASSWORD, Plan},
    load::ResponseCounts,
    options::Options,
    regular::Regular,
    section::Section,
};

const METHOD: &str = "\
Sixteen clients guess at the same time, on SQLite. Each kind of guess has an installation of its own: the password of \
one account; the same with another forged `X-Forwarded-For` and `Forwarded` in each request; the passwords of 200 \
accounts, 20 of which exist; and the codes of an account whose password they know. Every tenth guess, from the 101st \
on, is the right one, and must be refused.\n\n\
A further kind of guess comes from many real addresses: a trusted proxy names another address for each guess. Then \
only the count of failures of the account limits them, and nothing limits guesses at unknown accounts. Each guess \
costs the server a full password verification.\n\n\
Meanwhile a client with a session requests its own user. For the control, the server trusts every client that names \
an address, and the right password comes early: a client gets in, and is counted.";

const LOGIN: &str = "/api/v1/auth/login";
const USER: &str = "/api/v1/user";
/// The number of concurrent guesses.
const CALLERS: usize = 16;
/// The guess from which on correct ones are included. By then everything is locked.
const RIGHT_FROM: usize = 100;
/// The allowed growth of the server's memory after the guesses, in MiB.
const MORE_MEMORY: usize = 64;

/// Returns the client and the body of the guess with a number.
type Guess<'a> = dyn Fn(usize) -> (Client, Value) + Sync + 'a;

pub(crate) fn run(options: &Options) -> Section {
    let mut section = Section::new("Guesses", METHOD);
    let count = options.count(150, 10_000);
    let wrong = |number: usize| format!("not the password {number}");
    // A correct guess before the lock is reached succeeds, as it should.
    let is_right = |number: usize| number >= RIGHT_FROM && number.is_multiple_of(10);
    let password = |number: usize| if is_right(number) { PASSWORD.to_owned() } else { wrong(number) };

    let emails: Vec<_> = (0..200).map(|number| format!("someone-{number}@example.com")).collect();
    {
        let harness = harness(options, "");
        let one = |number| (harness.stranger(), credentials(EMAIL, &password(number)));
        try_all(&mut section, "one account, one address", &harness, count, &one);
    }
    {
        let harness = harness(options, "");
        let forged = |number| (from(&harness, number), credentials(EMAIL, &password(number)));
        try_all(&mut section, "one account, forged addresses", &harness, count, &forged);
    }
    {
        let harness = harness(options, "");
        for email in emails.iter().take(20) {
            let member = json!({"email": email, "role": "viewer"});
            harness.admin.post("/api/v1/organizations/users", &member).success();
        }
        let many = |number: usize| {
            let email = if is_right(number) { EMAIL } else { emails[number % emails.len()].as_str() };
            (harness.stranger(), credentials(email, &password(number)))
        };
        try_all(&mut section, "many accounts, one address", &harness, count, &many);
    }
    codes(&mut section, options, count);
    {
        // None is correct here: a user whom a stranger elsewhere cannot lock out would get in, as intended.
        let harness = harness(options, "127.0.0.1");
        let others = |number: usize| {
            (from(&harness, number), credentials(&emails[number % emails.len()], &wrong(number)))
        };
        try_all(&mut section, "many accounts, many real addresses", &harness, count / 5, &others);
    }
    let harness = harness(options, "127.0.0.1");
    let early = |number| {
        let password = if number == 20 { PASSWORD } else { "not the password" };
        (from(&harness, number / 5), credentials(EMAIL, password))
    };
    let responses = guess(40, &early);
    section.control("forged addresses are believed: right passwords that got in", successes(&responses));
    section
}

/// The password is right, the codes are guessed.
fn codes(section: &mut Section, options: &Options, count: usize) {
    let harness = harness(options, "");
    let (authenticator, recovery) = Authenticator::enabled_for(&harness.admin);
    let wrong = authenticator.wrong_code();
    let code = |number: usize| {
        let mut body = credentials(EMAIL, PASSWORD);
        let is_right = number >= RIGHT_FROM && number.is_multiple_of(10);
        body["totp_code"] = json!(if is_right { &recovery[number / 10 % recovery.len()] } else { &wrong });
        (harness.stranger(), body)
    };
    try_all(section, "codes of one account, right password", &harness, count, &code);
}

fn try_all(section: &mut Section, what: &str, harness: &Harness, count: usize, next: &Guess<'_>) {
    let before = harness.server.memory();
    let alone = Regular::during(&harness.admin, USER, Duration::from_millis(500));
    let regular = Regular::begin(&harness.admin, USER);
    let responses = guess(count, next);
    let waits = regular.end();
    let after = harness.server.memory();
    section.note(&format!("{what}: guesses, by answer"), responses.shown());
    section.never(&format!("{what}: got in"), successes(&responses));
    let odd = responses.statuses.iter().filter(|(status, _)| ![200, 401, 429].contains(*status));
    let odd = odd.map(|(_, count)| count).sum::<usize>() + responses.unanswered;
    section.never(&format!("{what}: answers other than 401 and 429, or none"), odd);
    let shown = format!("{before} MiB / {after} MiB / {} MiB", harness.server.peak_memory());
    section.goal(
        &format!("{what}: memory of the server before / after / at most"),
        shown,
        &format!("at most {MORE_MEMORY} MiB more after"),
        after <= before + MORE_MEMORY,
    );
    section.note(
        &format!("{what}: 99th percentile of a regular client, before / meanwhile"),
        format_args!("{:.1} ms / {:.1} ms", millis(alone.percentile(99)), millis(waits.percentile(99))),
    );
    section.never(&format!("{what}: answers to it other than 200, or none"), waits.unserved);
}

/// Sends all guesses; returns the responses.
fn guess(count: usize, next: &Guess<'_>) -> ResponseCounts {
    let (number, responses) = (AtomicUsize::default(), Mutex::new(ResponseCounts::default()));
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                loop {
                    let number = number.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    let (client, body) = next(number);
                    let answer = client.try_send("POST", LOGIN, Some(&body.to_string()));
                    let mut responses = responses.lock().unwrap_or_else(PoisonError::into_inner);
                    match answer {
                        Ok(answer) => *responses.statuses.entry(answer.status).or_default() += 1,
                        Err(_) => responses.unanswered += 1,
                    }
                }
            });
        }
    });
    responses.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn successes(responses: &ResponseCounts) -> usize {
    responses.statuses.get(&200).copied().unwrap_or_default()
}

fn harness(options: &Options, trusted: &str) -> Harness {
    let settings = vec![("LAUNCHWAY_TRUSTED_PROXIES".to_owned(), trusted.to_owned())];
    Harness::set(options, &Plan { settings, ..Plan::default() })
}

/// A client with a forged address.
fn from(harness: &Harness, number: usize) -> Client {
    let address = format!("198.51.{}.{}", 100 + number / 250 % 100, number % 250 + 1);
    let client = harness.stranger().with_header("x-forwarded-for", &address);
    client.with_header("forwarded", &format!("for={address}"))
}

fn credentials(email: &str, password: &str) -> Value {
    json!({"email": email, "password": password})
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
