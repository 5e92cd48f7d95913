//! Services that run together.

use std::{sync::Arc, time::Duration};

use launchway_docker::ContainerLimits;
use launchway_domain::deployments::{
    Composer as _, Condition, Deployer as _, DiscoveredObject, EngineInventory as _, StepError,
};
use launchway_testkit::docker::{base_image, docker};
use serde_json::json;

use super::{Composing, page, plan, shop};
use crate::{
    installation::{owner, owner_in, variables},
    recorder::Recorder,
};

#[tokio::test]
async fn services_reach_each_other_by_name_and_have_an_address() {
    let composing = Composing::new();
    let plan = plan(owner());
    let web = composing.run(&plan, &shop()).await;
    assert_eq!(page(&web).await, "from the database");
    assert_eq!(web.name, format!("launchway-{}-1-web", plan.owner.deployment));
    let found = composing.installation.engine.everything().await.unwrap();
    let mut services: Vec<String> = found
        .iter()
        .filter(|found| found.owner == plan.owner)
        .filter_map(|found| match &found.what {
            DiscoveredObject::Container { service, .. } => service.as_ref().map(ToString::to_string),
            DiscoveredObject::Image { name, .. } => Some(format!("image {}", &name.as_str()[84..])),
            DiscoveredObject::Network(name) => Some(name.clone()),
        })
        .collect();
    services.sort();
    let network = format!("launchway-{}-1", plan.owner.deployment);
    assert_eq!(services, ["db", "image db", "image web", &network, "web"]);
}

#[tokio::test]
async fn services_have_limits_and_labels_and_no_new_privileges() {
    let limits = ContainerLimits { memory: 64 << 20, cpus: Some(0.5), pids: 50 };
    let composing = Composing::with(|options| options.limits = limits);
    let plan = plan(owner());
    composing.run(&plan, &shop()).await;
    for name in ["web", "db"] {
        let seen = composing.service(&plan, name);
        let host = &seen["HostConfig"];
        assert_eq!((&host["Memory"], &host["MemorySwap"]), (&(64 << 20).into(), &(64 << 20).into()));
        assert_eq!((&host["CpuQuota"], &host["CpuPeriod"]), (&50_000.into(), &100_000.into()));
        assert_eq!((&host["CpuShares"], &host["PidsLimit"]), (&512.into(), &50.into()));
        assert_eq!(host["Privileged"], false);
        assert_eq!(host["SecurityOpt"], json!(["no-new-privileges"]));
        assert_eq!(host["CapDrop"], json!(["ALL"]));
        assert!(!host["CapAdd"].to_string().contains("NET_RAW"));
        assert_eq!(host["RestartPolicy"]["Name"], "no");
        let log = json!({ "Type": "json-file", "Config": { "max-size": "10m", "max-file": "3" } });
        assert_eq!(host["LogConfig"], log);
        assert_eq!(host["PortBindings"], json!({}));
        assert!(host["Binds"].as_array().is_none_or(Vec::is_empty), "{}", host["Binds"]);
        assert_eq!(seen["NetworkSettings"]["Networks"].as_object().unwrap().len(), 1);
        let labels = &seen["Config"]["Labels"];
        assert_eq!(labels["launchway.instance"], composing.installation.instance.to_string());
        assert_eq!(labels["launchway.deployment"], plan.owner.deployment.to_string());
        assert_eq!(labels["launchway.service"], name);
    }
}

