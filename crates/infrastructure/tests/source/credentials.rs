//! Tokens and passwords: they grant access and are visible nowhere.

use std::sync::Arc;

use data_encoding::BASE64;
use launchway_domain::deployments::{SourceFetcher as _, StepError};

use crate::{
    arena::{Arena, Recorder, command_lines, fetch, owner, refusal, source, until},
    servers::{Manner, Web},
};

const TOKEN: &str = "tok3n-that-is-in-no-other-text";

fn pair() -> String {
    format!("ada:{TOKEN}")
}

/// The token in every encoding in which it might appear.
fn forms() -> [String; 2] {
    [TOKEN.to_owned(), BASE64.encode(pair().as_bytes())]
}

fn assert_hidden(text: &str, place: &str) {
    for form in forms() {
        assert!(!text.contains(&form), "the token is seen in {place}: {text}");
    }
}

#[tokio::test]
async fn the_right_token_opens_and_the_wrong_one_does_not() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    let web = Web::serve(&arena.path("repositories"), Manner::Locked(pair()));
    let fetcher = arena.fetcher_to(web.port);
    let url = web.url("shop/.git");
    let right = source(&web.url_for(&pair(), "shop/.git"));
    assert_eq!(fetcher.head(&right).await, Ok(repository.head()));
    fetch(&fetcher, &right, "one").await.unwrap();
    assert!(web.has_seen_credentials());
    let wrong = source(&web.url_for("ada:wr0ng", "shop/.git"));
    let message = refusal(fetcher.head(&wrong).await);
    assert_eq!(message, format!("{url} does not accept the credentials that were given for it."));
    let message = refusal(fetcher.head(&source(&url)).await);
    assert_eq!(
        message,
        format!("{url} requires credentials: it is private, or there is no such repository.")
    );
}

#[tokio::test]
async fn a_token_is_seen_in_no_command_line_no_file_and_no_output() {
    let arena = Arena::new();
    arena.repository("shop");
    let web = Web::serve(&arena.path("repositories"), Manner::Locked(pair()));
    let fetcher = Arc::new(arena.fetcher_to(web.port));
    let source = source(&web.url_for(&pair(), "shop/.git"));
    let commit = fetcher.head(&source).await.unwrap();
    let recorder = Arc::new(Recorder::default());
    let before = web.requests();
    web.close_gate();
    let fetching = tokio::spawn({
        let (fetcher, recorder) = (fetcher.clone(), recorder.clone());
        async move { fetcher.fetch(&source, &commit, &owner("one"), recorder).await }
    });
    until("git asks the server", || web.requests() > before).await;
    let port = web.port.to_string();
    let lines = command_lines();
    let of_git: Vec<_> = lines.iter().filter(|(_, line)| line.contains(&port)).collect();
    assert!(!of_git.is_empty(), "no command line of git was seen");
    for (_, line) in &lines {
        assert_hidden(line, "a command line");
    }
    for (path, bytes) in arena.kept_files() {
        assert_hidden(&String::from_utf8_lossy(&bytes), &path.display().to_string());
    }
    web.open_gate();
    fetching.await.unwrap().unwrap();
    assert_hidden(&recorder.text(), "the output");
    for (path, bytes) in arena.kept_files() {
        assert_hidden(&String::from_utf8_lossy(&bytes), &path.display().to_string());
    }
}

#[tokio::test]
async fn a_server_that_repeats_a_token_does_not_get_it_into_an_error() {
    let arena = Arena::new();
    arena.repository("shop");
    let web = Web::serve(&arena.path("repositories"), Manner::Parrot);
    let message = arena.fetcher_to(web.port).head(&source(&web.url_for(&pair(), "shop"))).await;
    assert!(web.has_seen_credentials());
    let Err(StepError::Rejected(message)) = message else { panic!("{message:?}") };
    assert!(message.contains("***"), "{message}");
    assert_hidden(&message, "an error");
}

#[tokio::test]
async fn a_token_is_not_taken_along_to_another_server() {
    let arena = Arena::new();
    arena.repository("shop");
    let root = arena.path("repositories");
    let thief = Web::serve(&root, Manner::Locked(pair()));
    let web = Web::serve(&root, Manner::Elsewhere(format!("http://127.0.0.1:{}", thief.port)));
    let message = refusal(arena.fetcher_to(web.port).head(&source(&web.url_for(&pair(), "shop"))).await);
    assert_hidden(&message, "an error");
    assert_eq!(thief.requests(), 0);
}
