//! Whatever somebody sends who says to be a code host: it is read or is none, only who knows the
//! secret is believed, a changed byte is noticed, and a form says what its text says.
//!
//! An input is lines of headers, an empty line, and a body.
#![no_main]

use data_encoding::HEXLOWER;
use hmac::{Hmac, Mac as _};
use launchway_domain::webhooks::{Delivery, DeliveryId, DeliveryMark, WebhookSecret};
use libfuzzer_sys::fuzz_target;
use sha2::{Digest as _, Sha256};

/// A code host: the headers that identify it, its signature, and whether it signs the text of a form.
struct Host {
    event: &'static str,
    signature: &'static str,
    prefix: &'static str,
    signs_text: bool,
}

const SIGNING: [Host; 4] = [
    Host { event: "x-github-event", signature: "x-hub-signature-256", prefix: "sha256=", signs_text: false },
    Host { event: "x-event-key", signature: "x-hub-signature", prefix: "sha256=", signs_text: false },
    Host { event: "x-gitea-event", signature: "x-gitea-signature", prefix: "", signs_text: true },
    Host { event: "x-forgejo-event", signature: "x-forgejo-signature", prefix: "", signs_text: true },
];

fuzz_target!(|data: &[u8]| {
    // Nobody can write down what follows from the whole of what they write.
    let secret = WebhookSecret::new(Sha256::digest(data).into());
    let (headers, body) = parts(data);
    if let Some(delivery) = read(&headers, body) {
        assert!(!delivery.is_signed_with(&secret), "{delivery:?}");
        is_recognised(&delivery, &read(&headers, body));
        if body.trim_ascii_start().starts_with(b"{") {
            assert_eq!(&*delivery.payload(), body);
        }
    }
    for host in SIGNING {
        notices_every_change(&host, &headers, body, &secret);
        agrees_on_forms(&host, body, &secret);
    }
    says_the_token(body, &secret);
});

type Headers<'a> = Vec<(String, &'a str)>;

fn parts(data: &[u8]) -> (Headers<'_>, &[u8]) {
    let end = data.windows(2).position(|pair| pair == b"\n\n").unwrap_or(data.len());
    let (head, body) = (&data[..end], data.get(end + 2..).unwrap_or_default());
    let lines = std::str::from_utf8(head).unwrap_or_default().lines();
    let header = |line: &'_ str| line.split_once(':').map(|(name, _)| name.trim().to_ascii_lowercase());
    let headers = lines.filter_map(|line| Some((header(line)?, line.split_once(':')?.1.trim())));
    (headers.collect(), body)
}

fn read(headers: &Headers<'_>, body: &[u8]) -> Option<Delivery> {
    let find = |name: &str| headers.iter().find(|(other, _)| other == name);
    Delivery::read(|name| find(name).map(|(_, value)| (*value).to_owned()), body.to_vec())
}

/// The same delivery has the same mark, and its id is one.
fn is_recognised(delivery: &Delivery, again: &Option<Delivery>) {
    assert_eq!(Some(delivery), again.as_ref());
    let mark = delivery.mark();
    assert_eq!(Some(&mark), again.as_ref().map(Delivery::mark).as_ref());
    if let DeliveryMark::Id(id) = mark {
        assert_eq!(id.as_str().parse::<DeliveryId>(), Ok(id.clone()));
        assert!(!id.as_str().contains(|c: char| c.is_control() || c == ' '), "{id:?}");
    }
}

fn signature(secret: &WebhookSecret, text: &[u8]) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()).unwrap();
    HEXLOWER.encode(&mac.chain_update(text).finalize().into_bytes())
}

/// Returns the headers that a code host sends: its own headers, and with them whatever headers there are of no code host.
fn sent(host: &Host, others: &Headers<'_>, signature: &str, body: &[u8]) -> Option<Delivery> {
    let signed = format!("{}{signature}", host.prefix);
    let mut headers: Headers<'_> =
        vec![(host.event.to_owned(), "push"), (host.signature.to_owned(), &signed)];
    let is_delivery = |name: &str| name.ends_with("-delivery") || name.ends_with("-uuid");
    headers.extend(others.iter().filter(|(name, _)| is_delivery(name)).cloned());
    read(&headers, body)
}

fn notices_every_change(host: &Host, others: &Headers<'_>, body: &[u8], secret: &WebhookSecret) {
    let signature = signature(secret, body);
    let believed = |signature: &str, body: &[u8], secret: &WebhookSecret| {
        sent(host, others, signature, body).is_some_and(|delivery| delivery.is_signed_with(secret))
    };
    assert!(believed(&signature, body, secret), "{}", host.event);
    assert!(!believed(&signature, body, &WebhookSecret::new([7; 32])), "{}", host.event);
    for place in [0, body.len() / 2, body.len().saturating_sub(1)] {
        let mut changed = body.to_vec();
        if let Some(byte) = changed.get_mut(place) {
            *byte ^= 1 << (place % 8);
            assert!(!believed(&signature, &changed, secret), "{} at {place}", host.event);
        }
    }
    let longer = [body, b"\n"].concat();
    assert!(!believed(&signature, &longer, secret), "{}", host.event);
    let other_digit = if signature.starts_with('0') { "1" } else { "0" };
    assert!(!believed(&format!("{other_digit}{}", &signature[1..]), body, secret), "{}", host.event);
    assert!(!believed(&signature[2..], body, secret), "{}", host.event);
}

/// A text tells the same by itself and in a form.
fn agrees_on_forms(host: &Host, body: &[u8], secret: &WebhookSecret) {
    let Ok(text) = std::str::from_utf8(body) else { return };
    let text = format!("{{{text}");
    let encoded = url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let plain = sent(host, &vec![], &signature(secret, text.as_bytes()), text.as_bytes()).unwrap();
    for form in [format!("payload={encoded}"), format!("a=1&payload={encoded}&payload=other")] {
        let delivery = sent(host, &vec![], &signature(secret, text.as_bytes()), form.as_bytes()).unwrap();
        assert_eq!(delivery.payload(), plain.payload());
        assert_eq!(delivery.mark(), plain.mark());
        assert_eq!(delivery.is_signed_with(secret), host.signs_text, "{}", host.event);
        let of_form = sent(host, &vec![], &signature(secret, form.as_bytes()), form.as_bytes()).unwrap();
        assert!(of_form.is_signed_with(secret), "{}", host.event);
    }
}

/// GitLab says the secret itself, and nothing but the whole of it counts.
fn says_the_token(body: &[u8], secret: &WebhookSecret) {
    let said = |token: &str| {
        let headers = vec![("x-gitlab-token".to_owned(), token)];
        read(&headers, body).is_some_and(|delivery| delivery.is_signed_with(secret))
    };
    let token = secret.expose();
    assert!(said(token));
    let doubled = token.repeat(2);
    for other in ["", &token[1..], &token[..token.len() - 1], &doubled, &token.to_uppercase()] {
        assert_eq!(said(other), other == token, "{other}");
    }
}