#[tokio::test]
async fn they_are_kept_stopped_started_and_removed_together() {
    let composing = Composing::new();
    let plan = plan(owner());
    let web = composing.run(&plan, &shop()).await;
    let engine = &composing.installation.engine;
    engine.enable_restart_policy(&web.id).await.unwrap();
    let policy = |name: &str| composing.service(&plan, name)["HostConfig"]["RestartPolicy"]["Name"].clone();
    assert_eq!([policy("web"), policy("db")], ["unless-stopped", "unless-stopped"]);
    let runs = |name: &str| composing.service(&plan, name)["State"]["Running"].clone();
    for _ in 0..2 {
        engine.stop(&web.id).await.unwrap();
    }
    assert_eq!([runs("web"), runs("db")], [false, false]);
    let again = engine.restart(&web.id).await.unwrap();
    assert_eq!([runs("web"), runs("db")], [true, true]);
    assert_eq!(again.id, web.id);
    assert_eq!(page(&again).await, "from the database");
    assert_eq!(composing.installation.traces.networks().len(), 2);
    for _ in 0..2 {
        launchway_domain::deployments::Deployer::remove(&**engine, plan.owner.deployment).await.unwrap();
    }
    assert_eq!(composing.installation.traces.containers(), Vec::<String>::new());
    assert_eq!(composing.installation.traces.networks().len(), 1, "that of the organization stays");
    assert_eq!(composing.installation.traces.volumes().len(), 1);
    assert_eq!(engine.condition(&web.id).await, Ok(Condition::Gone));
}

#[tokio::test]
async fn nobody_else_reaches_them_and_no_secret_is_kept_on_disk() {
    let composing = Composing::new();
    let ours = owner();
    let mut plan = plan(ours);
    plan.environment = variables(&[("PASSWORD", "hunter2 $x\n\u{1f680}\u{2028}\"'"), ("ONLY_WEB", "1")]);
    let base = base_image();
    let file = format!(
        "services:\n  web: {{image: {base}, command: httpd -f -p 8080, expose: [8080], environment: [PASSWORD]}}\n  db: {{image: {base}, command: sleep 600, environment: {{COPY: \"${{PASSWORD}}\"}}}}\n"
    );
    let web = composing.run(&plan, &file).await;
    let environment = |name: &str| composing.service(&plan, name)["Config"]["Env"].to_string();
    let secret = serde_json::to_string("hunter2 $x\n\u{1f680}\u{2028}\"'").unwrap();
    let secret = secret.trim_matches('"');
    let is_there = |text: String, name: &str| {
        let pairs: Vec<String> = serde_json::from_str(&text).unwrap();
        let expected: String = serde_json::from_str(&format!("\"{name}={secret}\"")).unwrap();
        assert!(pairs.contains(&expected), "{pairs:?}");
    };
    is_there(environment("web"), "PASSWORD");
    is_there(environment("db"), "COPY");
    assert!(environment("web").contains("ONLY_WEB") && !environment("db").contains("ONLY_WEB"));
    assert!(composing.kept().iter().all(|text| !text.contains("hunter2")));
    let sibling = composing.installation.container(owner_in(ours.organization), "sleep 600").await;
    let script = format!("timeout 1 wget -q -O - http://{}:8080/ || echo failed", web.address);
    let output = docker(&["exec", sibling.id.as_str(), "sh", "-c", &script]);
    assert!(output.contains("failed"), "{output}");
}

#[tokio::test]
async fn commands_run_with_the_environment_of_the_web_service() {
    let composing = Composing::new();
    let mut plan = plan(owner());
    plan.environment = variables(&[("SAID", "by the application")]);
    composing.installation.write("compose.yaml", &shop());
    composing.compose(&plan).await.unwrap();
    composing.compositions.start_sidecars(&plan, Arc::new(Recorder::default())).await.unwrap();
    let db = composing.service(&plan, "db")["Id"].clone();
    assert_eq!(composing.installation.traces.containers().len(), 1, "only the database runs");
    let recorder = Arc::new(Recorder::default());
    let command = "wget -q -O - http://db:9000/index.html; echo $SAID";
    composing.compositions.run_once(&plan, &command.parse().unwrap(), recorder.clone()).await.unwrap();
    assert_eq!(recorder.text().trim(), "from the database\nby the application");
    let fails = composing.compositions.run_once(&plan, &"exit 3".parse().unwrap(), recorder.clone()).await;
    assert_eq!(fails, Err(StepError::Rejected("the command ended with exit code 3".to_owned())));
    let web = composing.start(&plan).await.unwrap();
    assert_eq!(page(&web).await, "from the database");
    assert_eq!(composing.service(&plan, "db")["Id"], db, "the database goes on");
    assert_eq!(composing.installation.traces.containers().len(), 2);
}

