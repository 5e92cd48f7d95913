//! Build packs without a Dockerfile: a prebuilt image, static files, and source for which a Dockerfile is
//! generated.

use std::{env, fs};

use launchway_testkit::docker::{FakeProgram, base_image, docker};
use serde_json::{Value, json};

use super::harness::{DEPLOY, Harness, page_of, spec, text};

/// The name of an image; the image is removed when dropped.
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
    let harness = Harness::on_sqlite(&[]);
    let image = Prebuilt::new("a ready page");
    let spec = json!({
        "name": "ready", "repository": image.0, "port": 8080, "environment": "production",
        "build_pack": "image", "health_check_path": "/",
    });
    let (id, first) = harness.create_live(&spec);
    assert_eq!(page_of(&first), "a ready page");
    assert_eq!(first["commit_hash"], "");
    assert_eq!(harness.application(&id)["repository"], image.0);

    image.build("a newer page");
    let second = harness.deployed(&harness.redeploy(&id));
    assert_eq!(page_of(&second), "a newer page");
    let back = harness.admin.post(&format!("{DEPLOY}/rollback"), &json!({"id": first["id"]})).success();
    assert_eq!(page_of(&harness.deployed(&text(&back["id"]))), "a ready page");
    harness.has_containers(1);
}

#[test]
fn publishes_files_without_a_container_and_rolls_back() {
    let harness = Harness::on_sqlite(&[]);
    let site = harness.repository("site");
    site.write("public/index.html", "the first site").write("secret.txt", "not public").commit();
    let mut spec = spec("site", &site);
    spec["build_pack"] = json!("static");
    spec["base_path"] = json!("public");
    spec["health_check_path"] = json!("");
    let (id, first) = harness.create_live(&spec);
    for field in ["container_id", "container_image", "container_name", "container_status"] {
        assert_eq!(first[field], "", "{field}");
    }
    assert_eq!(published(&harness, &first), "the first site");
    assert_eq!(harness.application(&id)["status"]["status"], "running");

    site.write("public/index.html", "the second site").commit();
    let second = harness.deployed(&harness.redeploy(&id));
    assert_eq!(published(&harness, &second), "the second site");
    let back = harness.admin.post(&format!("{DEPLOY}/rollback"), &json!({"id": first["id"]})).success();
    let third = harness.deployed(&text(&back["id"]));
    assert_eq!(third["commit_hash"], first["commit_hash"]);
    assert_eq!(harness.application(&id)["status"]["status"], "running");
    harness.has_containers(0);
    harness.has_no_work_left();
    let all = files_below(&harness.server.data_dir().join("sites"));
    assert!(all.iter().all(|path| !path.ends_with("secret.txt") && !path.contains(".git")), "{all:?}");
}

/// Returns the page of the release of a deployment.
fn published(harness: &Harness, deployment: &Value) -> String {
    let id = text(&deployment["id"]);
    let all = files_below(&harness.server.data_dir().join("sites"));
    let page = all.iter().find(|path| path.contains(&id) && path.ends_with("index.html"));
    fs::read_to_string(page.unwrap_or_else(|| panic!("no release of {id} in {all:?}"))).unwrap()
}

fn files_below(folder: &std::path::Path) -> Vec<String> {
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path.display().to_string()] })
        .collect()
}

/// A program in place of `nixpacks` that turns every repository into a page.
fn nixpacks() -> FakeProgram {
    let script = r#"
case "$1" in
plan) echo '{"phases":{"build":{}},"variables":{"CI":"true"}}' ;;
build)
    while [ $# -gt 1 ]; do [ "$1" = --out ] && out=$2; shift; done
    mkdir -p "$out/.nixpacks"
    echo 'docker build --build-arg GREETING=...' > "$out/.nixpacks/build.sh"
    cat > "$out/.nixpacks/Dockerfile" <<'END'
FROM <BASE>
WORKDIR /app/
ARG CI GREETING
ENV CI=$CI GREETING=$GREETING
COPY . /app/.
RUN mkdir -p /www && echo "$GREETING $(cat name.txt), CI=$CI, $(ls .nixpacks)" > /www/index.html
STOPSIGNAL SIGKILL
CMD ["httpd", "-f", "-p", "8080", "-h", "/www"]
END
    echo 'build | made a page' ;;
esac"#;
    FakeProgram::running("nixpacks", &script.replace("<BASE>", base_image()))
}

#[test]
fn source_without_a_dockerfile_is_planned_built_and_answers() {
    let fake = nixpacks();
    let path = format!("{}:{}", fake.folder().display(), env::var("PATH").unwrap());
    let harness = Harness::on_sqlite(&[("PATH", &path)]);
    let source = harness.repository("source");
    source.write("web/name.txt", "world").commit();
    let mut spec = spec("source", &source);
    spec["build_pack"] = json!("nixpacks");
    spec["base_path"] = json!("web");
    spec["build_variables"] = json!({"GREETING": "hello-to-the"});
    let (id, first) = harness.create_live(&spec);
    assert_eq!(page_of(&first), "hello-to-the world, CI=true, Dockerfile");
    assert_eq!(harness.application(&id)["build_pack"], "nixpacks");
    let story = harness.story_of(&text(&first["id"]));
    assert!(story.contains("info: Planning the build\nbuild: build | made a page\n"), "{story}");
    assert!(!fake.calls().iter().any(|call| call.arguments.concat().contains("hello-to-the")));
    harness.has_no_work_left();
}

#[test]
fn without_nixpacks_the_deployment_fails_and_says_how_to_get_it() {
    // This machine may have it.
    let path = env::var_os("PATH").unwrap();
    let others = env::split_paths(&path).filter(|folder| !folder.join("nixpacks").exists());
    let path = env::join_paths(others).unwrap().into_string().unwrap();
    let harness = Harness::on_sqlite(&[("PATH", &path)]);
    let source = harness.repository("source");
    source.write("package.json", "{}").commit();
    let mut spec = spec("source", &source);
    spec["build_pack"] = json!("nixpacks");
    let (_, deployment) = harness.create(&spec);
    let story = harness.failed(&deployment);
    assert!(story.contains("install it by `cargo install nixpacks`"), "{story}");
}
