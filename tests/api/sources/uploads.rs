//! Uploads of archives.

use flate2::{Compression, write::GzEncoder};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::harness::{DEPLOY, Developer, SHOP, on_both, token};

on_both!(
    an_upload_creates_and_deploys_an_application,
    a_push_after_an_upload_does_not_conflict,
    hostile_archives_are_refused_and_change_nothing,
);

/// Packs files; a target of a symbolic link begins with `->`.
pub(super) fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        // The setters of the library refuse unsafe names.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        let mut data = text.as_bytes();
        if let Some(target) = text.strip_prefix("->") {
            header.set_entry_type(tar::EntryType::Symlink);
            header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
            data = b"";
        }
        header.set_size(data.len() as u64);
        header.set_cksum();
        tar.append(&header, data).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn source(query: &str) -> String {
    format!("{DEPLOY}/source?{query}")
}

fn an_upload_creates_and_deploys_an_application(ada: Developer) {
    let sent =
        archive(&[("index.html", "an uploaded page"), ("docs/a.txt", "a"), ("latest", "->docs/a.txt")]);
    let deployment = ada.admin.post_bytes(&source("name=shop"), &sent).success();
    let id = deployment["application_id"].as_str().unwrap().to_owned();
    assert_eq!(deployment["application"]["build_pack"], "static");
    assert_eq!(deployment["application"]["repository"], format!("/git/{id}.git"));
    let digest: String = Sha256::digest(&sent).iter().map(|byte| format!("{byte:02x}")).collect();
    let log = deployment["logs"][0]["log"].as_str().unwrap();
    assert_eq!(log, format!("Deployment requested by ada, by an upload with the SHA-256 {digest}"));
    let first = ada.finished(&id);
    assert_eq!((first.len(), &first[0]["status"]["status"]), (1, &json!("deployed")));
    // By id, by name, and again by a redeployment.
    let second = archive(&[("index.html", "a newer page")]);
    let newer = ada.admin.post_bytes(&source(&format!("id={id}")), &second).success();
    ada.finished(&id);
    ada.admin.post(&format!("{DEPLOY}/redeploy"), &json!({"id": id})).success();
    let all = ada.finished(&id);
    assert_eq!(all.len(), 3);
    assert_eq!(all[0]["commit_hash"], newer["commit_hash"]);
    assert!(all.iter().all(|one| one["status"]["status"] == "deployed"), "{all:?}");
    let audit = ada.admin.get("/api/v1/audit/logs?resource_type=deployment").success();
    let digests =
        audit["activities"].as_array().unwrap().iter().filter_map(|one| one["metadata"]["sha256"].as_str());
    assert_eq!(digests.map(str::len).collect::<Vec<_>>(), [64], "{audit}");
}

fn a_push_after_an_upload_does_not_conflict(ada: Developer) {
    let sent = archive(&[("index.html", "an uploaded page")]);
    ada.admin.post_bytes(&source("name=shop"), &sent).success();
    let id = ada.applications()[0]["id"].as_str().unwrap().to_owned();
    let site = ada.site("site");
    let text = ada.push(&site, &[&ada.remote(SHOP), "main"]);
    assert!(text.contains("Live"), "{text}");
    ada.admin.post(&format!("{DEPLOY}/redeploy"), &json!({"id": id})).success();
    let all = ada.finished(&id);
    assert_eq!((all.len(), &all[0]["commit_hash"]), (3, &json!(site.git(&["rev-parse", "HEAD"]))));
}

fn hostile_archives_are_refused_and_change_nothing(ada: Developer) {
    let sent = archive(&[("index.html", "a page")]);
    ada.admin.post_bytes(&source("name=shop"), &sent).success();
    let id = ada.applications()[0]["id"].as_str().unwrap().to_owned();
    let before = ada.head(&id, "refs/launchway/upload/main");
    let upload = |body: &[u8]| ada.admin.post_bytes(&source(&format!("id={id}")), body);
    for (files, part) in [
        (vec![("../out", "x")], "outside"),
        (vec![("/tmp/out", "x")], "outside"),
        (vec![("link", "->/etc/passwd")], "outside"),
        (vec![("link", "->../../out")], "outside"),
        (vec![(".git/hooks/post-receive", "x")], "git"),
        (vec![("a", "x"), ("a", "y")], "twice"),
        (vec![("a", "->b"), ("a/b", "y")], "both"),
    ] {
        let message = upload(&archive(&files)).failure(400, "validation_failed");
        assert!(message.contains(part), "{files:?}: {message}");
    }
    assert!(upload(b"not an archive").failure(400, "validation_failed").contains("gzipped tar"));
    assert!(upload(&sent[..sent.len() / 2]).failure(400, "validation_failed").contains("gzipped tar"));
    assert_eq!(ada.head(&id, "refs/launchway/upload/main"), before);
    assert_eq!(ada.deployments(&id).len(), 1);
    // The query and the caller are checked, too.
    ada.admin.post_bytes(&source(""), &sent).failure(400, "validation_failed");
    ada.admin.post_bytes(&source(&format!("id={id}&name=shop")), &sent).failure(400, "validation_failed");
    ada.admin.post_bytes(&source("id=0198c9f2-7c1e-7000-8000-000000000001"), &sent).failure(404, "not_found");
    let message = ada
        .admin
        .post_bytes(&source("name=unclear"), &archive(&[("README", "x")]))
        .failure(400, "validation_failed");
    assert!(message.contains("not clear how to build"), "{message}");
    let reader = ada.server.client().with_token(&token(&ada.admin, &["deploy:read"]));
    reader.post_bytes(&source("name=other"), &sent).failure(403, "forbidden");
    assert_eq!(ada.applications().len(), 1);
    // An application with another source keeps it.
    let image = json!({"name": "image", "repository": "registry.example/web:1", "port": 80, "environment": "production",
        "build_pack": "image"});
    ada.admin.post(DEPLOY, &image).success();
    let message = ada.admin.post_bytes(&source("name=image"), &sent).failure(409, "conflict");
    assert!(message.contains("registry.example/web:1"), "{message}");
}

#[test]
fn an_archive_over_the_limit_is_refused() {
    let ada = Developer::on_sqlite(&[("LAUNCHWAY_MAX_SOURCE_SIZE", "100k")]);
    let noise: String = (0..200_000_u64).map(|n| char::from(b'a' + (n * n % 26) as u8)).collect();
    let mut random = Vec::new();
    let mut state = 7_u64;
    while random.len() < 200_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random.push((state >> 33) as u8);
    }
    // What counts is what is sent.
    let small = archive(&[("index.html", &noise)]);
    assert!(small.len() < 100 << 10, "{}", small.len());
    ada.admin.post_bytes(&source("name=shop"), &small).success();
    let message = ada.admin.post_bytes(&source("name=shop"), &random).failure(413, "payload_too_large");
    assert!(message.contains("102400 bytes"), "{message}");
}
