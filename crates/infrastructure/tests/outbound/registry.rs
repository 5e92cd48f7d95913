//! The registry of images: real ones, and what `docker-registry` of Debian has not: tokens, and lists in pages.

use std::sync::Arc;

use async_trait::async_trait;
use data_encoding::BASE64;
use launchway_domain::{
    deployments::{ImageDeletion, ImageName, ImageRegistry as _, StepError},
    ids::{ApplicationId, DeploymentId},
};
use launchway_infrastructure::{
    outbound::Trust,
    registry::{HttpRegistry, InsecureRegistries},
};
use launchway_testkit::{
    client::Client,
    external::{Authority, Receiver},
    registry::{RegistryOptions, TestRegistry, push, tags},
};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use uuid::Uuid;

/// The user `ada` with the password `open sesame`.
const USERS: &str = "ada:$2y$05$abcdefghijklmnopqrstuupx2xBUC4954936wVIjyyPHmUBFu0wCW\n";
const DELETES: RegistryOptions = RegistryOptions { deletes: true, users: None, tls: None };

/// Decides for every registry.
struct Insecure(bool);

#[async_trait]
impl InsecureRegistries for Insecure {
    async fn is_insecure(&self, _host: &str) -> Option<bool> {
        Some(self.0)
    }
}

fn registry_at(address: &str) -> HttpRegistry {
    registry_with(address, true, None, Trust::only("").unwrap())
}

fn registry_with(address: &str, is_insecure: bool, login: Option<&TempDir>, trust: Trust) -> HttpRegistry {
    let config = login.map(|folder| folder.path().to_owned());
    HttpRegistry::new(address.parse().unwrap(), Arc::new(Insecure(is_insecure)), config, trust)
}

fn application() -> ApplicationId {
    Uuid::max().into()
}

fn image(number: u128) -> ImageName {
    ImageName::of(application(), DeploymentId::from(Uuid::from_u128(number)))
}

fn repository() -> String {
    format!("launchway/{}", application())
}

fn tag(number: u128) -> String {
    Uuid::from_u128(number).to_string()
}

/// Pushes image `number`, whose digest depends on `content`.
fn push_image(client: &Client, number: u128, content: &str) {
    let digest = |text: &str| {
        let hash = Sha256::digest(text.as_bytes());
        format!("sha256:{}", data_encoding::HEXLOWER.encode(&hash))
    };
    push(client, (&repository(), &tag(number)), &format!("{{\"content\": \"{content}\"}}"), digest);
}

/// Returns docker's configuration after a login of `ada`.
fn login(address: &str, password: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let auth = BASE64.encode(format!("ada:{password}").as_bytes());
    let text = format!("{{\"auths\": {{\"{address}\": {{\"auth\": \"{auth}\"}}}}}}");
    std::fs::write(folder.path().join("config.json"), text).unwrap();
    folder
}

fn rejection<T: std::fmt::Debug>(result: Result<T, StepError>) -> String {
    match result {
        Err(StepError::Rejected(reason)) => reason,
        other => panic!("{other:?} is no rejection"),
    }
}

#[tokio::test]
async fn images_are_listed_and_deleted_one_by_one() {
    let server = TestRegistry::start(&DELETES);
    let registry = registry_at(server.address());
    assert_eq!(registry.images(application()).await.unwrap(), []);
    for number in 1..=3 {
        push_image(&server.client(), number, &number.to_string());
    }
    let listed = async || {
        let mut images = registry.images(application()).await.unwrap();
        images.sort();
        images
    };
    assert_eq!(listed().await, [image(1), image(2), image(3)]);
    let kept = [image(1), image(3)];
    assert_eq!(registry.delete(&image(2), &kept).await.unwrap(), ImageDeletion::Deleted);
    assert_eq!(listed().await, kept);
    assert_eq!(registry.delete(&image(2), &kept).await.unwrap(), ImageDeletion::Deleted, "it is gone");
    for image in kept {
        registry.delete(&image, &[]).await.unwrap();
    }
    assert_eq!(listed().await, []);
    registry.require_deletion().await.unwrap();
}

