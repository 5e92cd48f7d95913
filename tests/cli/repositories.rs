//! `init`: the proposal for a repository, and the written file.

use std::fs;

use launchway_testkit::repository::Repository;

use crate::person::Person;

fn repository(person: &Person) -> Repository {
    Repository::empty(person.home().join("My Shop"))
}

fn written(repository: &Repository) -> toml::Table {
    fs::read_to_string(repository.path().join("launchway.toml")).unwrap().parse().unwrap()
}

#[test]
fn a_repository_with_a_dockerfile_is_proposed_as_it_is() {
    let ada = Person::new();
    let repository = repository(&ada);
    repository.write("Dockerfile", "FROM x\nEXPOSE 9000\n").commit();
    repository.git(&["remote", "add", "origin", "https://ada:geheim@example.com/shop.git"]);
    repository.git(&["checkout", "--quiet", "-b", "develop"]);
    let ada = ada.standing_in(repository.path());
    let output = ada.runs(&["init", "--yes"]);
    output.succeeded();
    assert!(output.stderr.contains("the password in the URL of the remote is omitted"), "{output}");

    let file = written(&repository);
    assert_eq!(file["name"].as_str(), Some("My Shop"));
    assert_eq!(file["repository"].as_str(), Some("https://example.com/shop.git"));
    assert_eq!(file["branch"].as_str(), Some("develop"));
    assert_eq!(file["build_pack"].as_str(), Some("dockerfile"));
    assert_eq!(file["port"].as_integer(), Some(9000));
    assert_eq!(file["environment"].as_str(), Some("production"));
    let text = fs::read_to_string(repository.path().join("launchway.toml")).unwrap();
    assert!(!text.contains("geheim"));

    let again = ada.runs(&["init", "--yes"]);
    assert!(again.failed(5).contains("--force"), "{again}");
    repository.write("Dockerfile", "FROM x\nEXPOSE 9001\n");
    let forced = ada.runs(&["init", "--yes", "--force", "--output", "json"]).json();
    assert_eq!(
        (forced["port"].as_u64(), written(&repository)["port"].as_integer()),
        (Some(9001), Some(9001))
    );
}

#[test]
fn without_a_remote_no_repository_is_proposed() {
    let ada = Person::new();
    let repository = repository(&ada);
    repository.write("site/index.html", "hello").commit();
    let ada = ada.standing_in(&repository.path().join("site"));
    ada.runs(&["init", "--yes"]).succeeded();
    let file = written(&repository);
    assert!(!file.contains_key("repository") && !file.contains_key("branch"), "{file:?}");
    assert_eq!((file["build_pack"].as_str(), file["base_path"].as_str()), (Some("static"), Some("/site")));
}

#[test]
fn what_cannot_be_proposed_is_said() {
    let ada = Person::new();
    let outside = ada.runs(&["init", "--yes"]);
    assert!(outside.failed(1).contains("hint: add a Dockerfile"), "{outside}");
    let repository = repository(&ada);
    let ada = ada.standing_in(repository.path());
    let empty = ada.runs(&["init", "--yes"]);
    assert!(empty.failed(1).contains("hint: add a Dockerfile"), "{empty}");
    assert!(!repository.path().join("launchway.toml").exists());
}
