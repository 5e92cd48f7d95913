//! Pushes that are too large, damaged or unsafe.

use std::{fs, io::Write as _, path::Path, process::Stdio};

use data_encoding::HEXLOWER;

use super::harness::{Developer, SHOP, command, git, on_both};

on_both!(unsafe_trees_are_refused, only_branches_and_tags_are_accepted);

/// Writes an object of any content, and returns its hash.
fn object(folder: &Path, kind: &str, content: &[u8]) -> String {
    let mut hash = command(folder, &["hash-object", "-w", "-t", kind, "--literally", "--stdin"]);
    let mut hash = hash.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    hash.stdin.take().unwrap().write_all(content).unwrap();
    let output = hash.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn entry(mode: &str, name: &str, hash: &str) -> Vec<u8> {
    [mode.as_bytes(), b" ", name.as_bytes(), b"\0", &HEXLOWER.decode(hash.as_bytes()).unwrap()].concat()
}

fn unsafe_trees_are_refused(ada: Developer) {
    let site = ada.site("site");
    let id = ada.pushed_shop(&site);
    let before = ada.head(&id, "refs/heads/main");
    let blob = object(site.path(), "blob", b"x");
    let inner = object(site.path(), "tree", &entry("100644", "config", &blob));
    let trees = [
        entry("40000", "..", &inner),
        entry("40000", ".", &inner),
        entry("40000", ".git", &inner),
        entry("40000", ".GIT", &inner),
        entry("40000", "git~1", &inner),
        entry("100644", "a/b", &blob),
        [entry("100644", "twice", &blob), entry("100644", "twice", &blob)].concat(),
        // A submodule whose address is an option.
        entry(
            "100644",
            ".gitmodules",
            &object(site.path(), "blob", b"[submodule \"x\"]\n\tpath = x\n\turl = -x\n"),
        ),
    ];
    for tree in trees {
        let tree = object(site.path(), "tree", &tree);
        let commit = git(site.path(), &["commit-tree", "-p", "main", "-m", "hostile", &tree]);
        let commit = String::from_utf8(commit.stdout).unwrap().trim().to_owned();
        let text = ada.refused(&site, &[&ada.remote(SHOP), &format!("{commit}:refs/heads/main")]);
        assert!(text.contains("remote unpack failed") || text.contains("fsck"), "{text}");
        assert_eq!(ada.head(&id, "refs/heads/main"), before);
    }
    assert_eq!(ada.deployments(&id).len(), 1);
    // Links, submodules, pointers of LFS and names that differ by case are stored as they are.
    std::os::unix::fs::symlink("/etc/passwd", site.path().join("link")).unwrap();
    site.write("README", "a").write("readme", "b");
    site.write(".gitattributes", "*.bin filter=lfs\n");
    site.write("a.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n").commit();
    let head = site.git(&["rev-parse", "HEAD"]);
    site.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{head},module")]);
    site.git(&["commit", "--quiet", "--message", "a submodule"]);
    ada.push(&site, &[&ada.remote(SHOP), "main"]);
    assert_ne!(ada.head(&id, "refs/heads/main"), before);
    assert_eq!(ada.deployments(&id).len(), 2);
}

fn only_branches_and_tags_are_accepted(ada: Developer) {
    let site = ada.site("site");
    let id = ada.pushed_shop(&site);
    site.write("index.html", "x").commit();
    for name in ["refs/launchway/upload/main", "refs/notes/x"] {
        let text = ada.refused(&site, &[&ada.remote(SHOP), &format!("main:{name}"), "main"]);
        assert!(text.contains("neither a branch nor a tag"), "{text}");
        assert_eq!(ada.head(&id, name), None);
    }
    assert_eq!(ada.deployments(&id).len(), 1);
    // A repository has no hook, and a push cannot write one.
    let hooks = fs::read_dir(ada.hosted(&id).join("hooks")).map_or(0, Iterator::count);
    assert_eq!(hooks, 0);
}

/// Returns bytes that no compression makes small.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

#[test]
fn a_pack_over_the_limit_is_refused() {
    let ada = Developer::on_sqlite(&[("LAUNCHWAY_MAX_SOURCE_SIZE", "100k")]);
    let site = ada.site("site");
    let id = ada.pushed_shop(&site);
    let before = ada.head(&id, "refs/heads/main");
    site.write("noise", noise(90 << 10)).commit();
    ada.push(&site, &[&ada.remote(SHOP), "main"]);
    assert_ne!(ada.head(&id, "refs/heads/main"), before);
    let before = ada.head(&id, "refs/heads/main");
    for size in [110 << 10, 3 << 20] {
        site.write("more", noise(size)).commit();
        let text = ada.refused(&site, &[&ada.remote(SHOP), "main"]);
        assert!(text.contains("larger than 102400 bytes") || text.contains("413"), "{text}");
        assert_eq!(ada.head(&id, "refs/heads/main"), before);
    }
    assert_eq!(ada.deployments(&id).len(), 2);
}

#[test]
fn a_pack_over_200_mib_is_refused() {
    let ada = Developer::on_sqlite(&[("LAUNCHWAY_MAX_SOURCE_SIZE", "200m")]);
    let site = ada.site("site");
    let id = ada.pushed_shop(&site);
    let before = ada.head(&id, "refs/heads/main");
    site.git(&["config", "core.compression", "0"]);
    site.write("noise", noise(201 << 20)).commit();
    let text = ada.refused(&site, &[&ada.remote(SHOP), "main"]);
    assert!(text.contains("larger than 200 MiB"), "{text}");
    assert_eq!(ada.head(&id, "refs/heads/main"), before);
    assert_eq!(ada.deployments(&id).len(), 1);
}
