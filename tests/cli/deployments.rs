//! `deploy`: from a repository to a running application.

use launchway_testkit::repository::{running, web_server, web_server_by};
use serde_json::json;

use crate::{
    harness::{DEPLOY, Harness, text},
    person::Person,
};

#[test]
fn one_command_deploys_a_repository_and_its_changes() {
    let harness = Harness::new();
    let repository = harness.repository("shop");
    repository.write("index.html", "the first page\n").commit();
    let ada = Person::ada(&harness.server).standing_in(repository.path());
    let missing = ada.runs(&["deploy"]);
    assert!(missing.failed(2).contains("`launchway init` creates one"), "{missing}");

    let output = ada.runs(&["deploy", "--yes"]);
    let host = "shop.ada-s-team.localhost";
    assert_eq!(output.succeeded(), format!("Live at http://{host}:{}\n", port(&harness)), "{output}");
    assert!(output.stderr.contains("✓ Deployed in "), "{output}");
    assert_eq!(harness.server.visitor(host).try_send("GET", "/", None).unwrap().text, "the first page\n");

    // The same file again, then with another branch and a domain more.
    repository.write("index.html", "the second page\n").commit();
    let output = ada.runs(&["deploy"]);
    output.succeeded();
    assert!(!output.stderr.contains('→') && !output.stderr.contains("Created application"), "{output}");
    assert_eq!(harness.server.visitor(host).try_send("GET", "/", None).unwrap().text, "the second page\n");

    repository.git(&["checkout", "--quiet", "-b", "develop"]);
    repository.write("index.html", "the third page\n").commit();
    let file = std::fs::read_to_string(repository.path().join("launchway.toml")).unwrap();
    let file = file.replace("branch = \"main\"", "branch = \"develop\"\ndomain = \"shop.example.com\"");
    repository.write("launchway.toml", file);
    let output = ada.runs(&["deploy"]);
    assert!(output.succeeded().contains("Live at http://shop.example.com:"), "{output}");
    assert!(output.stderr.contains("branch: main → develop\n"), "{output}");
    assert!(output.stderr.contains("domain: (none) → shop.example.com\n"), "{output}");
    assert_eq!(
        harness.server.visitor("shop.example.com").try_send("GET", "/", None).unwrap().text,
        "the third page\n"
    );
    let deployments = ada.runs(&["deployments", "--output", "json"]).json();
    assert_eq!(deployments["pagination"]["total_count"], 3);
}

fn port(harness: &Harness) -> &str {
    harness.server.front().rsplit(':').next().unwrap()
}

#[test]
fn programs_get_the_deployment_alone_and_need_not_wait_for_it() {
    let harness = Harness::new();
    let (ada, _) = harness.site("shop");
    let output = ada.runs(&["deploy", "shop", "--output", "json"]);
    assert_eq!(output.json()["status"]["status"], "deployed");
    assert_eq!(output.stderr, "", "{output}");

    let output = ada.runs(&["deploy", "shop@production", "--detach"]);
    let id = output.succeeded().split_whitespace().nth(1).unwrap().to_owned();
    assert!(output.stderr.contains(&format!("--deployment {id}")), "{output}");
    let known = harness.admin.get(&format!("{DEPLOY}/deployments/{id}")).success();
    assert_eq!(text(&known["id"]), id);
    ada.runs(&["deploy", "nothing"]).failed(4);
}

#[test]
fn what_the_server_cannot_see_is_said() {
    let harness = Harness::new();
    let (ada, repository) = harness.site("shop");
    let output = ada.runs(&["deploy"]);
    assert!(!output.stderr.contains("warning:"), "{output}");
    repository.write("index.html", "not committed");
    let output = ada.runs(&["deploy"]);
    assert!(output.stderr.contains("warning: 1 file has uncommitted changes"), "{output}");
    repository.git(&["checkout", "--quiet", "-b", "idea"]);
    let output = ada.runs(&["deploy"]);
    assert!(output.stderr.contains("warning: the current branch is idea, but main is deployed"), "{output}");

    // A copy whose remote is the repository that is deployed.
    let copy = harness.folder().join("copy");
    repository.git(&["checkout", "--quiet", "--force", "main"]);
    repository.git(&["clone", "--quiet", ".", copy.to_str().unwrap()]);
    let copy = launchway_testkit::repository::Repository::empty(copy);
    let file = std::fs::read_to_string(repository.path().join("launchway.toml")).unwrap();
    copy.write("launchway.toml", file).write("new.html", "").commit();
    copy.write("newer.html", "").commit();
    let ada = ada.standing_in(copy.path());
    let output = ada.runs(&["deploy"]);
    assert!(output.stderr.contains("warning: 2 commits of main are not pushed"), "{output}");
}

