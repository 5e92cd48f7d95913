//! Whatever is written as the address of a webhook, a mail server or a person: what is kept reads back
//! to itself, and an address of a machine is never kept as a name.
#![no_main]

use std::net::IpAddr;

use launchway_domain::{
    notifications::{MailHost, WebhookUrl},
    users::{EmailAddress, Username},
};
use libfuzzer_sys::fuzz_target;
use url::Host;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    webhook(text);
    mail_host(text);
    email(text);
});

fn webhook(raw: &str) {
    let url = match WebhookUrl::try_from(raw.to_owned()) {
        Ok(url) => url,
        Err(refused) => {
            // Whatever the address, the refusal is the same: it may hold a secret.
            assert_eq!(Err(refused), WebhookUrl::try_from(String::new()));
            return;
        }
    };
    let kept = url.expose();
    assert!(kept.is_ascii() && !kept.contains(|c: char| c.is_control() || c == ' ' || c == '#'), "{kept:?}");
    assert_eq!(WebhookUrl::try_from(kept.to_owned()).as_ref(), Ok(&url), "{kept:?}");
    assert!(url.port() > 0);
    assert_eq!(url.is_encrypted(), kept.starts_with("https://"), "{kept:?}");
    match url.host() {
        Host::Domain(name) => is_a_name(name),
        Host::Ipv4(_) | Host::Ipv6(_) => {}
    }
    let masked = url.masked();
    assert!(masked.ends_with("/***") && kept.starts_with(&masked[..masked.len() - 3]), "{masked:?}");
}

/// To whoever resolves or reads names it is no address, in whatever spelling.
fn is_a_name(name: &str) {
    assert!(!name.is_empty() && name.parse::<IpAddr>().is_err(), "{name:?}");
    assert_eq!(Host::parse(name), Ok(Host::Domain(name.to_owned())));
    let last = name.strip_suffix('.').unwrap_or(name).rsplit('.').next().unwrap_or_default();
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_hexadecimal =
        last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert!(!is_number(last) && !is_hexadecimal, "{name:?}");
}

fn mail_host(raw: &str) {
    let Ok(host) = raw.parse::<MailHost>() else { return };
    let kept = host.as_str();
    assert_eq!(kept.parse().as_ref(), Ok(&host));
    match kept.parse::<IpAddr>() {
        Ok(address) => assert_eq!(address.to_string(), kept),
        Err(_) => {
            is_a_name(kept);
            let is_plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte);
            assert!(kept.len() <= 254 && !kept.starts_with('-') && kept.bytes().all(is_plain), "{kept:?}");
        }
    }
}

fn email(raw: &str) {
    let Ok(address) = raw.parse::<EmailAddress>() else { return };
    let kept = address.as_str();
    assert_eq!(kept.parse().as_ref(), Ok(&address));
    // Nothing that would end or begin something in a mail.
    let is_harmful = |c: char| c.is_control() || c.is_whitespace() || "<>()[],;:\\\"".contains(c);
    assert!(kept.len() <= 254 && !kept.contains(is_harmful) && kept.matches('@').count() == 1, "{kept:?}");
    assert_eq!(address.key().to_lowercase(), address.key());
    let name = address.local_part();
    assert_eq!(name.as_str().parse::<Username>(), Ok(name.clone()));
}
