//! The operator's policy.

use std::os::unix::fs::symlink;

use launchway_domain::deployments::SourceFetcher as _;

use crate::{
    arena::{Arena, refusal, source},
    servers::{Daemon, Manner, Web},
};

#[tokio::test]
async fn this_machine_is_not_connected_to_without_an_allowance() {
    let arena = Arena::new();
    arena.repository("shop");
    let root = arena.path("repositories");
    let (daemon, web) = (Daemon::serve(&root), Web::serve(&root, Manner::Open));
    for url in [
        web.url("shop/.git"),
        daemon.url("shop/.git"),
        format!("http://localhost:{}/shop/.git", web.port),
        format!("https://localhost:{}/shop/.git", web.port),
        format!("https://127.0.0.1:{}/shop/.git", web.port),
        format!("ssh://git@localhost:{}/shop", web.port),
        format!("https://[::ffff:127.0.0.1]:{}/shop/.git", web.port),
    ] {
        let message = refusal(arena.fetcher().head(&source(&url)).await);
        assert!(
            message.contains("is not allowed here") && message.contains("LAUNCHWAY_GIT_ALLOW"),
            "{message}"
        );
    }
    assert_eq!(web.requests(), 0);
}

#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_not_connected_to() {
    let arena = Arena::new();
    arena.repository("shop");
    let web = Web::serve(&arena.path("repositories"), Manner::Open);
    // What is written does not look like this machine, and what it resolves to is.
    for host in ["127.1", "0x7f000001", "2130706433", "017700000001", "0"] {
        let url = format!("ssh://git@{host}:{}/shop", web.port);
        let message = refusal(arena.fetcher().head(&source(&url)).await);
        assert!(message.contains("is not allowed here"), "{message}");
    }
    assert_eq!(web.requests(), 0);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let arena = Arena::new();
    arena.repository("shop");
    let root = arena.path("repositories");
    let target = Web::serve(&root, Manner::Open);
    let web = Web::serve(&root, Manner::Elsewhere(format!("http://127.0.0.1:{}", target.port)));
    let url = web.url("shop/.git");
    let message = refusal(arena.fetcher_to(web.port).head(&source(&url)).await);
    assert_eq!(message, format!("{url} has moved: give its new address."));
    assert_eq!((web.requests(), target.requests()), (1, 0));
}

#[tokio::test]
async fn a_local_repository_is_used_only_under_the_root() {
    let arena = Arena::new();
    let inside = arena.repository("shop");
    let secret = arena.repository("../secret");
    symlink(&secret.path, arena.path("repositories/link")).unwrap();
    let link = arena.path("repositories/link");
    let message = refusal(arena.fetcher().head(&source(link.to_str().unwrap())).await);
    assert!(message.ends_with("is not allowed here: it resolves to another path."), "{message}");
    let outside = arena.path("secret");
    let message = refusal(arena.fetcher().head(&source(outside.to_str().unwrap())).await);
    assert!(message.contains("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES"), "{message}");
    assert_eq!(arena.fetcher().head(&inside.source()).await, Ok(inside.head()));
}

#[tokio::test]
async fn a_root_that_is_a_link_itself_is_a_root() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    symlink(arena.path("repositories"), arena.path("root")).unwrap();
    let mut options = arena.options();
    options.policy.local_root = Some(arena.path("root"));
    let fetcher = launchway_infrastructure::git::GitFetcher::open(options).unwrap();
    let path = arena.path("root/shop");
    assert_eq!(fetcher.head(&source(path.to_str().unwrap())).await, Ok(repository.head()));
}

#[tokio::test]
async fn a_local_repository_of_another_user_is_used() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    // Git refuses repositories of other users by default. Only root can change the owner of a folder;
    // otherwise the repository keeps its owner.
    let nobody = 65534;
    if std::os::unix::fs::chown(repository.path.join(".git"), Some(nobody), None).is_ok() {
        std::os::unix::fs::chown(&repository.path, Some(nobody), None).unwrap();
    }
    let head = arena.fetcher().head(&repository.source()).await.unwrap();
    assert_eq!(head.as_str().len(), 40);
}
