//! Branch names.

use std::{process::Command, sync::Arc};

use launchway_domain::{applications::Branch, deployments::SourceFetcher as _};
use proptest::prelude::*;

use crate::arena::{Arena, Recorder, fetch, owner, refusal};

#[tokio::test]
async fn a_branch_is_asked_for_by_its_whole_name() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    repository.git(&["checkout", "--quiet", "-b", "a/refs/heads/main"]);
    repository.commit("another");
    repository.git(&["tag", "main"]);
    let main = repository.git(&["rev-parse", "refs/heads/main"]);
    let head = arena.fetcher().head(&repository.source()).await.unwrap();
    assert_eq!(head.as_str(), main);
}

#[tokio::test]
async fn what_a_shell_would_run_is_only_a_name() {
    let arena = Arena::new();
    let (repository, fetcher) = (arena.repository("shop"), arena.fetcher());
    for (number, name) in ["a;b", "$(id)", "`id`", "a|b", "a&b", "'a'", "a#b", "ä"].into_iter().enumerate() {
        repository.git(&["checkout", "--quiet", "-b", name]);
        repository.write("name", name);
        let commit = repository.commit(name);
        let mut source = repository.source();
        source.branch = name.parse().unwrap();
        assert_eq!(fetcher.head(&source).await, Ok(commit));
        let checkout = fetch(&fetcher, &source, &format!("deployment {number}")).await.unwrap();
        assert_eq!(std::fs::read_to_string(checkout.root.join("name")).unwrap(), name);
    }
}

#[tokio::test]
async fn a_commit_of_a_request_is_fetched_but_never_its_head() {
    let arena = Arena::new();
    let (repository, fetcher) = (arena.repository("shop"), arena.fetcher());
    repository.git(&["checkout", "--quiet", "--detach"]);
    repository.write("name", "of a fork");
    let commit = repository.commit("a change of a fork");
    repository.git(&["update-ref", "refs/pull/7/head", commit.as_str()]);
    repository.git(&["checkout", "--quiet", "main"]);
    let mut source = repository.source();
    source.branch = "refs/pull/7/head".parse().unwrap();
    let checkout = fetcher.fetch(&source, &commit, &owner("first"), Arc::new(Recorder::default())).await;
    assert_eq!(std::fs::read_to_string(checkout.unwrap().root.join("name")).unwrap(), "of a fork");
    // Nothing resolves the reference, so only a commit that somebody named is deployed.
    let message = refusal(fetcher.head(&source).await);
    assert!(message.starts_with("There is no branch `refs/pull/7/head` in"), "{message}");
}

#[tokio::test]
async fn an_unknown_branch_is_reported_by_name() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    let mut source = repository.source();
    source.branch = "release".parse().unwrap();
    let message = refusal(arena.fetcher().head(&source).await);
    assert_eq!(message, format!("There is no branch `release` in {}.", repository.path.display()));
}

#[tokio::test]
async fn an_empty_repository_differs_from_one_without_the_branch() {
    let arena = Arena::new();
    let repository = arena.empty_repository("shop");
    let message = refusal(arena.fetcher().head(&repository.source()).await);
    assert_eq!(message, format!("The repository {} has no commits yet.", repository.path.display()));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn a_branch_that_is_accepted_is_one_that_git_accepts(
        name in prop_oneof!["[-a-c./@{}~^:?*\\[\\\\;$()# ]{1,8}", "\\PC{1,12}", "(a|b|lock|HEAD|-|@|[.]|/){1,5}"]
    ) {
        if let Ok(branch) = name.parse::<Branch>() {
            let checked = Command::new("git")
                .args(["check-ref-format", "--branch", branch.as_str()])
                .current_dir("/")
                .output()
                .unwrap();
            prop_assert!(checked.status.success(), "{:?}", branch);
        }
    }
}
