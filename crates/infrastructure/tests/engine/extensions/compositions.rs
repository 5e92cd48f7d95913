//! Compositions: started, replaced, set aside and restored.

use std::sync::Arc;

use launchway_domain::{
    deployments::StepError,
    extensions::{Action, ComposeAction, ComposeText, ExtensionRunner as _, FileAction},
};
use launchway_testkit::docker::{base_image, docker};
use serde_json::json;

use super::{Extending, RESERVED, inspected, is_running, organization};
use crate::recorder::Recorder;

fn up(text: &str) -> Action {
    let project = "shop".parse().unwrap();
    Action::Compose(ComposeAction::Up { project, file: ComposeText::Inline(text.to_owned()) })
}

fn down() -> Action {
    Action::Compose(ComposeAction::Down { project: "shop".parse().unwrap() })
}

/// A database that stores values in a volume, and a page that requests them.
fn shop(port: u16) -> String {
    let base = base_image();
    format!(
        r#"
services:
  web:
    image: {base}
    command:
      - sh
      - -c
      - |
        trap 'exit 0' TERM
        wget -q -O /www/index.html http://db:9000/index.html
        httpd -f -p 8080 -h /www & wait
    depends_on: {{db: {{condition: service_healthy}}}}
    ports: ["127.0.0.1:{port}:8080"]
  db:
    image: {base}
    command:
      - sh
      - -c
      - |
        trap 'exit 0' TERM
        echo "$$WORD" > /data/index.html
        httpd -f -p 9000 -h /data & wait
    environment: {{WORD: "${{word}}"}}
    healthcheck: {{test: [CMD, wget, -q, -O, "-", "http://127.0.0.1:9000/index.html"], interval: 1s, retries: 20}}
    volumes: ["data:/data"]
volumes: {{data: }}
"#
    )
}