#[test]
fn a_file_that_is_wrong_is_refused_before_anything_happens() {
    let harness = Harness::new();
    let repository = harness.repository("shop");
    let ada = Person::ada(&harness.server).standing_in(repository.path());
    repository.write("launchway.toml", "name = \"shop\"\nprot = 1\n").commit();
    assert!(ada.runs(&["deploy"]).failed(2).contains("`prot`"));
    repository.write("launchway.toml", "name = \"shop\"\nbuild_pack = \"static\"\nport = 0\n");
    let refused = ada.runs(&["deploy"]);
    assert!(refused.failed(2).contains("port must be"), "{refused}");
    assert_eq!(ada.runs(&["apps", "--output", "json"]).json()["pagination"]["total_count"], 0);
}

#[test]
fn an_image_is_built_and_what_fails_is_shown_with_its_lines() {
    let harness = Harness::new();
    let repository = harness.repository("shop");
    // Each step takes longer than a few looks at it.
    let build = "RUN echo a step of the build && sleep 2";
    let serve = "sleep 2; exec httpd -f -p 8080 -h /www";
    repository.write("Dockerfile", format!("{}EXPOSE 8080\n", web_server_by(build, serve)));
    repository.write("index.html", "a page\n").commit();
    let ada = Person::ada(&harness.server).standing_in(repository.path());
    ada.runs(&["init", "--yes"]).succeeded();
    let output = ada.runs(&["deploy"]);
    assert!(output.succeeded().starts_with("Live at http://shop."), "{output}");
    for line in ["\n  Building the image\n", "\n  a step of the build\n", "\n✓ Built in ", "\n✓ Released in "]
    {
        assert!(output.stderr.contains(line), "{line:?} in {output}");
    }
    assert_eq!(output.stderr.matches("\n  a step of the build\n").count(), 1, "{output}");

    repository.write("Dockerfile", running("true").replace("CMD", "RUN echo it breaks here && exit 7\nCMD"));
    repository.commit();
    let output = ada.runs(&["deploy"]);
    let said = output.failed(1);
    let places = ["it breaks here\n", "✗ Failed after ", "error: the deployment of shop failed: ", "hint: "];
    let places: Vec<_> =
        places.iter().map(|text| said.rfind(text).unwrap_or_else(|| panic!("{text}: {output}"))).collect();
    assert!(places.is_sorted(), "{output}");
    assert!(
        said.contains("while building") && said.contains("`launchway logs shop --deployment "),
        "{output}"
    );

    // The port is wrong: the hint asks for it.
    repository.write("Dockerfile", running("echo I sleep; sleep 60")).commit();
    let output = ada.runs(&["deploy", "--output", "json"]);
    assert_eq!(output.code, Some(1), "{output}");
    let deployment: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(deployment["status"]["status"], "failed");
    assert!(output.stderr.contains("check that it listens on port 8080"), "{output}");
    let live = ada.runs(&["app", "show", "--output", "json"]).json();
    assert_eq!(live["status"]["status"], "running");
}

#[test]
fn a_deployment_that_another_one_replaces_says_which() {
    let harness = Harness::new();
    let repository = harness.repository("shop");
    repository.write("Dockerfile", web_server("RUN echo slow && sleep 4")).write("index.html", "a page\n");
    repository.commit();
    let ada = Person::ada(&harness.server).standing_in(repository.path());
    ada.runs(&["init", "--yes"]).succeeded();
    ada.runs(&["deploy", "--detach"]).succeeded();
    // It waits for the first, until a third takes its place.
    let waits = ada.command(&["deploy", "--timeout", "60s"]);
    let output = std::thread::scope(|scope| {
        let waits = scope.spawn(|| { waits }.output().unwrap());
        let id = launchway_testkit::wait::until("the second deployment", || {
            let listed = ada.runs(&["deployments", "shop", "--output", "json"]).json();
            (listed["pagination"]["total_count"] == 2)
                .then(|| text(&listed["deployments"][0]["application_id"]))
        });
        let third = harness.admin.post(&format!("{DEPLOY}/redeploy"), &json!({"id": id})).success();
        (crate::person::CommandOutput::new(&["deploy"], waits.join().unwrap()), text(&third["id"]))
    });
    let (output, third) = output;
    assert!(output.failed(1).contains(&format!("was cancelled: replaced by deployment {third}")), "{output}");

    let output = ada.runs(&["deploy", "shop", "--timeout", "0s"]);
    assert!(output.failed(1).contains("it continues"), "{output}");
    ada.runs(&["cancel", "shop"]).succeeded();
}
