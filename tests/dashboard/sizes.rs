//! The sizes of pages over the wire.

use launchway_testkit::server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer};
use serde_json::json;

use crate::requests::Visitor;

/// The limits of a page with all its assets on the first visit, and after.
const FIRST: usize = 60 * 1024;
const LATER: usize = 15 * 1024;

#[test]
fn pages_are_small_and_assets_are_kept() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for number in 0..25 {
        let spec = json!({
            "name": format!("Shop {number}"), "repository": "https://git.invalid/ada/shop.git", "branch": "main",
            "port": 8080, "environment": "production", "build_pack": "dockerfile",
        });
        admin.post("/api/v1/deploy/application", &spec).success();
    }
    let visitor = Visitor::log_in(&server, ADMIN_EMAIL, ADMIN_PASSWORD);
    let page = visitor.get("/applications");
    let folder = page.text.split("/dashboard/assets/").nth(1).unwrap().split('/').next().unwrap().to_owned();
    let mut assets = 0;
    for name in ["dashboard.css", "dashboard.js", "log.js", "icon.svg"] {
        let path = format!("/dashboard/assets/{folder}/{name}");
        let answer = server.client().with_header("accept-encoding", "identity").get(&path);
        assert_eq!(answer.headers["cache-control"], "public, max-age=31536000, immutable", "{name}");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut encoder, answer.text.as_bytes()).unwrap();
        assets += encoder.finish().unwrap().len();
        let old = server.client().get(&format!("/dashboard/assets/0000000000000000/{name}"));
        assert_eq!(old.headers["cache-control"], "no-store", "{name}");
    }
    assert_eq!(server.client().get(&format!("/dashboard/assets/{folder}/nothing.js")).status, 404);
    let id = page.text.split("/dashboard/applications/").nth(2).unwrap().split('"').next().unwrap();
    for path in [
        "/applications",
        &format!("/applications/{id}"),
        "/extensions",
        "/extensions/postgres",
        "/extensions/postgres/definition",
        "/notifications",
        "/organization",
        "/profile",
        "/applications/new",
        "/audit",
        "/installation",
    ] {
        let size = visitor.get(path).text.len();
        println!("{path}: {size} bytes, {} with {assets} bytes of assets", size + assets);
        assert!(size <= LATER, "{path}: {size}");
        assert!(size + assets <= FIRST, "{path}: {}", size + assets);
    }
}
