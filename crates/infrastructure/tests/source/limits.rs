//! Repositories that are too large or too slow.

use std::time::{Duration, Instant};

use launchway_domain::deployments::SourceFetcher as _;
use launchway_infrastructure::git::GitFetcher;

use crate::{
    arena::{Arena, Repository, fetch, refusal, source},
    servers::{Daemon, Manner, Web},
};

/// Writes a file that git cannot compress.
fn large_file(repository: &Repository) {
    let random = std::process::Command::new("head").args(["-c", "3000000", "/dev/urandom"]).output().unwrap();
    repository.write("large", random.stdout);
    repository.commit("large");
}

#[tokio::test]
async fn more_than_git_may_receive_is_refused_and_leaves_nothing() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    large_file(&repository);
    let root = arena.path("repositories");
    let (daemon, web) = (Daemon::serve(&root), Web::serve(&root, Manner::Open));
    let local = repository.path.to_str().unwrap().to_owned();
    for (url, port) in [(local, 0), (daemon.url("shop/.git"), daemon.port), (web.url("shop/.git"), web.port)]
    {
        let mut options = arena.options_to(port);
        options.limits.pack_bytes = 1_000_000;
        let message = refusal(fetch(&GitFetcher::open(options).unwrap(), &source(&url), "one").await);
        assert_eq!(message, format!("{url} is too large to be fetched."));
        let largest = arena.kept_files().into_iter().map(|(_, bytes)| bytes.len()).max();
        assert!(largest.unwrap_or(0) < 100_000, "{url} leaves {largest:?} bytes");
        assert_eq!(arena.work(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn files_that_are_too_large_together_are_refused() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    // Next to nothing while it is packed.
    repository.write("zeros", vec![0; 3_000_000]);
    repository.commit("zeros");
    let mut options = arena.options();
    options.limits.tree_bytes = 2 * 1024 * 1024;
    let message = refusal(fetch(&GitFetcher::open(options).unwrap(), &repository.source(), "one").await);
    assert!(message.ends_with(" is too large: its files are more than 2 MiB."), "{message}");
    assert_eq!(arena.work(), Vec::<String>::new());
}

#[tokio::test]
async fn rejects_one_file_more_than_the_limit() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    let mut options = arena.options();
    options.limits.tree_entries = 4;
    let fetcher = GitFetcher::open(options).unwrap();
    repository.write("folder/a", "");
    repository.write("b", "");
    repository.commit("four entries");
    fetch(&fetcher, &repository.source(), "one").await.unwrap();
    repository.write("c", "");
    repository.commit("five entries");
    let message = refusal(fetch(&fetcher, &repository.source(), "two").await);
    assert!(message.ends_with(" is too large: it has more than 4 files and folders."), "{message}");
}

/// Creates a commit of a few kilobytes that contains `10^levels` files, or as many empty folders.
fn bomb(repository: &Repository, levels: u32, with_files: bool) {
    let mut entry = if with_files {
        ("100644 blob", repository.git_with_input(&["hash-object", "-w", "--stdin"], "boom"))
    } else {
        ("040000 tree", repository.git_with_input(&["mktree"], ""))
    };
    for _ in 0..levels {
        let lines: String = (0..10).map(|n| format!("{} {}\tf{n}\n", entry.0, entry.1)).collect();
        entry = ("040000 tree", repository.git_with_input(&["mktree"], &lines));
    }
    let commit = repository.git(&["commit-tree", &entry.1, "-m", "bomb"]);
    repository.git(&["update-ref", "refs/heads/main", &commit]);
}

#[tokio::test]
async fn rejects_a_small_commit_of_a_million_files_at_once() {
    for with_files in [true, false] {
        let arena = Arena::new();
        let repository = arena.repository("shop");
        bomb(&repository, 6, with_files);
        let fetcher = arena.fetcher();
        let started = Instant::now();
        let message = refusal(fetch(&fetcher, &repository.source(), "one").await);
        assert!(message.ends_with(" is too large: it has more than 100000 files and folders."), "{message}");
        assert!(started.elapsed() < Duration::from_secs(30));
        assert_eq!(arena.work(), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_web_server_that_stops_sending_is_given_up() {
    let arena = Arena::new();
    arena.repository("shop");
    for manner in [Manner::Silent, Manner::SilentAboutCommits] {
        let web = Web::serve(&arena.path("repositories"), manner);
        let mut options = arena.options_to(web.port);
        options.limits.stall = Duration::from_secs(1);
        let url = web.url("shop/.git");
        let message = refusal(fetch(&GitFetcher::open(options).unwrap(), &source(&url), "one").await);
        assert_eq!(message, format!("{url} took too long to answer."));
    }
}

#[tokio::test]
async fn a_slow_server_times_out_and_the_cache_stays_usable() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    let web = Web::serve(&arena.path("repositories"), Manner::Open);
    let mut options = arena.options_to(web.port);
    options.limits.answer = Duration::from_secs(1);
    let (fetcher, source) = (GitFetcher::open(options).unwrap(), source(&web.url("shop/.git")));
    web.close_gate();
    let message = refusal(fetcher.head(&source).await);
    assert_eq!(message, format!("{} took longer than 1 seconds.", web.url("shop/.git")));
    web.open_gate();
    drop(fetcher);

    let mut options = arena.options_to(web.port);
    options.limits.fetch = Duration::from_secs(1);
    let impatient = GitFetcher::open(options).unwrap();
    let commit = repository.head();
    web.close_gate();
    let output = std::sync::Arc::new(crate::arena::Recorder::default());
    let message = refusal(impatient.fetch(&source, &commit, &crate::arena::owner("one"), output).await);
    assert_eq!(message, format!("{} took longer than 1 seconds.", web.url("shop/.git")));
    web.open_gate();
    fetch(&arena.fetcher_to(web.port), &source, "two").await.unwrap();
}

#[tokio::test]
async fn nothing_is_fetched_when_the_disk_is_nearly_full() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    repository.commit("one");
    for (free_bytes, is_enough) in [(1, true), (u64::MAX, false)] {
        let mut options = arena.options();
        options.limits.free_bytes = free_bytes;
        let fetched = fetch(&GitFetcher::open(options).unwrap(), &repository.source(), "one").await;
        if is_enough {
            fetched.unwrap();
        } else {
            let message = refusal(fetched);
            assert!(
                message.starts_with("This machine has only ") && message.contains("free disk space"),
                "{message}"
            );
        }
    }
}