#[tokio::test]
async fn an_image_that_shares_its_digest_stays() {
    let server = TestRegistry::start(&DELETES);
    let registry = registry_at(server.address());
    push_image(&server.client(), 1, "same");
    push_image(&server.client(), 2, "same");
    assert_eq!(registry.delete(&image(1), &[image(2)]).await.unwrap(), ImageDeletion::Shared);
    assert_eq!(server.tags(&repository()), [tag(1), tag(2)]);
    assert_eq!(registry.delete(&image(1), &[]).await.unwrap(), ImageDeletion::Deleted);
    assert_eq!(server.tags(&repository()), [""; 0], "a digest goes with all of its tags");
}

#[tokio::test]
async fn a_path_below_the_registry_is_part_of_the_names() {
    let server = TestRegistry::start(&DELETES);
    push_image(&server.client(), 1, "above");
    let registry = registry_at(&format!("{}/team/apps", server.address()));
    assert_eq!(registry.images(application()).await.unwrap(), []);
    assert_eq!(registry.delete(&image(1), &[]).await.unwrap(), ImageDeletion::Deleted);
    assert_eq!(server.tags(&repository()), [tag(1)]);
}

#[tokio::test]
async fn a_registry_that_deletes_nothing_says_so() {
    let server = TestRegistry::start(&RegistryOptions::default());
    let registry = registry_at(server.address());
    push_image(&server.client(), 1, "kept");
    for result in [registry.delete(&image(1), &[]).await.map(drop), registry.require_deletion().await] {
        let reason = rejection(result);
        assert!(reason.contains("REGISTRY_STORAGE_DELETE_ENABLED=true"), "{reason}");
    }
    assert_eq!(server.tags(&repository()), [tag(1)]);
}

#[tokio::test]
async fn a_registry_with_a_login_needs_that_of_docker() {
    let server = TestRegistry::start(&RegistryOptions { users: Some(USERS), ..DELETES });
    let basic = format!("Basic {}", BASE64.encode(b"ada:open sesame"));
    let client = server.client().with_header("authorization", &basic);
    push_image(&client, 1, "1");
    let trust = || Trust::only("").unwrap();
    let without = registry_with(server.address(), true, None, trust());
    let reason = rejection(without.images(application()).await);
    assert!(reason.contains(&format!("docker login {}", server.address())), "{reason}");
    let folder = login(server.address(), "wrong");
    let wrong = registry_with(server.address(), true, Some(&folder), trust());
    let reason = rejection(wrong.images(application()).await);
    assert!(reason.contains("does not let this installation"), "{reason}");
    let folder = login(server.address(), "open sesame");
    let registry = registry_with(server.address(), true, Some(&folder), trust());
    assert_eq!(registry.images(application()).await.unwrap(), [image(1)]);
    assert_eq!(registry.delete(&image(1), &[]).await.unwrap(), ImageDeletion::Deleted);
    assert_eq!(tags(&client, &repository()), [""; 0]);
}