#[tokio::test]
async fn a_failed_service_shows_its_last_lines_and_is_removed() {
    let composing = Composing::new();
    let plan = plan(owner());
    let base = base_image();
    let file = format!(
        "services:\n  web: {{image: {base}, command: sleep 600, expose: [8080], depends_on: {{job: {{condition: service_completed_successfully}}}}}}\n  job: {{image: {base}, command: sh -c 'echo no such table; exit 3'}}\n"
    );
    composing.installation.write("compose.yaml", &file);
    composing.compose(&plan).await.unwrap();
    let recorder = Arc::new(Recorder::default());
    let error = composing.compositions.start(&plan, recorder.clone()).await.unwrap_err();
    assert!(matches!(error, StepError::Rejected(_)), "{error:?}");
    assert_eq!(recorder.text().trim(), "job | no such table");
    assert_eq!(composing.installation.traces.containers(), Vec::<String>::new());

    let missing = file.replace("sh -c 'echo no such table; exit 3'", "/no/such/program");
    composing.installation.write("compose.yaml", &missing);
    composing.compose(&plan).await.unwrap();
    let error = composing.start(&plan).await.unwrap_err().to_string();
    assert!(error.contains("/no/such/program"), "{error}");
}

#[tokio::test]
async fn a_start_that_nobody_waits_for_leaves_no_container_behind() {
    let composing = Composing::new();
    let plan = plan(owner());
    composing.installation.write("compose.yaml", &shop());
    composing.compose(&plan).await.unwrap();
    for delay in [600, 1500, 2500] {
        let (compositions, plan) = (composing.compositions.clone(), plan.clone());
        let start =
            tokio::spawn(async move { compositions.start(&plan, Arc::new(Recorder::default())).await });
        tokio::time::sleep(Duration::from_millis(delay)).await;
        start.abort();
        let _in_time = start.await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    tokio::time::sleep(Duration::from_secs(7)).await;
    launchway_domain::deployments::Deployer::remove(&*composing.installation.engine, plan.owner.deployment)
        .await
        .unwrap();
    assert_eq!(composing.installation.traces.containers(), Vec::<String>::new());
    assert_eq!(composing.installation.traces.networks().len(), 1);
}

#[tokio::test]
async fn services_share_built_images_by_name() {
    let composing = Composing::new();
    let plan = plan(owner());
    let base = base_image();
    composing.installation.write(
        "app/Dockerfile",
        &format!("FROM {base} AS first\nARG WORD\nRUN mkdir -p /www && echo $WORD > /www/index.html\nFROM first\nRUN echo wrong > /www/index.html\n"),
    );
    composing.installation.write("app/web.env", "LATE=yes\n");
    let file = r#"
services:
  web:
    build: {context: app, args: {WORD: "${WORD:-built}"}, target: first}
    image: ours
    command: httpd -f -p 8080 -h /www
    expose: ["8080"]
    env_file: app/web.env
  worker: {image: ours, command: sleep 600}
"#;
    let web = composing.run(&plan, file).await;
    assert_eq!(page(&web).await, "built");
    let image = |name: &str| composing.service(&plan, name)["Image"].clone();
    assert_eq!(image("web"), image("worker"));
    assert!(composing.service(&plan, "web")["Config"]["Env"].to_string().contains("LATE=yes"));
    let foreign = composing.installation.image(owner(), "sleep 1").await;
    let file = format!("services: {{web: {{image: '{foreign}', expose: [8080]}}}}");
    composing.installation.write("compose.yaml", &file);
    let message = composing.compose(&super::plan(owner())).await.unwrap_err().to_string();
    assert_eq!(message, format!("the service `web`: there is no image `{foreign}`"));
}
