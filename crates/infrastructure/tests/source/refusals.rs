//! The errors that users get when a repository cannot be read.

use launchway_domain::deployments::{SourceFetcher as _, StepError};

use crate::{
    arena::{Arena, free_port, refusal, source},
    servers::{Daemon, Manner, Web},
};

#[tokio::test]
async fn a_missing_repository_is_reported_by_its_address() {
    let arena = Arena::new();
    let root = arena.path("repositories");
    let (daemon, web) = (Daemon::serve(&root), Web::serve(&root, Manner::Open));
    std::fs::create_dir(root.join("folder")).unwrap();
    let local = |name: &str| root.join(name).to_str().unwrap().to_owned();
    for (url, port) in [
        (local("missing"), 0),
        (local("folder"), 0),
        (daemon.url("missing"), daemon.port),
        (web.url("missing"), web.port),
    ] {
        let message = refusal(arena.fetcher_to(port).head(&source(&url)).await);
        assert_eq!(message, format!("There is no repository {url}."));
    }
}

#[tokio::test]
async fn an_unreachable_server_is_reported() {
    let arena = Arena::new();
    let port = free_port();
    for url in [
        format!("http://127.0.0.1:{port}/shop"),
        format!("https://127.0.0.1:{port}/shop"),
        format!("git://127.0.0.1:{port}/shop"),
        format!("ssh://git@127.0.0.1:{port}/shop"),
    ] {
        let message = refusal(arena.fetcher_to(port).head(&source(&url)).await);
        assert_eq!(message, format!("{url} cannot be reached."));
    }
}

#[tokio::test]
async fn a_missing_host_is_reported_by_its_name() {
    let arena = Arena::new();
    let message = refusal(arena.fetcher().head(&source("https://no-such-host.invalid/shop")).await);
    assert!(message.starts_with("There is no host `no-such-host.invalid`"), "{message}");
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_is_refused_in_a_sentence() {
    let arena = Arena::new();
    let web = Web::serve(&arena.path("repositories"), Manner::Open);
    let url = format!("https://127.0.0.1:{}/shop", web.port);
    let message = refusal(arena.fetcher_to(web.port).head(&source(&url)).await);
    assert!(message.contains(&url), "{message}");
}

#[tokio::test]
async fn folders_that_cannot_be_written_are_this_machines_fault() {
    let arena = Arena::new();
    let (repository, fetcher) = (arena.repository("shop"), arena.fetcher());
    std::fs::remove_dir_all(arena.path("work")).unwrap();
    std::fs::write(arena.path("work"), "a file in the way").unwrap();
    let reported = fetcher.head(&repository.source()).await;
    assert!(matches!(reported, Err(StepError::Retryable(_))), "{reported:?}");
}
