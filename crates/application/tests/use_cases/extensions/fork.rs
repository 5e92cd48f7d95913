//! Forks.

use launchway_application::Error;
use launchway_domain::{
    auth::Forbidden,
    extensions::{Extension, Write, content_hash},
    store,
};

use super::{DATABASE, HELLO, an_admin, an_entry, an_operator, key, scope};
use crate::{
    actors::{a_member, lacks},
    ports::MockedPorts,
};

/// Forks `source`, and returns the result, which equals what was written.
async fn forked(source: Extension, yaml: Option<&str>) -> Extension {
    let mut ports = MockedPorts::default();
    let (sender, channel) = std::sync::mpsc::channel();
    let found = source.clone();
    ports.extensions.expect_by_key().return_once(move |_, _| Ok(Some(found)));
    ports.expect_commit_seen_by(move |writes| {
        let [store::Write::Extension(Write::Fork(fork)), store::Write::Audit(_)] = writes else {
            panic!("{writes:?}")
        };
        sender.send((**fork).clone()).unwrap();
    });
    let services = ports.services();
    let fork =
        services.extensions.fork(&an_operator(), &source.key, yaml.map(str::to_owned), None).await.unwrap();
    assert_eq!(fork, channel.recv().unwrap());
    fork
}

#[tokio::test]
async fn fork_without_definition_is_an_unvalidated_copy() {
    let source = an_entry(HELLO).await;
    let fork = forked(source.clone(), None).await;

    assert_eq!(fork.name.as_str(), "Hello note (Fork)");
    assert!(
        fork.key.as_str().starts_with("hello-note-fork-")
            && fork.key.as_str().len() == "hello-note-fork-".len() + 8
    );
    assert_eq!((fork.parent, fork.organization_id), (Some(source.key), Some(scope().id())));
    assert!(source.is_verified && !fork.is_verified);
    assert_eq!(
        (fork.author, fork.yaml, fork.content_hash),
        (source.author, source.yaml, source.content_hash)
    );
}

#[tokio::test]
async fn fork_with_definition_has_the_caller_as_author() {
    let source = an_entry(HELLO).await;
    let fork = forked(source, Some(DATABASE)).await;

    assert_eq!((fork.name.as_str(), fork.yaml.as_str()), ("Database", DATABASE));
    assert_eq!(fork.author, an_operator().user().username.as_str());
    assert_eq!(fork.content_hash, content_hash(DATABASE));
    assert!(fork.key.as_str().starts_with("hello-note-fork-"));
    let parsed: serde_json::Value = serde_json::from_str(&fork.parsed).unwrap();
    assert_eq!(parsed["execution"]["run"][0]["properties"]["image"], "postgres:16");
    assert_eq!((fork.validation.as_str(), fork.validation_errors.as_str()), ("valid", "[]"));
}

async fn refusal(source: Extension, yaml: Option<&str>) -> Error {
    let mut ports = MockedPorts::default();
    ports.extensions.expect_by_key().return_once(|_, _| Ok(Some(source)));
    let services = ports.services();
    services
        .extensions
        .fork(&an_admin(), &key("hello-note"), yaml.map(str::to_owned), None)
        .await
        .unwrap_err()
}

#[tokio::test]
async fn what_is_no_definition_is_refused_with_its_problems() {
    let yaml = HELLO.replace("category: Utility", "category: Fun");
    let Error::Invalid(message) = refusal(an_entry(HELLO).await, Some(&yaml)).await else { panic!() };
    assert!(
        message.starts_with(
            "yaml_content is not a valid definition: line 2: `metadata.category` must be one of"
        ),
        "{message}"
    );
}

#[tokio::test]
async fn only_who_administers_the_machine_brings_what_acts_on_it() {
    let refused = refusal(an_entry(DATABASE).await, Some(HELLO)).await;
    assert!(matches!(refused, Error::Forbidden(Forbidden::NotAnAdministrator)), "{refused:?}");
}

#[tokio::test]
async fn a_fork_of_a_fork_conflicts() {
    let fork = Extension { parent: Some(key("database")), ..an_entry(HELLO).await };
    assert!(matches!(refusal(fork, None).await, Error::Conflict(_)));
}

#[tokio::test]
async fn who_may_not_create_extensions_does_not_fork() {
    let services = MockedPorts::default().services();
    let refused = services.extensions.fork(&a_member(), &key("x"), None, None).await.unwrap_err();
    let Error::Forbidden(refused) = refused else { panic!("{refused:?}") };
    assert_eq!(refused, lacks("extension:create"));
}