#[tokio::test]
async fn a_registry_with_tls_has_to_prove_its_name() {
    let authority = Authority::new();
    let tls = Some(authority.vouch_for(&["127.0.0.1"]));
    let server = TestRegistry::start(&RegistryOptions { tls, ..DELETES });
    let trusting = |pem: &str| registry_with(server.address(), false, None, Trust::only(pem).unwrap());
    trusting(authority.pem()).require_deletion().await.unwrap();
    let error = trusting(Authority::new().pem()).require_deletion().await.unwrap_err();
    assert!(matches!(error, StepError::Retryable(_)), "{error:?}");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_registry_that_is_down_is_tried_again() {
    let address = TestRegistry::start(&DELETES).address().to_owned();
    let registry = registry_at(&address);
    for error in [
        registry.images(application()).await.unwrap_err(),
        registry.delete(&image(1), &[]).await.unwrap_err(),
    ] {
        assert!(matches!(error, StepError::Retryable(_)), "{error:?}");
    }
}

/// Returns a response with a body.
fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

#[tokio::test]
async fn a_list_in_pages_is_read_to_its_end() {
    let server = Receiver::talking(|conversation| {
        let Some(request) = conversation.read_request() else { return };
        let target = request.line.split(' ').nth(1).unwrap_or_default().to_owned();
        let (number, link) = match target.rsplit_once("last=") {
            None => (1, format!("Link: <{target}&last=1>; rel=\"next\"\r\n")),
            Some((_, "1")) => (2, format!("Link: <http://elsewhere.example{target}0>; rel=\"next\"\r\n")),
            Some(_) => (3, String::new()),
        };
        let body = format!("{{\"tags\": [\"{}\", \"latest\"]}}", tag(number));
        conversation.say(answer("200 OK", &link, &body));
    });
    let registry = registry_at(&format!("127.0.0.1:{}", server.port));
    assert_eq!(registry.images(application()).await.unwrap(), [image(1), image(2), image(3)]);
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_list_without_an_end_is_refused() {
    let server = Receiver::talking(|conversation| {
        let Some(request) = conversation.read_request() else { return };
        let target = request.line.split(' ').nth(1).unwrap_or_default().to_owned();
        let body = format!("{{\"tags\": [\"{}\"]}}", tag(1));
        conversation.say(answer("200 OK", &format!("Link: <{target}>; rel=\"next\"\r\n"), &body));
    });
    let registry = registry_at(&format!("127.0.0.1:{}", server.port));
    let reason = rejection(registry.images(application()).await);
    assert!(reason.contains("more tags"), "{reason}");
}

#[tokio::test]
async fn a_response_that_is_too_long_is_not_read() {
    let server = Receiver::talking(|conversation| {
        let Some(_) = conversation.read_request() else { return };
        conversation.say(answer("200 OK", "", &" ".repeat(5 * 1024 * 1024)));
    });
    let registry = registry_at(&format!("127.0.0.1:{}", server.port));
    let error = registry.images(application()).await.unwrap_err();
    assert!(matches!(error, StepError::Retryable(_)), "{error:?}");
}

#[tokio::test]
async fn a_registry_with_tokens_gets_one_for_the_login() {
    let server = Receiver::talking(|conversation| {
        let Some(request) = conversation.read_request() else { return };
        let host = request.header("host").unwrap_or_default().to_owned();
        let basic = format!("Basic {}", BASE64.encode(b"ada:open sesame"));
        let is_for_tokens = request.line.starts_with("GET /token?service=r&scope=repository%3A");
        let said = match request.header("authorization") {
            Some(given) if is_for_tokens && given == basic => answer("200 OK", "", "{\"token\": \"abc\"}"),
            _ if is_for_tokens => answer("401 Unauthorized", "", ""),
            Some("Bearer abc") => answer("200 OK", "", &format!("{{\"tags\": [\"{}\"]}}", tag(1))),
            _ => {
                let scope = format!("repository:{}:pull", repository());
                let challenge = format!(
                    "WWW-Authenticate: Bearer realm=\"http://{host}/token\",service=\"r\",scope=\"{scope}\"\r\n"
                );
                answer("401 Unauthorized", &challenge, "")
            }
        };
        conversation.say(said);
    });
    let address = format!("127.0.0.1:{}", server.port);
    let folder = login(&address, "open sesame");
    let registry = registry_with(&address, true, Some(&folder), Trust::only("").unwrap());
    for requests in [3, 4] {
        assert_eq!(registry.images(application()).await.unwrap(), [image(1)]);
        assert_eq!(server.requests().len(), requests, "the token is used again");
    }
    let folder = login(&address, "wrong");
    let registry = registry_with(&address, true, Some(&folder), Trust::only("").unwrap());
    let reason = rejection(registry.images(application()).await);
    assert!(reason.contains("docker login"), "{reason}");
}
