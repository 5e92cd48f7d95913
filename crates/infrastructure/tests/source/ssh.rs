//! Repositories over ssh.

use std::{fs, sync::Arc};

use launchway_domain::{
    deployments::{GitSource, SourceFetcher as _},
    organizations::{KeyMaker as _, KeyPair},
};
use launchway_infrastructure::{
    clock::SystemEntropy,
    git::{GitFetcher, GitOptions},
    ssh_keys::Ed25519Keys,
};

use crate::{
    arena::{Arena, assert_same_files, command_lines, fetch, refusal, source, until},
    servers::Sshd,
};

fn key() -> KeyPair {
    Ed25519Keys::new(Arc::new(SystemEntropy)).make("launchway of acme").unwrap()
}

fn with_key(source: GitSource, key: &KeyPair) -> GitSource {
    GitSource { key: Some(key.private_key.clone()), ..source }
}

fn knowing(arena: &Arena, sshd: &Sshd, known_hosts: &str) -> GitFetcher {
    let path = arena.path("known hosts");
    fs::write(&path, known_hosts).unwrap();
    let options = arena.options_to(sshd.port);
    GitFetcher::open(GitOptions { known_hosts: Some(path), ..options }).unwrap()
}

#[tokio::test]
async fn the_deploy_key_opens_a_repository_and_is_removed_afterwards() {
    let arena = Arena::new();
    let (repository, key) = (arena.repository("shop"), key());
    let sshd = Sshd::serve(&arena.path("sshd"), &key.public_key);
    let fetcher = knowing(&arena, &sshd, &sshd.known_host());
    let source = with_key(source(&sshd.url(&repository.path)), &key);
    let head = fetcher.head(&source).await;
    assert_eq!(head, Ok(repository.head()), "{}", sshd.log());
    let checkout = fetch(&fetcher, &source, "one").await.unwrap();
    assert_same_files(&checkout.root, &repository.path);
    let line = key.private_key.expose().lines().nth(2).unwrap().to_owned();
    for (path, bytes) in arena.kept_files() {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!text.contains(&line), "the key is in {}", path.display());
    }
}

#[tokio::test]
async fn another_key_or_none_is_not_let_in() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    let sshd = Sshd::serve(&arena.path("sshd"), &key().public_key);
    let fetcher = knowing(&arena, &sshd, &sshd.known_host());
    let plain = source(&sshd.url(&repository.path));
    let url = plain.url.as_str().to_owned();
    let message = refusal(fetcher.head(&with_key(plain.clone(), &key())).await);
    let expected = "rejects the organization's deploy key: add it to the repository.";
    assert_eq!(message, format!("{url} {expected}"));
    let message = refusal(fetcher.head(&plain).await);
    let expected = "requires an ssh key: create the organization's deploy key and add it there.";
    assert_eq!(message, format!("{url} {expected}"));
}

#[tokio::test]
async fn rejects_a_wrong_host_key_before_offering_the_key() {
    let arena = Arena::new();
    let (repository, key) = (arena.repository("shop"), key());
    let sshd = Sshd::serve(&arena.path("sshd"), &key.public_key);
    let source = with_key(source(&sshd.url(&repository.path)), &key);
    let another = Ed25519Keys::new(Arc::new(SystemEntropy)).make("").unwrap().public_key;
    let wrong = format!("[127.0.0.1]:{} {another}\n", sshd.port);
    let message = refusal(knowing(&arena, &sshd, &wrong).head(&source).await);
    assert!(message.contains("presents an ssh host key that differs from the known one"), "{message}");
    for unknown in ["", &sshd.known_host().replace("127.0.0.1", "127.0.0.2")] {
        let message = refusal(knowing(&arena, &sshd, unknown).head(&source).await);
        assert!(message.contains("LAUNCHWAY_GIT_KNOWN_HOSTS"), "{message}");
    }
    assert!(!sshd.log().contains("Accepted"), "{}", sshd.log());
}

#[tokio::test]
async fn a_host_is_known_by_its_name_and_port_whatever_its_address() {
    let arena = Arena::new();
    let (repository, key) = (arena.repository("shop"), key());
    let sshd = Sshd::serve(&arena.path("sshd"), &key.public_key);
    let by_name = sshd.known_host().replace("127.0.0.1", "localhost");
    let url = sshd.url(&repository.path).replace("127.0.0.1", "localhost");
    let source = with_key(source(&url), &key);
    assert_eq!(knowing(&arena, &sshd, &by_name).head(&source).await, Ok(repository.head()));
    let message = refusal(knowing(&arena, &sshd, &sshd.known_host()).head(&source).await);
    assert!(message.contains("LAUNCHWAY_GIT_KNOWN_HOSTS"), "{message}");
}

#[tokio::test]
async fn a_missing_repository_is_reported_over_ssh() {
    let arena = Arena::new();
    let key = key();
    let sshd = Sshd::serve(&arena.path("sshd"), &key.public_key);
    let fetcher = knowing(&arena, &sshd, &sshd.known_host());
    let source = with_key(source(&sshd.url(&arena.path("repositories/missing"))), &key);
    let message = refusal(fetcher.head(&source).await);
    assert_eq!(message, format!("There is no repository {}.", source.url.as_str()));
}

#[tokio::test]
async fn the_file_of_the_key_is_its_owners_alone_while_it_is_needed() {
    use std::os::unix::fs::PermissionsExt as _;
    let arena = Arena::new();
    let key = key();
    // A server that says nothing keeps ssh waiting.
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = silent.local_addr().unwrap().port();
    let fetcher = Arc::new(arena.fetcher_to(port));
    let source = with_key(source(&format!("ssh://git@127.0.0.1:{port}/shop")), &key);
    let asking = tokio::spawn({
        let fetcher = fetcher.clone();
        async move { fetcher.head(&source).await }
    });
    let marker = format!("-p\0{port}\0");
    until("ssh runs", || command_lines().iter().any(|(_, line)| line.contains(&marker))).await;
    let scratch = arena.path("work").join(&arena.work()[0]);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&scratch), mode(&scratch.join("key"))), (0o700, 0o600));
    let line = key.private_key.expose().lines().nth(2).unwrap();
    assert!(command_lines().iter().all(|(_, text)| !text.contains(line)));
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    assert!(!scratch.join("key").exists());
    until("ssh has ended", || command_lines().iter().all(|(_, line)| !line.contains(&marker))).await;
    until("the folder is gone", || arena.work().is_empty()).await;
}
