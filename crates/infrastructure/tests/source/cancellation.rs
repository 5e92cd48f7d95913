//! Cancelled fetches.

use std::{sync::Arc, time::Duration};

use launchway_domain::deployments::SourceFetcher as _;

use crate::{
    arena::{Arena, Recorder, command_lines, fetch, owner, source, until},
    servers::{Manner, Web},
};

#[tokio::test]
async fn a_fetch_that_is_dropped_leaves_no_process_and_no_checkout() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    let web = Web::serve(&arena.path("repositories"), Manner::Open);
    let (fetcher, source) = (Arc::new(arena.fetcher_to(web.port)), source(&web.url("shop/.git")));
    let commit = repository.head();
    web.close_gate();
    let fetching = tokio::spawn({
        let (fetcher, source) = (fetcher.clone(), source.clone());
        async move { fetcher.fetch(&source, &commit, &owner("one"), Arc::new(Recorder::default())).await }
    });
    until("git asks the server", || web.requests() > 0).await;
    let port = format!(":{}/", web.port);
    let running = || command_lines().into_iter().filter(|(_, line)| line.contains(&port)).count();
    assert!(running() > 0);
    fetching.abort();
    assert!(fetching.await.unwrap_err().is_cancelled());
    until("every process has ended", || running() == 0).await;
    until("the folder is gone", || arena.work().is_empty()).await;
    web.open_gate();
    let checkout = fetch(&fetcher, &source, "one").await.unwrap();
    assert!(checkout.root.join("index.html").exists());
}

#[tokio::test]
async fn a_fetch_that_is_dropped_at_any_moment_can_be_made_again() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    for number in 0..300 {
        repository.write(&format!("files/{number}"), format!("file {number}\n"));
    }
    let commit = repository.commit("many");
    let fetcher = arena.fetcher();
    let source = repository.source();
    // From before the first process to after the last.
    for milliseconds in (0..200).step_by(8) {
        let output = Arc::new(Recorder::default());
        let owner = owner("one");
        let fetching = fetcher.fetch(&source, &commit, &owner, output);
        if let Ok(fetched) = tokio::time::timeout(Duration::from_millis(milliseconds), fetching).await {
            assert_eq!(std::fs::read_dir(fetched.unwrap().root.join("files")).unwrap().count(), 300);
            fetcher.forget_repository(owner.organization, &source.url).await.unwrap();
        }
        // A folder that is there is there whole.
        for name in arena.work().into_iter().filter(|name| !name.starts_with('.')) {
            let files = arena.path("work").join(name).join("files");
            assert_eq!(std::fs::read_dir(files).unwrap().count(), 300);
        }
    }
    let checkout = fetch(&fetcher, &source, "two").await.unwrap();
    assert_eq!(std::fs::read_dir(checkout.root.join("files")).unwrap().count(), 300);
    until("only checkouts are left", || arena.work().iter().all(|name| !name.starts_with('.'))).await;
}
