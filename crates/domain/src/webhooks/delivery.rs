//! A delivery of a code host, and its authentication.

use std::borrow::Cow;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use hmac::{Hmac, Mac as _};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{CodeHost, WebhookSecret};
use crate::{
    idempotency::BodyHash,
    secret::Secret,
    value::{InvalidValue, text_value},
};

text_value!(
    /// The id of a delivery, the same for every retry. It is not signed.
    DeliveryId,
    |raw| {
        let is_printed = raw.bytes().all(|byte| matches!(byte, b'!'..=b'~'));
        if (1..=255).contains(&raw.len()) && is_printed {
            Ok(raw)
        } else {
            Err(InvalidValue::text("1 to 255 ASCII characters that can be printed", &raw))
        }
    }
);

/// The identity of a delivery, for recognising repetitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryMark {
    /// The id that the code host sent.
    Id(DeliveryId),
    /// The hash of the text that was signed, if the code host sends no id. Two pushes may have the same text,
    /// so it counts only until another push of the branch is accepted.
    Body(BodyHash),
}

impl DeliveryMark {
    /// The retention of deliveries.
    pub const KEPT: chrono::TimeDelta = chrono::TimeDelta::days(7);
}

impl std::fmt::Display for DeliveryMark {
    /// Writes it as it is stored.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Id(id) => write!(f, "id:{id}"),
            Self::Body(hash) => write!(f, "body:{}", HEXLOWER.encode(&hash.0)),
        }
    }
}

/// A request that claims to be from a code host, not yet authenticated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    host: CodeHost,
    event: String,
    id: Option<DeliveryId>,
    proof: Proof,
    body: Vec<u8>,
}

/// The proof that a code host knows the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Proof {
    /// The HMAC-SHA256 of the body.
    Signature([u8; 32]),
    /// The secret itself.
    Token(Secret<String>),
}

impl Delivery {
    /// The size limit of a delivery, in bytes.
    pub const LARGEST: usize = 5 * 1024 * 1024;

    /// Parses the headers, which `header` returns by name; `None` if they are not from a code host, or have
    /// no signature by a supported algorithm.
    pub fn read(header: impl Fn(&'static str) -> Option<String>, body: Vec<u8>) -> Option<Self> {
        let says = |name: fn(CodeHost) -> &'static str| {
            CodeHost::ALL.into_iter().find(|host| header(name(*host)).is_some())
        };
        // Signatures come second: GitHub also sends a legacy one in Bitbucket's header.
        let host = says(|host| host.headers().event).or_else(|| says(|host| host.headers().signature))?;
        let names = host.headers();
        let proof = Proof::read(host, header(names.signature)?)?;
        let id = header(names.delivery).or_else(|| header(host.older_delivery_header()?));
        let id = id.and_then(|id| id.try_into().ok());
        Some(Self { host, event: header(names.event).unwrap_or_default(), id, proof, body })
    }

    /// Returns the sender.
    #[must_use]
    pub fn host(&self) -> CodeHost {
        self.host
    }

    /// Returns the name of the event.
    #[must_use]
    pub fn event(&self) -> &str {
        &self.event
    }

    /// Returns whether the sender knows `secret`. Takes the same time for any signature.
    #[must_use]
    pub fn is_signed_with(&self, secret: &WebhookSecret) -> bool {
        match &self.proof {
            Proof::Token(token) => is_same(token.expose(), secret.expose()),
            Proof::Signature(signature) if self.host.signs_text_of_form() => {
                is_signature(signature, secret, &self.body) | is_signature(signature, secret, &self.payload())
            }
            Proof::Signature(signature) => is_signature(signature, secret, &self.body),
        }
    }

    /// Returns the payload: the body, or the field `payload` of a form.
    #[must_use]
    pub fn payload(&self) -> Cow<'_, [u8]> {
        if self.body.trim_ascii_start().starts_with(b"{") {
            return Cow::Borrowed(&self.body);
        }
        match url::form_urlencoded::parse(&self.body).find(|(name, _)| name == "payload") {
            Some((_, payload)) => Cow::Owned(payload.into_owned().into_bytes()),
            None => Cow::Borrowed(&self.body),
        }
    }

    /// Returns the id that the code host sent.
    #[must_use]
    pub fn id(&self) -> Option<&DeliveryId> {
        self.id.as_ref()
    }

    /// Returns the identity for recognising repetitions. It hashes the text that was signed, because a form
    /// has several encodings.
    #[must_use]
    pub fn mark(&self) -> DeliveryMark {
        match &self.id {
            Some(id) => DeliveryMark::Id(id.clone()),
            None => DeliveryMark::Body(BodyHash::of(&self.payload())),
        }
    }
}

impl Proof {
    fn read(host: CodeHost, header: String) -> Option<Self> {
        if host == CodeHost::GitLab {
            return Some(Self::Token(Secret::new(header)));
        }
        let digits = match host.names_algorithm() {
            true => header.strip_prefix("sha256=")?,
            false => header.as_str(),
        };
        let bytes = HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok()?;
        bytes.try_into().ok().map(Self::Signature)
    }
}