async fn page(port: u16) -> String {
    use std::io::{Read as _, Write as _};
    for _ in 0..100 {
        let asked = std::net::TcpStream::connect(("127.0.0.1", port)).and_then(|mut stream| {
            stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            Ok(text)
        });
        if let Some((_, body)) =
            asked.unwrap_or_default().split_once("\r\n\r\n").filter(|(head, _)| head.contains(" 200 "))
        {
            return body.trim_end().to_owned();
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("nobody answers at {port}");
}

#[tokio::test]
async fn reverting_restores_the_earlier_services_and_variables() {
    let (extending, whose, port) = (Extending::new(), organization(), 18_921);
    let file = up(&shop(port));
    let first = extending.begin_with(whose, "shop", &[("word", "hunter2 $x")]).await;
    extending.done(&first, 1, &file).await;
    extending.runner.finish(&first).await.unwrap();
    assert_eq!(page(port).await, "hunter2 $x");
    let db = inspected(&extending.engine_name(&first, "shop-db").await);
    let host = &db["HostConfig"];
    assert_eq!((&host["PidsLimit"], &host["Memory"]), (&json!(512), &json!(1 << 30)));
    assert_eq!((&host["SecurityOpt"], &host["CapDrop"]), (&json!(["no-new-privileges"]), &json!(["ALL"])));
    assert_eq!(
        (&host["RestartPolicy"]["Name"], &host["Privileged"]),
        (&json!("unless-stopped"), &json!(false))
    );
    let labels = &db["Config"]["Labels"];
    assert_eq!(labels["launchway.extension"], "shop");
    let endpoint = db["NetworkSettings"]["Networks"].as_object().unwrap().values().next().unwrap();
    assert_eq!(endpoint["IPAMConfig"]["IPv4Address"], endpoint["IPAddress"]);
    assert_eq!(labels["launchway.address"], endpoint["IPAddress"]);
    assert_eq!(
        (&labels["launchway.execution"], &labels["launchway.deployment"]),
        (&json!(first.execution.to_string()), &json!(""))
    );
    assert_eq!(
        db["NetworkSettings"]["Networks"].as_object().unwrap().keys().collect::<Vec<_>>(),
        [&format!("launchway-{whose}")]
    );
    let web = inspected(&extending.engine_name(&first, "shop-web").await);
    assert_eq!(web["HostConfig"]["PortBindings"]["8080/tcp"][0]["HostIp"], "127.0.0.1");

    let second = extending.begin_with(whose, "shop", &[("word", "newer")]).await;
    for _ in 0..2 {
        extending.done(&second, 1, &file).await;
    }
    assert_eq!(page(port).await, "newer");
    assert_eq!(extending.installation.traces.containers().len(), 4);
    assert!(
        extending
            .runner
            .container(&first, &"shop-db".parse().unwrap(), 80_u16.try_into().unwrap())
            .await
            .is_err()
    );
    for _ in 0..2 {
        extending.revert(&second, 1, &file).await.unwrap();
    }
    assert_eq!(page(port).await, "hunter2 $x");
    assert_eq!(inspected(&extending.engine_name(&first, "shop-db").await)["Id"], db["Id"]);
    assert_eq!(extending.installation.traces.containers().len(), 2);
    assert!(is_free_of("hunter2", extending.folder.path()), "a value is on the disk");
}

/// Returns whether no file below a folder contains these words.
fn is_free_of(words: &str, folder: &std::path::Path) -> bool {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().unwrap().map(|entry| entry.unwrap().path()) {
            match entry.is_dir() {
                true => folders.push(entry),
                false if String::from_utf8_lossy(&std::fs::read(entry).unwrap()).contains(words) => {
                    return false;
                }
                false => {}
            }
        }
    }
    true
}

#[tokio::test]
async fn a_composition_is_taken_down_and_brought_back() {
    let (extending, whose, port) = (Extending::new(), organization(), 18_922);
    let file = up(&shop(port));
    let run = extending.begin_with(whose, "shop", &[("word", "first")]).await;
    extending.done(&run, 1, &file).await;
    let names = [extending.engine_name(&run, "shop-web").await, extending.engine_name(&run, "shop-db").await];
    let second = extending.begin(whose, "shop").await;
    for _ in 0..2 {
        extending.done(&second, 1, &down()).await;
    }
    assert!(
        extending
            .runner
            .container(&run, &"shop-web".parse().unwrap(), 80_u16.try_into().unwrap())
            .await
            .is_err()
    );
    for _ in 0..2 {
        extending.revert(&second, 1, &down()).await.unwrap();
    }
    assert!(names.iter().all(|name| is_running(name)));
    extending.done(&second, 2, &down()).await;
    extending.runner.finish(&second).await.unwrap();
    assert_eq!(extending.installation.traces.containers(), Vec::<String>::new());
    assert_eq!(extending.installation.traces.volumes().len(), 1, "volumes stay");
    assert_eq!(extending.installation.traces.networks().len(), 1);
}

#[tokio::test]
async fn what_was_never_there_before_goes_with_the_step() {
    let extending = Extending::new();
    let run = extending.begin(organization(), "shop").await;
    let file = up(&format!("services: {{db: {{image: '{}', command: sleep 600}}}}", base_image()));
    extending.revert(&run, 1, &file).await.unwrap();
    extending.done(&run, 1, &file).await;
    extending.revert(&run, 1, &file).await.unwrap();
    assert_eq!(extending.installation.traces.containers(), Vec::<String>::new());
    extending.done(&run, 1, &file).await;
    extending.runner.uninstall(run.organization, &run.extension, true).await.unwrap();
    assert_eq!(extending.installation.traces.containers(), Vec::<String>::new());
}

#[tokio::test]
async fn a_failed_service_shows_its_last_lines_and_nothing_stays() {
    let extending = Extending::new();
    let run = extending.begin(organization(), "shop").await;
    let base = base_image();
    let file = up(&format!(
        "services:\n  web: {{image: '{base}', command: sleep 600, depends_on: {{job: {{condition: service_completed_successfully}}}}}}\n  job: {{image: '{base}', command: sh -c 'echo no such table; exit 3'}}\n"
    ));
    let recorder = Arc::new(Recorder::default());
    let failed = extending.runner.perform(&run, 1, &file, recorder.clone()).await;
    assert!(matches!(failed, Err(StepError::Rejected(_))), "{failed:?}");
    assert!(recorder.text().contains("job | no such table"), "{}", recorder.text());
    assert_eq!(extending.installation.traces.containers(), Vec::<String>::new());
}

#[tokio::test]
async fn a_file_of_the_workspace_is_read_there_and_nowhere_else() {
    let extending = Extending::new();
    let run = extending.begin(organization(), "shop").await;
    let from = |path: &str| {
        let file = ComposeText::InWorkspace(path.parse().unwrap());
        Action::Compose(ComposeAction::Up { project: "shop".parse().unwrap(), file })
    };
    let text = format!("services: {{db: {{image: '{}', command: sleep 600}}}}", base_image());
    let write = FileAction::Write { dest: "conf/compose.yaml".parse().unwrap(), content: text };
    extending.done(&run, 1, &Action::File(write)).await;
    extending.done(&run, 2, &from("conf/compose.yaml")).await;
    assert_eq!(
        docker(&["ps", "--quiet", "--filter", &format!("label=launchway.execution={}", run.execution)])
            .lines()
            .count(),
        1
    );
    let workspace = extending.runner.workspace(run.execution);
    std::os::unix::fs::symlink("/etc/passwd", format!("{workspace}/link")).unwrap();
    for path in ["link", "missing", "conf", "conf/compose.yaml/x"] {
        let refused = extending.perform(&run, 3, &from(path)).await;
        assert!(matches!(refused, Err(StepError::Rejected(_))), "{path}: {refused:?}");
    }
}

#[tokio::test]
async fn what_a_file_may_not_say_is_refused_before_anything_is_done() {
    let extending = Extending::new();
    let run = extending.begin(organization(), "shop").await;
    for rest in [
        "privileged: true".to_owned(),
        "network_mode: host".to_owned(),
        "network_mode: 'container:launchway-other'".to_owned(),
        "networks: [host]".to_owned(),
        "pid: host".to_owned(),
        "ipc: host".to_owned(),
        "cap_add: [SYS_ADMIN]".to_owned(),
        "devices: ['/dev/kmsg:/dev/kmsg']".to_owned(),
        "security_opt: ['apparmor:unconfined']".to_owned(),
        "volumes: ['/etc:/host']".to_owned(),
        "volumes: ['/var/run/docker.sock:/var/run/docker.sock']".to_owned(),
        "build: .".to_owned(),
        "env_file: /etc/passwd".to_owned(),
        "ports: ['0.0.0.0:18923:80']".to_owned(),
        "ports: ['443:80']".to_owned(),
        format!("ports: ['{RESERVED}:80']"),
    ] {
        let file = up(&format!("services: {{db: {{image: '{}', {rest}}}}}", base_image()));
        let refused = extending.perform(&run, 1, &file).await;
        assert!(matches!(refused, Err(StepError::Rejected(_))), "{rest}: {refused:?}");
    }
    assert_eq!(extending.installation.traces.containers(), Vec::<String>::new());
    assert_eq!(extending.installation.traces.networks(), Vec::<String>::new());
}
