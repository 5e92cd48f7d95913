//! The plans of the real `nixpacks` for small repositories: run by `cargo xtask test --with nixpacks`.
//!
//! Needs the program on the `PATH`, and no network: nothing is built.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{collections::BTreeMap, fs, sync::Arc};

use async_trait::async_trait;
use launchway_docker::nixpacks::Nixpacks;
use launchway_domain::{
    applications::{BasePath, DockerfilePath, Variables},
    deployments::{BuildCache, BuildPlan, BuildPlanner as _, Checkout, Output, Owner, StepError},
    ids::Ids as _,
};
use launchway_system::clock::TimeOrderedIds;
use tempfile::TempDir;

struct Nowhere;

#[async_trait]
impl Output for Nowhere {
    async fn write(&self, _: &[u8]) {}
}

/// Plans these files. Returns the plan and the Dockerfile.
async fn planned(files: &[(&str, &str)]) -> Result<(BuildPlan, String, TempDir), StepError> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let variables = BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())]);
    let plan = BuildPlan {
        owner: Owner {
            organization: TimeOrderedIds.next().into(),
            application: TimeOrderedIds.next().into(),
            deployment: TimeOrderedIds.next().into(),
            attempt: 1,
        },
        checkout: Checkout { root: folder.path().to_owned() },
        base_path: BasePath::default(),
        dockerfile: DockerfilePath::default(),
        variables: Variables::try_from(variables).unwrap(),
        cache: BuildCache::Use,
    };
    let plan = Nixpacks::default().complete(&plan, Arc::new(Nowhere)).await?;
    assert!(!folder.path().join(".nixpacks/build.sh").exists());
    let dockerfile = fs::read_to_string(folder.path().join(plan.dockerfile.as_str())).unwrap();
    Ok((plan, dockerfile, folder))
}

fn has_variable(plan: &BuildPlan, name: &str, value: &str) -> bool {
    plan.variables.iter().any(|pair| pair == (name, value))
}

#[tokio::test]
async fn a_node_repository_is_recognised() {
    let package = r#"{"name":"web","scripts":{"start":"node index.js"}}"#;
    let (plan, dockerfile, _folder) = planned(&[("package.json", package), ("index.js", "")]).await.unwrap();
    assert!(dockerfile.starts_with("FROM ghcr.io/railwayapp/nixpacks:"), "{dockerfile}");
    assert!(dockerfile.contains("npm") && dockerfile.contains("GREETING"), "{dockerfile}");
    // Only one of the builders knows mounts.
    assert!(!dockerfile.contains("--mount"), "{dockerfile}");
    assert!(has_variable(&plan, "NODE_ENV", "production") && has_variable(&plan, "GREETING", "hello"));
}

#[tokio::test]
async fn a_python_repository_is_recognised() {
    let files = [("requirements.txt", "flask\n"), ("main.py", "print('hello')\n")];
    let (plan, dockerfile, _folder) = planned(&files).await.unwrap();
    assert!(dockerfile.contains("pip install -r requirements.txt"), "{dockerfile}");
    assert!(has_variable(&plan, "PYTHONUNBUFFERED", "1") && !dockerfile.contains("--mount"));
}

#[tokio::test]
async fn what_is_in_no_language_is_refused() {
    let refused = planned(&[("notes.txt", "nothing")]).await.unwrap_err();
    assert!(refused.to_string().starts_with("nixpacks does not recognise"), "{refused}");
}
