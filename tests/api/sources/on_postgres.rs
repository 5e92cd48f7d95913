//! Several servers of one installation.

use super::harness::{Developer, SHOP};
use crate::wait::until;

#[test]
fn servers_without_a_shared_folder_refuse_pushes() {
    let ada = Developer::on_postgres(&[]);
    let site = ada.site("site");
    ada.pushed_shop(&site);
    let second = ada.server.replica(&[]);
    site.write("index.html", "another page").commit();
    let remote = format!("http://ada:{}@{}/git/{SHOP}", ada.token, second.address());
    let text = until("a refusal", || {
        let output = ada.try_push(&site, &[&remote, "main"]);
        (!output.status.success()).then(|| String::from_utf8(output.stderr).unwrap())
    });
    assert!(text.contains("LAUNCHWAY_REPOSITORIES_DIR"), "{text}");
    assert_eq!(ada.deployments(ada.applications()[0]["id"].as_str().unwrap()).len(), 1);
}

#[test]
fn servers_with_a_shared_folder_accept_pushes() {
    let folder = tempfile::tempdir().unwrap();
    let shared = folder.path().join("git").display().to_string();
    let ada = Developer::on_postgres(&[("LAUNCHWAY_REPOSITORIES_DIR", &shared)]);
    let site = ada.site("site");
    let id = ada.pushed_shop(&site);
    let second = ada.server.replica(&[]);
    for (number, address) in [ada.server.address(), second.address()].into_iter().enumerate() {
        site.write("index.html", format!("page {number}")).commit();
        let remote = format!("http://ada:{}@{address}/git/{SHOP}", ada.token);
        let text = ada.push(&site, &[&remote, "main"]);
        assert!(text.contains("Live"), "{text}");
    }
    assert_eq!(ada.finished(&id).len(), 3);
}
