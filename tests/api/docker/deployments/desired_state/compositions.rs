//! Services of a composition that are stopped by hand.

use launchway_testkit::{
    docker::{base_image, docker},
    server::WITH_A_FRONT,
};
use serde_json::json;

use super::{Live, inspect, is_running};
use crate::docker::deployments::harness::{Harness, spec};

/// A page that is read from the database at every request.
const PAGE: &str =
    "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\nwget -q -O - http://db:9000/orders\n";

fn services() -> String {
    let base = base_image();
    format!(
        r#"
services:
  web:
    build: .
    stop_signal: SIGKILL
    depends_on: [db]
    expose: [8080]
  db:
    image: {base}
    stop_signal: SIGKILL
    command: sh -c "exec httpd -f -p 9000 -h /data"
    volumes: ["data:/data"]
volumes: {{data: }}
"#
    )
}

fn web() -> String {
    format!(
        "FROM {}\nCOPY page /www/cgi-bin/page\nRUN chmod 755 /www/cgi-bin/page && echo home > /www/index.html\n\
         CMD [\"httpd\", \"-f\", \"-p\", \"8080\", \"-h\", \"/www\"]\n",
        base_image()
    )
}

#[test]
fn a_database_stopped_by_hand_is_back_with_its_data() {
    let harness = Harness::on_sqlite(&[WITH_A_FRONT]);
    let repository = harness.repository("web");
    repository.write("Dockerfile", web()).write("page", PAGE).write("compose.yaml", services()).commit();
    let mut spec = spec("web", &repository);
    spec["build_pack"] = json!("dockerCompose");
    let live = Live::deploy(harness, &spec);
    let database = database_of(&live);
    docker(&["exec", &database, "sh", "-c", "echo order 17 > /data/orders"]);
    let orders = || live.page("/cgi-bin/page");
    live.wait_until("the data", || orders().as_deref() == Some("order 17"));
    let volumes = live.harness.engine.volumes();

    docker(&["stop", "--time", "0", &database]);
    live.wait_until("the database", || {
        orders().as_deref() == Some("order 17") && live.is_healthy() && is_running(&database_of(&live))
    });
    assert!(live.log().contains("warn: A sidecar service is not running"), "{}", live.log());
    assert_eq!(live.harness.engine.volumes(), volumes);
    live.harness.has_containers(2);
}

/// The container of the service `db`.
fn database_of(live: &Live) -> String {
    let containers = live.harness.engine.containers();
    let service = |id: &String| inspect(id, r#"{{index .Config.Labels "launchway.service"}}"#);
    containers.into_iter().find(|id| service(id) == "db").unwrap()
}
