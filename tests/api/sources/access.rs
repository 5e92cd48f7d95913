//! Access to repositories: tokens, permissions and organizations.

use launchway_testkit::people::join;
use serde_json::json;

use super::harness::{Developer, SHOP, git, on_both, token};

on_both!(a_token_needs_the_permission, others_see_no_repository, the_protocol_is_that_of_git);

fn a_token_needs_the_permission(ada: Developer) {
    let site = ada.site("site");
    let id = ada.pushed_shop(&site);
    site.write("index.html", "another page").commit();
    let reader = token(&ada.admin, &["deploy:read"]);
    let text = ada.refused(&site, &[&ada.remote_with(SHOP, &reader), "main"]);
    assert!(text.contains("403") && text.contains("deploy:create"), "{text}");
    let listed = git(site.path(), &["ls-remote", &ada.remote_with(&format!("{id}.git"), &reader)]);
    assert!(listed.status.success(), "{listed:?}");
    let other = token(&ada.admin, &["extension:read"]);
    let listed = git(site.path(), &["ls-remote", &ada.remote_with(SHOP, &other)]);
    assert!(!listed.status.success());
    let text = ada.refused(&site, &[&ada.remote_with(SHOP, "lwt_wrong"), "main"]);
    assert!(text.contains("Authentication failed"), "{text}");
    // A session is a token, too.
    let login = json!({"email": "ada@example.com", "password": "correct horse battery"});
    let login = ada.server.client().post("/api/v1/auth/login", &login).success();
    ada.push(&site, &[&ada.remote_with(SHOP, login["access_token"].as_str().unwrap()), "main"]);
    assert_eq!(ada.deployments(&id).len(), 2);
}

fn others_see_no_repository(ada: Developer) {
    let site = ada.site("site");
    let id = ada.pushed_shop(&site);
    let other = json!({"name": "Other", "description": ""});
    let other = ada.admin.post("/api/v1/organizations", &other).success();
    let there = ada.admin.with_header("x-organization-id", other["id"].as_str().unwrap());
    let eve = join(&ada.server, &there, "eve@example.com", "admin");
    let login = json!({"email": eve.email, "password": eve.password});
    let login = ada.server.client().post("/api/v1/auth/login", &login).success();
    let stranger = login["access_token"].as_str().unwrap().to_owned();
    let answers =
        [format!("{id}.git"), SHOP.to_owned(), "0198c9f2-7c1e-7000-8000-000000000001.git".to_owned()].map(
            |path| {
                let output = git(site.path(), &["ls-remote", &ada.remote_with(&path, &stranger)]);
                assert!(!output.status.success(), "{path}");
                let text = String::from_utf8(output.stderr).unwrap();
                text.lines().filter(|line| line.starts_with("remote:")).collect::<Vec<_>>().join("\n")
            },
        );
    assert!(answers[0].contains("was not found"), "{answers:?}");
    assert_eq!(answers[0], answers[2]);
}

fn the_protocol_is_that_of_git(ada: Developer) {
    let path = format!("/git/{SHOP}/info/refs");
    let anonymous = ada.server.client().get(&format!("{path}?service=git-upload-pack"));
    assert_eq!(anonymous.status, 401);
    assert!(anonymous.headers["www-authenticate"].starts_with("Basic "), "{anonymous:?}");
    let admin = &ada.admin;
    assert_eq!(admin.get(&path).status, 403);
    assert_eq!(admin.get(&format!("{path}?service=git-upload-pack")).status, 404);
    let advertised = admin.get(&format!("{path}?service=git-receive-pack"));
    assert_eq!(advertised.status, 200);
    assert!(advertised.text.starts_with("001f# service=git-receive-pack\n0000"), "{advertised:?}");
    assert_eq!(advertised.headers["content-type"], "application/x-git-receive-pack-advertisement");
    assert_eq!(admin.get("/git/a/b.git/info/refs?service=git-upload-pack").status, 404);
    assert_eq!(admin.send("PUT", &path, None).status, 405);
    let push = format!("/git/{SHOP}/git-receive-pack");
    assert_eq!(admin.post_bytes(&push, b"hello").status, 400);
    assert_eq!(admin.with_header("content-encoding", "gzip").post_bytes(&push, b"0000").status, 415);
    assert_eq!(admin.post_bytes(&push, b"0000").status, 200);
    assert!(ada.applications().is_empty());
}
