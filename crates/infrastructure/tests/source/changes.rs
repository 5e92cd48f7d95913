//! The comparison of commits.

use std::fs;

use launchway_domain::{
    applications::{GitUrl, WatchPaths},
    deployments::{CommitHash, GitSource},
    ids::ApplicationId,
    sources::{ChangeDetector as _, Comparison},
};
use launchway_infrastructure::git::{GitFetcher, GitLimits};
use launchway_testkit::ids::id_of;

use crate::{
    arena::{Arena, Repository, fetch, refusal, source},
    servers::{Manner, Web},
};

fn watched(patterns: &[&str]) -> WatchPaths {
    patterns.iter().map(|pattern| (*pattern).to_owned()).collect::<Vec<_>>().try_into().unwrap()
}

fn comparison(source: &GitSource, old: &CommitHash, new: &CommitHash, patterns: &[&str]) -> Comparison {
    Comparison {
        source: source.clone(),
        organization: id_of("acme").into(),
        old: old.clone(),
        new: new.clone(),
        watched: watched(patterns),
    }
}

/// Compares the last two commits.
async fn touches(fetcher: &GitFetcher, repository: &Repository, patterns: &[&str]) -> bool {
    let old: CommitHash = repository.git(&["rev-parse", "HEAD~"]).parse().unwrap();
    let asked = comparison(&repository.source(), &old, &repository.head(), patterns);
    fetcher.touches(&asked).await.unwrap().unwrap()
}

#[tokio::test]
async fn patterns_have_the_syntax_of_gitignore() {
    let arena = Arena::new();
    let (repository, fetcher) = (arena.repository("mono"), arena.fetcher());
    repository.write("apps/web/src/main.rs", "1");
    repository.commit("one file");
    for (patterns, is_touched) in [
        (&["apps/web/"][..], true),
        (&["apps/web"], true),
        (&["/apps/web/**"], true),
        (&["**/src"], true),
        (&["*.rs"], true),
        (&["src/main.rs"], false),
        (&["apps/api/"], false),
        (&["apps/w?b/"], true),
        (&["apps/[a-v]*/"], false),
        (&["/src/"], false),
        (&["apps/web/src/main.rs/"], false),
        (&["apps/api/", "*.rs"], true),
        (&["/*", "!/apps/"], false),
        (&["*", "!*.rs"], true),
        (&["*.rs", "!main.rs"], false),
        (&["*.rs", "!main.rs", "apps/**/main.rs"], true),
        (&["/apps/*", "!/apps/web"], false),
        (&["apps/", "!apps/web/"], true),
        (&["\\!x", "\\#y"], false),
    ] {
        assert_eq!(touches(&fetcher, &repository, patterns).await, is_touched, "{patterns:?}");
    }
}

#[tokio::test]
async fn every_kind_of_change_counts() {
    let arena = Arena::new();
    let (repository, fetcher) = (arena.repository("mono"), arena.fetcher());
    repository.write("a/one", "1\n2\n3\n4\n");
    repository.write("a/two", "2");
    repository.commit("files");
    assert!(touches(&fetcher, &repository, &["a/"]).await, "added");
    repository.write("a/one", "1\n2\n3\n5\n");
    repository.commit("changed");
    assert!(touches(&fetcher, &repository, &["a/one"]).await);
    assert!(!touches(&fetcher, &repository, &["a/two"]).await);
    repository.git(&["mv", "a/one", "b"]);
    repository.commit("renamed");
    assert!(touches(&fetcher, &repository, &["a/one"]).await);
    assert!(touches(&fetcher, &repository, &["/b"]).await);
    fs::remove_file(repository.path.join("a/two")).unwrap();
    repository.commit("removed");
    assert!(touches(&fetcher, &repository, &["a/two"]).await);
    repository.write("ä \"b\"\n.txt", "odd");
    repository.commit("an odd name");
    assert!(touches(&fetcher, &repository, &["ä*"]).await);
    assert!(!touches(&fetcher, &repository, &["b*"]).await);
    repository.write(":(glob)x", "odd");
    repository.write(":!y", "odd");
    repository.commit("names that are special in pathspecs");
    assert!(touches(&fetcher, &repository, &["*x"]).await);
    assert!(!touches(&fetcher, &repository, &["z"]).await);
    // A repository cannot change what is watched.
    repository.write(".gitignore", "*\n");
    repository.commit("its own patterns");
    assert!(!touches(&fetcher, &repository, &["docs/"]).await);
    repository.commit("nothing");
    assert!(!touches(&fetcher, &repository, &["*"]).await);
    assert_eq!(arena.work(), Vec::<String>::new());
}

