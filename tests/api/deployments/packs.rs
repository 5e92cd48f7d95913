//! Build packs without a Dockerfile: an image that is there already, and files as they are.

use std::fs;

use launchway_testkit::docker::{base_image, docker};
use serde_json::{Value, json};

use super::stage::{DEPLOY, Stage, page_of, text, wish};

/// The name of an image; it goes with this value.
struct Prebuilt(String);

impl Prebuilt {
    fn new(page: &str) -> Self {
        // One name for each process: tests run in processes of their own.
        let image = Self(format!("launchway-test/prebuilt:{}", std::process::id()));
        image.build(page);
        image
    }

    /// Gives the name to an image with another page.
    fn build(&self, page: &str) {
        let folder = tempfile::tempdir().unwrap();
        let dockerfile = format!(
            "FROM {}\nSTOPSIGNAL SIGKILL\nCOPY index.html /www/index.html\n\
             CMD [\"httpd\", \"-f\", \"-p\", \"8080\", \"-h\", \"/www\"]\n",
            base_image()
        );
        fs::write(folder.path().join("Dockerfile"), dockerfile).unwrap();
        fs::write(folder.path().join("index.html"), page).unwrap();
        let _built = docker(&["build", "--quiet", "--tag", &self.0, folder.path().to_str().unwrap()]);
    }
}

impl Drop for Prebuilt {
    fn drop(&mut self) {
        let _removed = docker(&["image", "rm", "--force", &self.0]);
    }
}

#[test]
fn an_image_is_deployed_as_it_is_and_can_be_gone_back_to() {
    let stage = Stage::on_sqlite(&[]);
    let image = Prebuilt::new("a ready page");
    let wish = json!({
        "name": "ready", "repository": image.0, "port": 8080, "environment": "production",
        "build_pack": "image", "health_check_path": "/",
    });
    let (id, first) = stage.create_live(&wish);
    assert_eq!(page_of(&first), "a ready page");
    assert_eq!(first["commit_hash"], "");
    assert_eq!(stage.application(&id)["repository"], image.0);

    image.build("a newer page");
    let second = stage.deployed(&stage.redeploy(&id));
    assert_eq!(page_of(&second), "a newer page");
    let back = stage.admin.post(&format!("{DEPLOY}/rollback"), &json!({"id": first["id"]})).success();
    assert_eq!(page_of(&stage.deployed(&text(&back["id"]))), "a ready page");
    stage.has_containers(1);
}

#[test]
fn files_are_published_without_a_container_and_can_be_gone_back_to() {
    let stage = Stage::on_sqlite(&[]);
    let site = stage.repository("site");
    site.write("public/index.html", "the first site").write("secret.txt", "not public").commit();
    let mut wish = wish("site", &site);
    wish["build_pack"] = json!("static");
    wish["base_path"] = json!("public");
    wish["health_check_path"] = json!("");
    let (id, first) = stage.create_live(&wish);
    for field in ["container_id", "container_image", "container_name", "container_status"] {
        assert_eq!(first[field], "", "{field}");
    }
    assert_eq!(published(&stage, &first), "the first site");
    assert_eq!(stage.application(&id)["status"]["status"], "running");

    site.write("public/index.html", "the second site").commit();
    let second = stage.deployed(&stage.redeploy(&id));
    assert_eq!(published(&stage, &second), "the second site");
    let back = stage.admin.post(&format!("{DEPLOY}/rollback"), &json!({"id": first["id"]})).success();
    let third = stage.deployed(&text(&back["id"]));
    assert_eq!(third["commit_hash"], first["commit_hash"]);
    assert_eq!(stage.application(&id)["status"]["status"], "running");
    stage.has_containers(0);
    stage.has_no_work_left();
    let all = files_below(&stage.server.data_dir().join("sites"));
    assert!(all.iter().all(|path| !path.ends_with("secret.txt") && !path.contains(".git")), "{all:?}");
}

/// The page of the release of a deployment.
fn published(stage: &Stage, deployment: &Value) -> String {
    let id = text(&deployment["id"]);
    let all = files_below(&stage.server.data_dir().join("sites"));
    let page = all.iter().find(|path| path.contains(&id) && path.ends_with("index.html"));
    fs::read_to_string(page.unwrap_or_else(|| panic!("no release of {id} in {all:?}"))).unwrap()
}

fn files_below(folder: &std::path::Path) -> Vec<String> {
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path.display().to_string()] })
        .collect()
}
