//! Deploys what is on this machine: `deploy` in any folder, and `git push`.

use std::{
    fs,
    process::{Command, Stdio},
};

use launchway_testkit::repository::Repository;

use crate::{harness::Harness, person::Person};

fn page(harness: &Harness, name: &str) -> String {
    harness.server.visitor(&format!("{name}.ada-s-team.localhost")).get("/").text.trim_end().to_owned()
}

#[test]
fn any_folder_is_deployed_by_its_files() {
    let harness = Harness::new();
    let folder = harness.folder().join("my shop");
    fs::create_dir_all(folder.join("drafts")).unwrap();
    fs::write(folder.join("index.html"), "the first page\n").unwrap();
    fs::write(folder.join("drafts/secret.html"), "not yet\n").unwrap();
    fs::write(folder.join(".gitignore"), "drafts\n").unwrap();
    let ada = Person::ada(&harness.server).standing_in(&folder);
    let first = ada.runs(&["deploy", "--yes"]);
    first.succeeded();
    for part in
        ["Uploading 3 files", "Created application my shop (production)", "by an upload with the SHA-256"]
    {
        assert!(first.stderr.contains(part) || first.stdout.contains(part), "{part}: {first}");
    }
    assert_eq!(page(&harness, "my-shop"), "the first page");
    let drafts = harness.server.visitor("my-shop.ada-s-team.localhost").get("/drafts/secret.html");
    assert_eq!(drafts.status, 404);
    // Changes of the files and of the settings are deployed together.
    fs::write(folder.join("index.html"), "the second page\n").unwrap();
    let file = fs::read_to_string(folder.join("launchway.toml")).unwrap();
    fs::write(folder.join("launchway.toml"), format!("{file}labels = [\"new\"]\n")).unwrap();
    let second = ada.runs(&["deploy"]);
    second.succeeded();
    assert!(second.stderr.contains("labels: [] → [\"new\"]"), "{second}");
    assert_eq!(page(&harness, "my-shop"), "the second page");
}

#[test]
fn an_application_of_a_repository_can_be_uploaded_instead() {
    let harness = Harness::new();
    let (ada, repository) = harness.site("shop");
    repository.write("index.html", "not committed\n");
    let uploaded = ada.runs(&["deploy", "--upload"]);
    uploaded.succeeded();
    assert!(uploaded.stderr.contains("repository: "), "{uploaded}");
    assert_eq!(page(&harness, "shop"), "not committed");
    repository.write("index.html", "by its name\n");
    ada.runs(&["deploy", "shop", "--upload"]).succeeded();
    assert_eq!(page(&harness, "shop"), "by its name");
}

/// Runs git as the user, with the client's own settings.
fn git(ada: &Person, repository: &Repository, arguments: &[&str]) -> String {
    let mut command: Command = ada.program("git");
    command.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]).args(arguments);
    let output = command.current_dir(repository.path()).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

#[test]
fn a_remote_and_its_credentials_are_set_up_for_git() {
    let harness = Harness::new();
    let repository = Repository::empty(harness.folder().join("my shop"));
    repository.write("index.html", "a pushed page\n").commit();
    let ada = Person::ada(&harness.server).standing_in(repository.path());
    let added = ada.runs(&["git-remote"]);
    added.succeeded();
    let expected = format!("{}/git/ada's%20Team/production/my%20shop.git", harness.server.url());
    assert_eq!(repository.git(&["remote", "get-url", "launchway"]), expected, "{added}");
    let text = git(&ada, &repository, &["push", "launchway", "main"]);
    assert!(text.contains("remote: Live at http://my-shop.ada-s-team.localhost:"), "{text}");
    assert_eq!(page(&harness, "my-shop"), "a pushed page");
    // No token is in the settings of the repository.
    let config = fs::read_to_string(repository.path().join(".git/config")).unwrap();
    assert!(config.contains("git-remote") && !config.contains("lws_"), "{config}");
    // Once there is an application, its id is the address.
    let added = ada.runs(&["git-remote", "my shop", "--output", "json"]).json();
    let url = added["url"].as_str().unwrap();
    assert!(url.starts_with(&format!("{}/git/0", harness.server.url())), "{url}");
    repository.write("index.html", "another page\n").commit();
    git(&ada, &repository, &["push", "launchway", "main"]);
    assert_eq!(page(&harness, "my-shop"), "another page");
    let outside = ada.standing_in(harness.folder()).runs(&["git-remote"]);
    assert!(outside.failed(1).contains("git init"), "{outside}");
}