#[tokio::test]
async fn what_a_deployment_fetched_is_not_fetched_again() {
    let arena = Arena::new();
    let repository = arena.repository("mono");
    let web = Web::serve(&arena.path("repositories"), Manner::Open);
    let (fetcher, source) = (arena.fetcher_to(web.port), source(&web.url("mono/.git")));
    let old = repository.head();
    fetch(&fetcher, &source, "one").await.unwrap();
    repository.write("docs/index.md", "text");
    let new = repository.commit("docs");
    let asked = comparison(&source, &old, &new, &["apps/"]);
    assert_eq!(fetcher.touches(&asked).await, Ok(Some(false)));
    let sent = web.sent();
    assert_eq!(fetcher.touches(&comparison(&source, &old, &new, &["docs/"])).await, Ok(Some(true)));
    fetch(&fetcher, &source, "two").await.unwrap();
    // The head of the branch is listed, and no pack is sent.
    assert!(web.sent() - sent < 2_000, "{} bytes came", web.sent() - sent);
}

#[tokio::test]
async fn an_earlier_commit_is_fetched_or_unknown() {
    let arena = Arena::new();
    let repository = arena.repository("mono");
    let old = repository.head();
    repository.write("docs/index.md", "text");
    let new = repository.commit("docs");
    let fetcher = arena.fetcher();
    let asked = comparison(&repository.source(), &old, &new, &["index.html"]);
    assert_eq!(fetcher.touches(&asked).await, Ok(Some(false)), "it is in no cache");
    let unknown: CommitHash = "1".repeat(40).parse().unwrap();
    let forced = comparison(&repository.source(), &unknown, &new, &["index.html"]);
    assert_eq!(fetcher.touches(&forced).await, Ok(None));
    let absent = comparison(&repository.source(), &old, &unknown, &["index.html"]);
    assert!(refusal(fetcher.touches(&absent).await).contains("no longer gives commit 1111111"));
}

#[tokio::test]
async fn a_damaged_cache_is_replaced_for_a_comparison() {
    let arena = Arena::new();
    let (repository, fetcher) = (arena.repository("mono"), arena.fetcher());
    let old = repository.head();
    fetch(&fetcher, &repository.source(), "one").await.unwrap();
    for cache in fs::read_dir(arena.path("cache")).unwrap() {
        fs::remove_dir_all(cache.unwrap().path().join("objects/pack")).unwrap();
    }
    repository.write("docs/index.md", "text");
    let new = repository.commit("docs");
    let asked = comparison(&repository.source(), &old, &new, &["docs/"]);
    assert_eq!(fetcher.touches(&asked).await, Ok(Some(true)));
}

#[tokio::test]
async fn a_repository_on_this_server_is_compared_in_place() {
    let arena = Arena::new();
    let repository = arena.repository("mono");
    let old = repository.head();
    repository.write("docs/index.md", "text");
    let new = repository.commit("docs");
    let id: ApplicationId = id_of("shop").into();
    let path = arena.path("hosted").join(format!("{id}.git"));
    fs::create_dir_all(arena.path("hosted")).unwrap();
    repository.git(&["clone", "--quiet", "--bare", ".", path.to_str().unwrap()]);
    let hosted = GitSource { url: GitUrl::hosted(id), ..repository.source() };
    let fetcher = arena.fetcher();
    for (patterns, is_touched) in [(&["docs/"][..], true), (&["apps/"], false)] {
        let asked = comparison(&hosted, &old, &new, patterns);
        assert_eq!(fetcher.touches(&asked).await, Ok(Some(is_touched)));
    }
    let unknown = "1".repeat(40).parse().unwrap();
    assert_eq!(fetcher.touches(&comparison(&hosted, &unknown, &new, &["a"])).await, Ok(None));
}

#[tokio::test]
async fn a_nearly_full_disk_is_left_alone() {
    let arena = Arena::new();
    let repository = arena.repository("mono");
    let mut options = arena.options();
    options.limits = GitLimits { free_bytes: u64::MAX, ..options.limits };
    let fetcher = GitFetcher::open(options).unwrap();
    let head = repository.head();
    let asked = comparison(&repository.source(), &head, &head, &["a"]);
    assert!(refusal(fetcher.touches(&asked).await).contains("free disk space"));
}
