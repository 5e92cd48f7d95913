//! Signatures of messages, checked as a receiver would, by the text of the standard alone.

use data_encoding::BASE64;
use hmac::{Hmac, Mac as _};
use launchway_testkit::{
    client::Client,
    external::{Message, Request, TestReceiver},
};
use serde_json::json;
use sha2::Sha256;

use super::{Fixture, Start, TEST, WEBHOOK, add, from_both_databases, settled, text};

from_both_databases!(a_secret_that_is_replaced_signs_beside_the_new_one_for_a_day);

/// Generates a new secret for the messages to the organization's own receiver.
pub(super) fn new_secret(admin: &Client) -> String {
    text(&admin.post(&format!("{WEBHOOK}/generic/secret"), &json!({})).success()["secret"])
}

/// Returns whether one of a message's signatures is made with `secret`.
pub(super) fn is_signed(request: &Request, secret: &str) -> bool {
    let header = |name: &str| request.header(name).unwrap_or_default();
    let key = BASE64.decode(secret.strip_prefix("whsec_").unwrap().as_bytes()).unwrap();
    let signed = format!("{}.{}.{}", header("webhook-id"), header("webhook-timestamp"), request.body);
    header("webhook-signature").split(' ').any(|signature| {
        let Some(signature) = signature.strip_prefix("v1,") else { return false };
        let Ok(signature) = BASE64.decode(signature.as_bytes()) else { return false };
        let mac = Hmac::<Sha256>::new_from_slice(&key).unwrap().chain_update(&signed);
        mac.verify_slice(&signature).is_ok()
    })
}

fn signatures(message: &Message) -> usize {
    message.request.header("webhook-signature").unwrap().split(' ').count()
}

fn a_secret_that_is_replaced_signs_beside_the_new_one_for_a_day(start: Start) {
    let fixture = Fixture::new(start);
    fixture.add_channel("generic");
    let first = new_secret(&fixture.admin);
    assert!(first.starts_with("whsec_"));
    add(&fixture.admin, "one@example.com");
    let message = fixture.receiver.wait_for(1)[0].clone();
    assert!(is_signed(&message.request, &first));
    assert_eq!(signatures(&message), 1, "no secret signs that nobody has seen");
    let id = message.request.header("webhook-id").unwrap();
    assert!(id.starts_with("msg_") && !id.contains('.'), "{id}");
    assert_eq!(message.request.header("content-type"), Some("application/json"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let sent: u64 = message.request.header("webhook-timestamp").unwrap().parse().unwrap();
    assert!(now.abs_diff(sent) < 300, "{sent} is not about now, {now}");

    // Any change of the message invalidates the signature.
    let mut forged = message.request.clone();
    forged.body = forged.body.replacen("one@", "two@", 1);
    assert!(!is_signed(&forged, &first));
    let changed = |name: &str| {
        let mut forged = message.request.clone();
        forged.headers.iter_mut().filter(|(known, _)| known == name).for_each(|(_, value)| value.push('1'));
        is_signed(&forged, &first)
    };
    assert!(!changed("webhook-id") && !changed("webhook-timestamp"));

    let second = new_secret(&fixture.admin);
    assert_ne!(first, second);
    add(&fixture.admin, "two@example.com");
    let both = fixture.receiver.wait_for(2)[1].clone();
    assert!(is_signed(&both.request, &first) && is_signed(&both.request, &second));
    assert!(!is_signed(&message.request, &second));

    // A day later.
    settled(&fixture.admin, "delivered", 2);
    fixture
        .server
        .execute("UPDATE signing_secrets SET valid_until = created_at WHERE valid_until IS NOT NULL");
    add(&fixture.admin, "three@example.com");
    let last = fixture.receiver.wait_for(3)[2].clone();
    assert!(is_signed(&last.request, &second) && !is_signed(&last.request, &first));
    assert_eq!(signatures(&last), 1);
}

#[test]
fn a_test_message_is_signed_too_and_six_secrets_at_most_sign() {
    let fixture = Fixture::new(launchway_testkit::server::TestServer::configured);
    fixture.add_channel("generic");
    let secrets: Vec<String> = (0..8).map(|_| new_secret(&fixture.admin)).collect();
    fixture.admin.post(TEST, &json!({"channel": "generic"})).success();
    let message = fixture.receiver.wait_for(1)[0].clone();
    let valid: Vec<bool> = secrets.iter().map(|secret| is_signed(&message.request, secret)).collect();
    assert_eq!(valid, [false, false, true, true, true, true, true, true]);
    assert_eq!(signatures(&message), 6);
}

#[test]
fn messages_to_slack_and_discord_carry_no_signature() {
    let fixture =
        Fixture::with(launchway_testkit::server::TestServer::configured, TestReceiver::taking(), &[]);
    fixture.add_channel("slack");
    fixture.add_channel("discord");
    add(&fixture.admin, "one@example.com");
    for message in fixture.receiver.wait_for(2) {
        for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
            assert_eq!(message.request.header(name), None);
        }
    }
}
