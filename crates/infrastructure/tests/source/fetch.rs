//! The result of a fetch, by every protocol.

use std::{fs, os::unix::fs::PermissionsExt as _, os::unix::fs::symlink, sync::Arc};

use launchway_domain::deployments::{Owner, SourceFetcher as _};
use launchway_testkit::ids::id_of;

use crate::{
    arena::{Arena, Recorder, assert_same_files, fetch, git, owner, source},
    servers::{Daemon, Manner, Web},
};

#[tokio::test]
async fn a_checkout_is_what_a_clone_would_be() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    repository.write("deep/er/a b\u{e9}", "nested");
    repository.write("run.sh", "#!/bin/sh\n");
    fs::set_permissions(repository.path.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("index.html", repository.path.join("link")).unwrap();
    repository.write("windows.txt", "a\nb\n");
    repository.write("hidden", "not exported");
    repository.write("dated", "$Format:%H$ $Id$");
    repository.write("big.bin", "version https://git-lfs.github.com/spec/v1\n");
    let attributes =
        "windows.txt eol=crlf\nhidden export-ignore\ndated export-subst ident\nbig.bin filter=lfs\n";
    repository.write(".gitattributes", attributes);
    repository.commit("everything");
    let checkout = fetch(&arena.fetcher(), &repository.source(), "one").await.unwrap();
    let url = format!("file://{}", repository.path.display());
    git(&arena.path(""), &["clone", "--quiet", "--depth=1", &url, "clone"], "");
    assert_same_files(&checkout.root, &arena.path("clone"));
    assert!(checkout.root.join("hidden").exists() && !checkout.root.join(".git").exists());
    let mode = |name: &str| fs::metadata(checkout.root.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(""), mode("run.sh") & 0o100, mode("index.html") & 0o100), (0o700, 0o100, 0));
}

#[tokio::test]
async fn a_repository_is_fetched_by_every_protocol_that_is_allowed() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    let root = arena.path("repositories");
    let (daemon, web) = (Daemon::serve(&root), Web::serve(&root, Manner::Open));
    let file = format!("file://{}", repository.path.display());
    for (url, port) in [(file, 0), (daemon.url("shop/.git"), daemon.port), (web.url("shop/.git"), web.port)] {
        let fetcher = arena.fetcher_to(port);
        let source = source(&url);
        assert_eq!(fetcher.head(&source).await, Ok(repository.head()), "{url}");
        let checkout = fetch(&fetcher, &source, &url).await.unwrap();
        assert_same_files(&checkout.root, &repository.path);
    }
}

#[tokio::test]
async fn a_host_name_is_reached_at_the_checked_address() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    let root = arena.path("repositories");
    let (daemon, web) = (Daemon::serve(&root), Web::serve(&root, Manner::Open));
    for (url, port) in [
        (format!("git://localhost:{}/shop/.git", daemon.port), daemon.port),
        (format!("http://localhost:{}/shop/.git", web.port), web.port),
    ] {
        let head = arena.fetcher_to(port).head(&source(&url)).await;
        assert_eq!(head, Ok(repository.head()), "{url}");
    }
}

#[tokio::test]
async fn the_output_says_what_is_fetched_and_what_is_not() {
    let arena = Arena::new();
    let (repository, inner) = (arena.repository("shop"), arena.repository("inner"));
    let inside = format!("160000,{},lib/inner", inner.head());
    repository.git(&["update-index", "--add", "--cacheinfo", &inside]);
    repository.git(&["commit", "--quiet", "--message", "submodule"]);
    let (recorder, commit) = (Arc::new(Recorder::default()), repository.head());
    let fetched =
        arena.fetcher().fetch(&repository.source(), &commit, &owner("one"), recorder.clone()).await.unwrap();
    let path = repository.path.display();
    let expected =
        format!("Fetching main at {} from {path}\nSubmodule lib/inner is not fetched\n", commit.short());
    assert_eq!(recorder.text(), expected);
    assert_eq!(fs::read_dir(fetched.root.join("lib/inner")).unwrap().count(), 0);
}

#[tokio::test]
async fn attempts_have_fresh_folders_and_discarding_removes_all() {
    let arena = Arena::new();
    let (repository, fetcher) = (arena.repository("shop"), arena.fetcher());
    let (source, commit) = (repository.source(), repository.head());
    let other = fetch(&fetcher, &source, "other").await.unwrap();
    for attempt in [1, 2, 2] {
        let owner = Owner { attempt, ..owner("one") };
        let output = Arc::new(Recorder::default());
        let checkout = fetcher.fetch(&source, &commit, &owner, output).await.unwrap();
        assert!(!checkout.root.join("mine").exists());
        fs::write(checkout.root.join("mine"), "left by an attempt").unwrap();
    }
    assert_eq!(arena.work().len(), 3);
    fetcher.discard(id_of("one").into()).await.unwrap();
    fetcher.discard(id_of("one").into()).await.unwrap();
    assert_eq!(arena.work(), [other.root.file_name().unwrap().to_str().unwrap()]);
}

#[tokio::test]
async fn what_a_lost_process_left_is_cleared_at_the_start() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    let fetcher = arena.fetcher();
    fetch(&fetcher, &repository.source(), "one").await.unwrap();
    fs::create_dir_all(arena.path("work/.scratch-1-1/tree")).unwrap();
    fs::write(arena.path("work/.scratch-1-1/key"), "secret").unwrap();
    fetcher.remove_work_folders().await.unwrap();
    assert_eq!(arena.work(), Vec::<String>::new());
    fetch(&fetcher, &repository.source(), "one").await.unwrap();
}

#[tokio::test]
async fn a_commit_that_its_branch_has_left_behind_is_still_fetched() {
    let arena = Arena::new();
    let (repository, fetcher) = (arena.repository("shop"), arena.fetcher());
    let (wanted, source) = (repository.head(), repository.source());
    repository.write("index.html", "newer");
    repository.commit("second");
    let output = Arc::new(Recorder::default());
    let checkout = fetcher.fetch(&source, &wanted, &owner("one"), output).await.unwrap();
    assert_eq!(fs::read_to_string(checkout.root.join("index.html")).unwrap(), "<h1>Hello</h1>\n");
}

#[tokio::test]
async fn a_commit_that_the_server_no_longer_gives_is_explained() {
    let arena = Arena::new();
    let (repository, fetcher) = (arena.repository("shop"), arena.fetcher());
    let missing = "0123456789012345678901234567890123456789".parse().unwrap();
    let output = Arc::new(Recorder::default());
    let message =
        crate::arena::refusal(fetcher.fetch(&repository.source(), &missing, &owner("one"), output).await);
    assert!(
        message.contains("no longer gives commit 0123456") && message.contains("deploy again"),
        "{message}"
    );
    assert_eq!(arena.work(), Vec::<String>::new());
}

#[tokio::test]
async fn a_repository_with_longer_hashes_is_fetched() {
    let arena = Arena::new();
    let path = arena.path("repositories/new");
    fs::create_dir(&path).unwrap();
    let repository = crate::arena::Repository { path };
    repository.git(&["init", "--quiet", "--initial-branch=main", "--object-format=sha256"]);
    repository.write("index.html", "hello");
    repository.commit("first");
    let checkout = fetch(&arena.fetcher(), &repository.source(), "one").await.unwrap();
    assert_same_files(&checkout.root, &repository.path);
}