fn is_signature(signature: &[u8; 32], secret: &WebhookSecret, text: &[u8]) -> bool {
    // HMAC accepts keys of any length, so this cannot fail.
    let Ok(mac) = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()) else { return false };
    mac.chain_update(text).verify_slice(signature).is_ok()
}

/// Compares by hashes, so that the time does not reveal even the length.
fn is_same(one: &str, other: &str) -> bool {
    Sha256::digest(one).ct_eq(&Sha256::digest(other)).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The example of GitHub's documentation.
    const SECRET: &str = "It's a Secret to Everybody";
    const BODY: &str = "Hello, World!";
    const SIGNATURE: &str = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    fn secret(text: &str) -> WebhookSecret {
        text.to_owned().try_into().unwrap()
    }

    fn delivery(headers: &[(&str, &str)], body: &str) -> Option<Delivery> {
        let find = |name: &str| headers.iter().find(|(other, _)| *other == name);
        Delivery::read(|name| find(name).map(|(_, value)| (*value).to_owned()), body.into())
    }

    /// Returns the documented example of each code host, or the equivalent in its format.
    fn deliveries(signature: &str, token: &str, body: &str) -> Vec<Option<Delivery>> {
        let named = format!("sha256={signature}");
        vec![
            delivery(&[("x-github-event", "push"), ("x-hub-signature-256", &named)], body),
            delivery(&[("x-gitlab-event", "Push Hook"), ("x-gitlab-token", token)], body),
            delivery(&[("x-gitea-event", "push"), ("x-gitea-signature", signature)], body),
            delivery(&[("x-forgejo-event", "push"), ("x-forgejo-signature", signature)], body),
            delivery(&[("x-event-key", "repo:push"), ("x-hub-signature", &named)], body),
        ]
    }

    #[test]
    fn who_knows_the_secret_is_believed() {
        let hosts =
            [CodeHost::GitHub, CodeHost::GitLab, CodeHost::Gitea, CodeHost::Forgejo, CodeHost::Bitbucket];
        for (delivery, host) in deliveries(SIGNATURE, SECRET, BODY).into_iter().zip(hosts) {
            let delivery = delivery.unwrap();
            assert_eq!(delivery.host(), host);
            assert!(delivery.is_signed_with(&secret(SECRET)), "{host:?}");
            assert!(host.is_push(delivery.event()), "{host:?}");
        }
        let shouted = SIGNATURE.to_uppercase();
        assert!(deliveries(&shouted, SECRET, BODY)[0].as_ref().unwrap().is_signed_with(&secret(SECRET)));
    }

    #[test]
    fn who_does_not_know_it_or_changes_the_body_is_not() {
        for delivery in deliveries(SIGNATURE, SECRET, BODY) {
            assert!(!delivery.unwrap().is_signed_with(&secret("Another secret of somebody")));
        }
        for delivery in deliveries(&SIGNATURE.replace('7', "8"), "It's a Secret to Nobody", BODY) {
            assert!(!delivery.unwrap().is_signed_with(&secret(SECRET)));
        }
        // A token, unlike a signature, does not cover the body.
        let changed = deliveries(SIGNATURE, "", "Hello, World?");
        for delivery in changed.into_iter().flatten() {
            assert!(!delivery.is_signed_with(&secret(SECRET)), "{:?}", delivery.host());
        }
    }

    #[test]
    fn signatures_of_another_form_are_none() {
        let sha1 = "sha1=0fb3d72a9e6ff1c5f4ee4b1ebea2ab1c9c2ebf7f";
        let named = format!("sha256={SIGNATURE}");
        for headers in [
            vec![],
            vec![("x-github-event", "push")],
            vec![("x-github-event", "push"), ("x-hub-signature-256", "")],
            vec![("x-github-event", "push"), ("x-hub-signature-256", SIGNATURE)],
            vec![("x-github-event", "push"), ("x-hub-signature-256", "sha256=")],
            vec![("x-github-event", "push"), ("x-hub-signature-256", &named[..70])],
            vec![("x-github-event", "push"), ("x-hub-signature-256", sha1)],
            vec![("x-github-event", "push"), ("x-hub-signature", &named)],
            vec![("x-event-key", "repo:push"), ("x-hub-signature", sha1)],
            vec![("x-event-key", "repo:push"), ("x-hub-signature", SIGNATURE)],
            vec![("x-gitea-event", "push"), ("x-gitea-signature", &named)],
            vec![("x-gitea-event", "push"), ("x-gitea-signature", "not hexadecimal")],
            vec![("x-gitlab-event", "Push Hook")],
        ] {
            assert_eq!(delivery(&headers, BODY), None, "{headers:?}");
        }
        let empty = delivery(&[("x-gitlab-event", "Push Hook"), ("x-gitlab-token", "")], BODY).unwrap();
        assert!(!empty.is_signed_with(&secret(SECRET)));
    }

    #[test]
    fn who_also_speaks_like_another_host_is_itself() {
        let named = format!("sha256={SIGNATURE}");
        let of_gitea = [
            ("x-github-event", "push"),
            ("x-github-delivery", "github's"),
            ("x-hub-signature", "sha1=0fb3d72a9e6ff1c5f4ee4b1ebea2ab1c9c2ebf7f"),
            ("x-hub-signature-256", &named),
            ("x-gitea-event", "push"),
            ("x-gitea-delivery", "gitea's"),
            ("x-gitea-signature", SIGNATURE),
        ];
        let gitea = delivery(&of_gitea, BODY).unwrap();
        assert_eq!(gitea.host(), CodeHost::Gitea);
        assert_eq!(gitea.mark().to_string(), "id:gitea's");
        let of_forgejo = [("x-forgejo-event", "push"), ("x-forgejo-signature", SIGNATURE)];
        let forgejo = delivery(&[&of_gitea[..], &of_forgejo[..]].concat(), BODY).unwrap();
        assert_eq!(forgejo.host(), CodeHost::Forgejo);
        let github = delivery(&of_gitea[..4], BODY).unwrap();
        assert_eq!((github.host(), github.is_signed_with(&secret(SECRET))), (CodeHost::GitHub, true));
    }

    #[test]
    fn a_form_is_read_and_some_sign_the_text_in_it() {
        let form = "payload=%7B%22a%22%3A+1%7D&other=2";
        let [of_form, of_text] = [form, "{\"a\": 1}"].map(|text| {
            let mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).unwrap().chain_update(text);
            HEXLOWER_PERMISSIVE.encode(&mac.finalize().into_bytes())
        });
        for delivery in deliveries(&of_form, SECRET, form).into_iter().flatten() {
            assert_eq!(&*delivery.payload(), b"{\"a\": 1}");
            assert!(delivery.is_signed_with(&secret(SECRET)), "{:?}", delivery.host());
        }
        for delivery in deliveries(&of_text, "", form).into_iter().flatten() {
            let signs_text = matches!(delivery.host(), CodeHost::Gitea | CodeHost::Forgejo);
            assert_eq!(delivery.is_signed_with(&secret(SECRET)), signs_text, "{:?}", delivery.host());
        }
    }

    #[test]
    fn a_delivery_is_recognised_by_its_id_or_by_what_was_signed() {
        let sent = |id: &str, body: &str| {
            // The second id is shared by the webhooks of one event.
            let headers =
                [("x-gitlab-token", SECRET), ("idempotency-key", id), ("x-gitlab-event-uuid", "shared")];
            delivery(&headers, body).unwrap().mark()
        };
        let older = [("x-gitlab-token", SECRET), ("x-gitlab-event-uuid", "shared")];
        assert_eq!(delivery(&older, BODY).unwrap().mark().to_string(), "id:shared");
        let (one, other) = ("{\"a\": 1}", "{\"a\": 2}");
        assert_eq!(sent("1", one), sent("1", other));
        assert_ne!(sent("1", one), sent("2", one));
        assert_eq!(sent("", one), sent("", "payload=%7b%22a%22%3a+1%7d"));
        assert_ne!(sent("", one), sent("", other));
        for no_id in ["", "a b", "\u{e4}", &"x".repeat(256)] {
            assert!(matches!(sent(no_id, BODY), DeliveryMark::Body(_)), "{no_id:?}");
        }
        assert_eq!(sent("1", one).to_string(), "id:1");
        assert_eq!(sent("", one).to_string().len(), "body:".len() + 64);
    }

    proptest! {
        #[test]
        fn who_signs_is_believed_and_who_changes_a_byte_is_not(
            body in prop::collection::vec(any::<u8>(), 1..200),
            random in any::<[u8; 32]>(),
            at in any::<prop::sample::Index>(),
            flipped in 1..=255_u8,
        ) {
            let key = WebhookSecret::new(random);
            let mac = Hmac::<Sha256>::new_from_slice(key.expose().as_bytes()).unwrap().chain_update(&body);
            let signature = HEXLOWER_PERMISSIVE.encode(&mac.finalize().into_bytes());
            for (event, name, prefix) in [
                ("x-github-event", "x-hub-signature-256", "sha256="),
                ("x-gitea-event", "x-gitea-signature", ""),
                ("x-forgejo-event", "x-forgejo-signature", ""),
                ("x-event-key", "x-hub-signature", "sha256="),
            ] {
                let header = |asked| match asked {
                    asked if asked == event => Some("push".to_owned()),
                    asked if asked == name => Some(format!("{prefix}{signature}")),
                    _ => None,
                };
                prop_assert!(Delivery::read(header, body.clone()).unwrap().is_signed_with(&key));
                let mut changed = body.clone();
                changed[at.index(body.len())] ^= flipped;
                prop_assert!(!Delivery::read(header, changed).unwrap().is_signed_with(&key));
            }
        }
    }
}
