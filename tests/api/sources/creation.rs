//! The first push creates the application.

use serde_json::json;

use super::harness::{Developer, SHOP, on_both};

on_both!(a_push_creates_the_application, what_cannot_be_built_creates_nothing);

fn a_push_creates_the_application(ada: Developer) {
    let site = ada.site("site");
    let commit = site.git(&["rev-parse", "HEAD"]);
    let text = ada.push(&site, &[&ada.remote(SHOP), "main"]);
    assert!(text.contains("remote: Created the application shop (production)"), "{text}");
    let shop = ada.applications().remove(0);
    assert_eq!(
        (&shop["name"], &shop["environment"], &shop["branch"]),
        (&json!("shop"), &json!("production"), &json!("main"))
    );
    assert_eq!((&shop["build_pack"], &shop["port"]), (&json!("static"), &json!(80)));
    let deployments = ada.deployments(shop["id"].as_str().unwrap());
    assert_eq!((deployments.len(), &deployments[0]["commit_hash"]), (1, &json!(commit)));
    // The name in the address counts, and the file decides about the rest.
    site.write("launchway.toml", "name = \"other\"\nbuild_pack = \"static\"\nport = 81\nlabels = [\"a\"]\n")
        .commit();
    let staging = ada.remote("ada%27s%20Team/staging/my%20shop.git");
    ada.push(&site, &[&staging, "main:trunk"]);
    let apps = ada.applications();
    let other = apps.iter().find(|one| one["environment"] == "staging").unwrap();
    assert_eq!(
        (&other["name"], &other["branch"], &other["port"]),
        (&json!("my shop"), &json!("trunk"), &json!(81))
    );
    assert_eq!(other["labels"], json!(["a"]));
    // An application cannot have the repository of another one.
    let taken = json!({"name": "thief", "repository": shop["repository"], "branch": "main", "port": 80,
        "environment": "production", "build_pack": "static"});
    let message = ada.admin.post("/api/v1/deploy/application", &taken).failure(400, "validation_failed");
    assert!(message.contains("another application"), "{message}");
}

fn what_cannot_be_built_creates_nothing(ada: Developer) {
    let site = ada.site("site");
    site.git(&["rm", "--quiet", "index.html"]);
    site.write("README.md", "nothing to build").commit();
    let text = ada.refused(&site, &[&ada.remote(SHOP), "main"]);
    assert!(text.contains("it is not clear how to build this"), "{text}");
    site.write("launchway.toml", "build_pack = \"static\"\nprot = 1\n").commit();
    let text = ada.refused(&site, &[&ada.remote(SHOP), "main"]);
    assert!(text.contains("prot"), "{text}");
    site.git(&["tag", "v1"]);
    let text = ada.refused(&site, &[&ada.remote(SHOP), "v1"]);
    assert!(text.contains("needs a branch"), "{text}");
    assert!(ada.applications().is_empty());
    let folder = ada.server.data_dir().join("git");
    let left =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<_> = left.filter(|name| !name.starts_with('.') && name != "pending").collect();
    assert!(left.is_empty(), "{left:?}");
    // The name is still free.
    site.git(&["rm", "--quiet", "launchway.toml"]);
    site.write("index.html", "a page").commit();
    ada.pushed_shop(&site);
}
