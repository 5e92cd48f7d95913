//! Malicious repositories and names.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use launchway_domain::{applications::GitUrl, deployments::SourceFetcher as _};

use crate::arena::{Arena, Repository, fetch, refusal};

#[tokio::test]
async fn an_address_that_is_an_option_or_a_program_is_no_address() {
    for raw in [
        "--upload-pack=touch pwned; git-upload-pack",
        "-x",
        "ext::touch pwned",
        "fd::17",
        "ssh://-oProxyCommand=x/y",
    ] {
        assert!(GitUrl::parse(raw).is_err(), "{raw}");
    }
    for branch in ["--upload-pack=touch pwned", "-x"] {
        assert!(branch.parse::<launchway_domain::applications::Branch>().is_err(), "{branch}");
    }
}

#[tokio::test]
async fn a_path_that_a_shell_would_run_is_only_a_path() {
    let arena = Arena::new();
    let pwned = arena.path("pwned");
    for name in ["$(touch pwned)", "a;touch pwned", "`touch pwned`", "a&touch pwned", "a'b\"c"] {
        let repository = arena.repository(name);
        let head = arena.fetcher().head(&repository.source()).await;
        assert_eq!(head, Ok(repository.head()), "{name}");
        fetch(&arena.fetcher(), &repository.source(), name).await.unwrap();
    }
    assert!(!pwned.exists() && arena.kept_files().iter().all(|(path, _)| !path.ends_with("pwned")));
}

/// Writes a program that leaves a mark when it runs.
fn trap(arena: &Arena, path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let script = format!("#!/bin/sh\ntouch '{}'\ncat\n", arena.path("mark").display());
    fs::write(path, script).unwrap();
    assert!(Command::new("chmod").arg("755").arg(path).status().unwrap().success());
}

#[tokio::test]
async fn nothing_that_a_repository_includes_runs() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    let git_dir = repository.path.join(".git");
    for hook in ["post-checkout", "post-merge", "reference-transaction", "pre-auto-gc", "post-index-change"] {
        trap(&arena, &git_dir.join("hooks").join(hook));
        trap(&arena, &repository.path.join("hooks").join(hook));
    }
    trap(&arena, &repository.path.join("filter"));
    let filter = repository.path.join("filter");
    let filter = filter.to_str().unwrap();
    repository.write(".gitattributes", "* filter=evil diff=evil merge=evil\n");
    repository.write(".gitconfig", format!("[filter \"evil\"]\n\tsmudge = {filter}\n"));
    repository.write(".lfsconfig", "[lfs]\n\turl = https://evil.example.com\n");
    repository.git(&["-c", "core.hooksPath=/dev/null", "add", "--all"]);
    repository.git(&["-c", "core.hooksPath=/dev/null", "commit", "--quiet", "--message", "evil"]);
    for (name, value) in [
        ("core.fsmonitor", filter),
        ("core.sshCommand", filter),
        ("filter.evil.smudge", filter),
        ("uploadpack.packObjectsHook", filter),
        ("core.hooksPath", "hooks"),
    ] {
        repository.git(&["config", name, value]);
    }
    assert!(!arena.path("mark").exists(), "the arrangement itself ran something");
    let checkout = fetch(&arena.fetcher(), &repository.source(), "one").await.unwrap();
    assert!(checkout.root.join("filter").exists());
    assert!(!arena.path("mark").exists());
}

#[tokio::test]
async fn a_submodule_is_an_empty_folder_wherever_it_leads() {
    let arena = Arena::new();
    let (repository, secret) = (arena.repository("shop"), arena.repository("../secret"));
    secret.write("password", "hunter2");
    secret.commit("secret");
    let modules =
        format!("[submodule \"inner\"]\n\tpath = inner\n\turl = file://{}\n", secret.path.display());
    repository.write(".gitmodules", modules);
    repository.git(&["add", ".gitmodules"]);
    let entry = format!("160000,{},inner", secret.head());
    repository.git(&["update-index", "--add", "--cacheinfo", &entry]);
    repository.git(&["commit", "--quiet", "--message", "submodule"]);
    let checkout = fetch(&arena.fetcher(), &repository.source(), "one").await.unwrap();
    assert_eq!(fs::read_dir(checkout.root.join("inner")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_link_stays_a_link_and_nothing_is_written_through_it() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    let outside = arena.path("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, repository.path.join("out")).unwrap();
    symlink("/etc/passwd", repository.path.join("leak")).unwrap();
    repository.commit("links");
    let checkout = fetch(&arena.fetcher(), &repository.source(), "one").await.unwrap();
    assert_eq!(fs::read_link(checkout.root.join("leak")).unwrap(), Path::new("/etc/passwd"));
    assert!(checkout.root.join("leak").is_symlink() && checkout.root.join("out").is_symlink());
    // A tree with a link and a folder of one name would be written through the link.
    let blob = repository.git_with_input(&["hash-object", "-w", "--stdin"], "evil");
    let link = repository.git_with_input(&["hash-object", "-w", "--stdin"], outside.to_str().unwrap());
    let inner = repository.git_with_input(&["mktree"], &format!("100644 blob {blob}\tfile\n"));
    let tree = format!("120000 blob {link}\tout\n040000 tree {inner}\tout\n");
    commit_tree(&repository, &tree);
    let message = refusal(fetch(&arena.fetcher(), &repository.source(), "two").await);
    assert!(message.contains("damaged or unsafe"), "{message}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[tokio::test]
async fn a_tree_that_writes_to_the_folder_of_git_or_above_is_refused() {
    for name in [".git", "..", ".GIT", "git~1", ".g\u{200c}it"] {
        let arena = Arena::new();
        let repository = arena.repository("shop");
        let blob = repository.git_with_input(&["hash-object", "-w", "--stdin"], "evil");
        let inner = repository.git_with_input(&["mktree"], &format!("100755 blob {blob}\tpost-checkout\n"));
        commit_tree(&repository, &format!("040000 tree {inner}\t{name}\n"));
        let message = refusal(fetch(&arena.fetcher(), &repository.source(), "one").await);
        assert!(message.contains("damaged or unsafe"), "{name}: {message}");
        assert_eq!(arena.work(), Vec::<String>::new());
    }
}

fn commit_tree(repository: &Repository, entries: &str) {
    let tree = repository.git_with_input(&["mktree"], entries);
    let commit = repository.git(&["commit-tree", &tree, "-m", "odd"]);
    repository.git(&["update-ref", "refs/heads/main", &commit]);
}

#[tokio::test]
async fn a_file_whose_name_is_too_long_is_refused_in_a_sentence() {
    let arena = Arena::new();
    let repository = arena.repository("shop");
    let blob = repository.git_with_input(&["hash-object", "-w", "--stdin"], "x");
    commit_tree(&repository, &format!("100644 blob {blob}\t{}\n", "n".repeat(300)));
    let message = refusal(fetch(&arena.fetcher(), &repository.source(), "one").await);
    assert!(message.contains("names are too long"), "{message}");
}
