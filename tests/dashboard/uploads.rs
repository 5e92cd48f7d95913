//! Versions that were uploaded.

use flate2::{Compression, write::GzEncoder};
use launchway_testkit::server::{ADMIN_EMAIL, ADMIN_PASSWORD};

use crate::{
    harness::{DEPLOY, Harness},
    requests::Visitor,
};

#[test]
fn the_page_of_an_uploaded_version_shows_its_digest() {
    let harness = Harness::new();
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_size(4);
    header.set_mode(0o644);
    archive.append_data(&mut header, "index.html", &b"page"[..]).unwrap();
    let archive = archive.into_inner().unwrap().finish().unwrap();
    let deployment = harness.admin.post_bytes(&format!("{DEPLOY}/source?name=shop"), &archive).success();
    let digest = deployment["source_digest"].as_str().unwrap();
    let visitor = Visitor::log_in(&harness.server, ADMIN_EMAIL, ADMIN_PASSWORD);
    let page = visitor.get(&format!("/deployments/{}", deployment["id"].as_str().unwrap()));
    assert!(page.text.contains(&format!("upload {digest}")), "{}", page.text);
}
