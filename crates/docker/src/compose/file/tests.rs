//! Tests of allowed and rejected files.

use std::collections::BTreeMap;

use serde_json::Value;

use super::*;
use crate::{
    ContainerLimits,
    compose::{render::Rendering, store::Kept},
};
use launchway_domain::deployments::{ImageName, Owner};
use launchway_testkit::CountingIds;

fn variables(pairs: &[(&str, &str)]) -> Variables {
    let owned = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    owned.collect::<BTreeMap<_, _>>().try_into().unwrap()
}

fn read(text: &str) -> Result<ComposeFile, String> {
    ComposeFile::read(text.as_bytes(), &variables(&[("TAG", "1.27"), ("PASSWORD", "hunter2")]))
}

fn name(text: &str) -> ServiceName {
    text.parse().unwrap()
}

/// A file with one service that has this line too.
fn with(line: &str) -> String {
    format!("services:\n  db:\n    image: postgres:16\n    {line}\n")
}

fn rendered(text: &str, web: &str, given: &Variables) -> Value {
    let file = ComposeFile::read(text.as_bytes(), given).unwrap_or_else(|why| panic!("{why}"));
    let owner = Owner {
        organization: CountingIds::nth(1).into(),
        application: CountingIds::nth(2).into(),
        deployment: CountingIds::nth(3).into(),
        attempt: 1,
    };
    let images = file.services.keys().map(|service| {
        (service.clone(), ImageName::of_service(owner.application, owner.deployment, service))
    });
    let kept = Kept {
        images: images.collect(),
        env_files: BTreeMap::from([("a.env".to_owned(), "FROM_FILE=1\nBOTH=file\n".to_owned())]),
        ..Kept::default()
    };
    let rendering = Rendering {
        owner: &owner,
        file: &file,
        kept: &kept,
        web: &name(web),
        variables: given,
        labels: &[],
        limits: &ContainerLimits { memory: 64 << 20, cpus: Some(1.0), pids: 100 },
        address: Some([10, 0, 0, 7].into()),
        published: None,
    };
    serde_json::from_slice(&rendering.render().unwrap()).unwrap()
}

#[test]
fn rejects_hostile_files_and_names_the_problem() {
    for (line, told) in [
        ("privileged: true", "the service `db` may not have `privileged`"),
        ("network_mode: host", "the service `db` may not have `network_mode`"),
        ("pid: host", "the service `db` may not have `pid`"),
        ("ipc: host", "the service `db` may not have `ipc`"),
        ("uts: host", "the service `db` may not have `uts`"),
        ("userns_mode: host", "the service `db` may not have `userns_mode`"),
        ("cgroup: host", "the service `db` may not have `cgroup`"),
        ("cgroup_parent: /", "the service `db` may not have `cgroup_parent`"),
        ("cap_add: [SYS_ADMIN]", "the service `db` may not have `cap_add`"),
        ("security_opt: [seccomp:unconfined]", "the service `db` may not have `security_opt`"),
        ("devices: [/dev/sda]", "the service `db` may not have `devices`"),
        ("device_cgroup_rules: [a]", "the service `db` may not have `device_cgroup_rules`"),
        ("gpus: all", "the service `db` may not have `gpus`"),
        ("sysctls: {a: b}", "the service `db` may not have `sysctls`"),
        ("extends: {file: /etc/passwd, service: x}", "the service `db` may not have `extends`"),
        ("volumes_from: [x]", "the service `db` may not have `volumes_from`"),
        ("secrets: [x]", "the service `db` may not have `secrets`"),
        ("configs: [x]", "the service `db` may not have `configs`"),
        ("runtime: x", "the service `db` may not have `runtime`"),
        ("group_add: [docker]", "the service `db` may not have `group_add`"),
        ("oom_score_adj: -1000", "the service `db` may not have `oom_score_adj`"),
        ("ulimits: {nproc: 1}", "the service `db` may not have `ulimits`"),
        ("extra_hosts: [a:host-gateway]", "the service `db` may not have `extra_hosts`"),
        ("dns: 1.1.1.1", "the service `db` may not have `dns`"),
        ("logging: {driver: syslog}", "the service `db` may not have `logging`"),
        ("post_start: [{command: x, privileged: true}]", "the service `db` may not have `post_start`"),
        ("develop: {}", "the service `db` may not have `develop`"),
        ("provider: {type: x}", "the service `db` may not have `provider`"),
        ("<<: {privileged: true}", "the service `db` may not have `privileged`"),
        (
            "volumes: ['/:/host']",
            "`volumes` of the service `db` may not mount a folder or file of this machine",
        ),
        (
            "volumes: ['/var/run/docker.sock:/var/run/docker.sock']",
            "`volumes` of the service `db` may not mount a folder or file of this machine",
        ),
        (
            "volumes: ['./x:/x']",
            "`volumes` of the service `db` may not mount a folder or file of this machine",
        ),
        ("volumes: ['${NOTHING}/:/x']", "`volumes` of the service `db` may not mount a folder or file"),
        (
            "volumes: ['x:/x']",
            "the service `db` uses the volume `x`, which `volumes` of the file does not name",
        ),
        ("networks: [bridge]", "the service `db` is in the network `bridge`, which"),
        (
            "networks: {default: {ipv4_address: 10.0.0.1}}",
            "`default` in `networks` of the service `db` may not have `ipv4_address`",
        ),
        (
            "labels: {launchway.deployment: x}",
            "`labels` of the service `db` may not have `launchway.deployment`",
        ),
        (
            "labels: [com.docker.compose.project=x]",
            "`labels` of the service `db` may not have `com.docker.compose.project`",
        ),
        (
            "deploy: {resources: {reservations: {devices: []}}}",
            "`resources` of `deploy` of the service `db` may not have `reservations`",
        ),
        (
            "deploy: {replicas: 50}",
            "`deploy` of the service `db` may not have more or fewer than one replica",
        ),
        ("deploy: {mode: global}", "`deploy` of the service `db` may not have `mode`"),
        ("depends_on: [nobody]", "the service `db` depends on `nobody`, which is not there"),
        ("depends_on: [db]", "the services `db` wait for each other"),
        (
            "stop_grace_period: 1h",
            "`stop_grace_period` of the service `db` has to be a duration of at most 60 s",
        ),
        ("tmpfs: ['/tmp:size=1m,exec']", "`tmpfs` of the service `db` may not have the option `exec`"),
        (
            "healthcheck: {test: x, start_interval: 1s}",
            "`healthcheck` of the service `db` may not have `start_interval`",
        ),
        (
            "healthcheck: {test: x, interval: 1ms}",
            "`interval` of `healthcheck` of the service `db` has to be at least 1 s",
        ),
        (
            "healthcheck: {test: x, interval: 0s}",
            "`interval` of `healthcheck` of the service `db` has to be at least 1 s",
        ),
        ("ports: ['x']", "`ports` of the service `db` has to hold ports"),
        ("environment: {'A B': 1}", "`environment` of the service `db`: `A B` is no name of a variable"),
        ("user: \"0\\n\"", "`user` of the service `db` may only have"),
        ("build: {context: ., network: host}", "`build` of the service `db` may not have `network`"),
        ("command: ${MUST:?say it}", "the variable `MUST` is not set: say it"),
    ] {
        let refused = read(&with(line)).map(|_| ()).unwrap_err();
        assert!(refused.starts_with(told), "{line}:\n{refused}\n{told}");
    }
}

#[test]
fn hostile_sections_are_refused() {
    let service = "services: {db: {image: x}}\n";
    for (line, told) in [
        ("include: [/etc/x.yaml]", "the file may not have `include`"),
        ("secrets: {x: {file: /etc/shadow}}", "the file may not have `secrets`"),
        ("configs: {x: {file: /etc/shadow}}", "the file may not have `configs`"),
        ("volumes: {x: {external: true}}", "the volume `x` may not have `external`"),
        ("volumes: {x: {name: launchway-other}}", "the volume `x` may not have `name`"),
        (
            "volumes: {x: {driver: local, driver_opts: {type: none, o: bind, device: /}}}",
            "the volume `x` may not have `driver_opts`",
        ),
        ("volumes: {x: {driver: sshfs}}", "the volume `x` may not have another driver"),
        ("networks: {x: {external: true}}", "the network `x` may not have `external`"),
        ("networks: {x: {driver: host}}", "the network `x` may not have another driver"),
        ("networks: {x: {ipam: {config: []}}}", "the network `x` may not have `ipam`"),
        ("networks: {x: {driver_opts: {a: b}}}", "the network `x` may not have `driver_opts`"),
        ("models: {}", "the file may not have `models`"),
    ] {
        let refused = read(&format!("{service}{line}\n")).map(|_| ()).unwrap_err();
        assert!(refused.starts_with(told), "{line}:\n{refused}\n{told}");
    }
    for (text, told) in [
        ("services: {}", "there is no service in it"),
        ("services: [a]", "`services` of the file has to be a map"),
        ("services: {'a b': {image: x}}", "a service's name must be"),
        ("services: {'../x': {image: x}}", "a service's name must be"),
        ("services: {a: {}}", "the service `a` needs `image` or `build`"),
        ("services: {a: {image: '--help'}}", "`image` of the service `a` must be"),
        (
            "services: {a: {image: x, depends_on: [b]}, b: {image: x, depends_on: [a]}}",
            "the services `a`, `b` wait",
        ),
        ("- a", "the file has to be a map"),
    ] {
        let refused = read(text).map(|_| ()).unwrap_err();
        assert!(refused.starts_with(told), "{text}:\n{refused}");
    }
    let many = (0..21).map(|number| format!("  s{number}: {{image: x}}\n")).collect::<String>();
    assert_eq!(read(&format!("services:\n{many}")).unwrap_err(), "there are more than 20 services in it");
}

const HONEST: &str = r#"
version: "3.8"
name: shop
x-common: &common
  restart: always
  environment: {TZ: UTC}
services:
  web:
    <<: *common
    build: {context: ., args: [VERSION=$TAG], target: final}
    command: ["sh", "-c", "echo $$HOME"]
    container_name: shop-web
    depends_on:
      db: {condition: service_healthy}
      migrate: {condition: service_completed_successfully}
    environment:
      - DATABASE_URL=postgres://shop:${PASSWORD}@db/shop
      - PASSED_ON
      - BOTH=own
    env_file: a.env
    ports: ["127.0.0.1:80:8080"]
    cap_drop: [CAP_CHOWN, kill]
    labels: ["traefik.enable=true"]
    deploy: {resources: {limits: {cpus: "0.5", memory: 32M, pids: 5000}}}
    x-note: nobody reads this
  migrate: {image: shop, command: migrate, depends_on: [db]}
  db:
    image: postgres:${TAG}
    volumes: ["data:/var/lib/postgresql/data"]
    tmpfs: /tmp
    shm_size: 1g
    mem_limit: 1g
    healthcheck: {test: ["CMD-SHELL", "pg_isready"], interval: 1s, retries: 3}
    networks: {back: {aliases: [database]}, default: }
  proxy: {image: nginx, depends_on: [web]}
volumes: {data: }
networks: {back: {driver: bridge}, front: }
"#;

#[test]
fn honest_files_are_allowed() {
    let file = read(HONEST).unwrap();
    assert_eq!(file.web(8080), Ok(&name("web")));
    let order: Vec<_> = file.order().unwrap().iter().map(|name| name.as_str()).collect();
    assert_eq!(order, ["db", "migrate", "web", "proxy"]);
    assert_eq!(file.sidecars(&name("web")), [&name("db"), &name("migrate")]);
    assert_eq!(file.volumes, BTreeSet::from(["data".to_owned()]));
    assert_eq!(
        file.remarks,
        [
            "`container_name` of `web` is not followed: versions run beside each other",
            "`ports` of `web` are not published on this machine: traffic comes by Launchway",
            "All services are in one network: those of the file are not kept apart",
        ]
    );
}

#[test]
fn what_the_engine_sees_is_ours() {
    let given = variables(&[
        ("TAG", "16"),
        ("PASSWORD", "p$$w\u{7f}\u{2028}"),
        ("PASSED_ON", "yes"),
        ("BOTH", "application"),
    ]);
    let seen = rendered(HONEST, "web", &given);
    let (web, db) = (&seen["services"]["web"], &seen["services"]["db"]);
    for (name, service) in seen["services"].as_object().unwrap() {
        assert!(service["image"].as_str().unwrap().ends_with(&format!("-{name}")), "{service}");
        assert_eq!(service["restart"], "no");
        assert_eq!(service["security_opt"], serde_json::json!(["no-new-privileges"]));
        assert_eq!(service["cap_drop"], serde_json::json!(["ALL"]));
        for key in ["build", "ports", "env_file", "deploy", "privileged", "expose"] {
            assert_eq!(service.get(key), None, "{key}");
        }
        assert!(service["container_name"].as_str().unwrap().starts_with("launchway-"));
    }
    assert_eq!(web["command"][2], "echo $$HOME");
    assert_eq!(web["environment"]["DATABASE_URL"], "postgres://shop:p$$$$w\u{7f}\u{2028}@db/shop");
    assert_eq!(
        [&web["environment"]["PASSED_ON"], &web["environment"]["BOTH"], &web["environment"]["FROM_FILE"]],
        ["yes", "own", "1"]
    );
    assert_eq!(web["environment"]["TAG"], "16", "who gets the traffic knows what the application knows");
    assert_eq!(db["environment"], serde_json::json!({}), "and nobody else does");
    assert_eq!((&web["mem_limit"], &web["pids_limit"]), (&(32 << 20).into(), &100.into()));
    assert_eq!((&web["cpu_quota"], &db["cpu_quota"]), (&50_000.into(), &100_000.into()));
    assert_eq!((&web["cpu_period"], &web["cpu_shares"]), (&100_000.into(), &512.into()));
    assert_eq!((&db["mem_limit"], &db["memswap_limit"]), (&(64 << 20).into(), &(64 << 20).into()));
    assert_eq!(db["shm_size"], 64 << 20);
    let may: Vec<_> = web["cap_add"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(!may.contains(&"CHOWN") && !may.contains(&"KILL") && may.contains(&"SETUID"), "{may:?}");
    assert_eq!(web["labels"]["traefik.enable"], "true");
    assert_eq!(
        (&web["labels"]["launchway.web"], &db["labels"]["launchway.web"]),
        (&"true".into(), &"false".into())
    );
    assert_eq!(web["labels"]["launchway.place"], "2");
    assert_eq!(seen["services"]["migrate"]["labels"]["launchway.restart"], "no");
    assert_eq!(web["labels"]["launchway.restart"], "always");
    assert_eq!(db["networks"]["composition"], serde_json::json!({ "aliases": ["database"] }));
    assert_eq!(db["labels"]["launchway.address"], "");
    assert_eq!(db["labels"]["launchway.aliases"], "database");
    assert_eq!(seen["volumes"]["data"]["external"], true);
    assert!(seen["volumes"]["data"]["name"].as_str().unwrap().ends_with("-data"));
    assert_eq!(seen["networks"].as_object().unwrap().len(), 1);
}

#[test]
fn one_service_gets_the_traffic_or_the_file_is_refused() {
    let two = "services: {a: {image: x, expose: [8080]}, b: {image: x, ports: ['80:8080']}, c: {image: x}}";
    assert_eq!(
        read(two).unwrap().web(8080).unwrap_err(),
        "the services `a`, `b` all expose or publish the port 8080: only one can get the traffic"
    );
    let told = read(two).unwrap().web(9000).unwrap_err();
    assert!(
        told.starts_with("none of the services `a`, `b`, `c` exposes or publishes the port 9000"),
        "{told}"
    );
    let labelled = "services: {a: {image: x, labels: {launchway.web: true}}, b: {image: x, expose: [80]}}";
    assert_eq!(read(labelled).unwrap().web(8080), Ok(&name("a")));
    assert_eq!(read(labelled).unwrap().web(80), Ok(&name("b")), "the port comes first");
    let both = "services: {a: {image: x, labels: [launchway.web=true]}, b: {image: x, labels: [launchway.web=true]}}";
    assert_eq!(
        read(both).unwrap().web(8080).unwrap_err(),
        "the services `a`, `b` are all labelled `launchway.web=true`: only one can get the traffic"
    );
    let no = "services: {a: {image: x, labels: [launchway.web=false]}}";
    assert!(read(no).unwrap().web(8080).is_err());
    let dns = "services: {a: {image: x, ports: ['8080:8080/udp']}}";
    assert!(read(dns).unwrap().web(8080).is_err());
}

#[test]
fn nothing_is_mounted_without_end() {
    let mounts = |count: usize| {
        let mounts: Vec<_> = (0..count).map(|number| format!("/data/{number}")).collect();
        read(&with(&format!("tmpfs: [{}]", mounts.join(", "))))
    };
    assert!(mounts(50).is_ok());
    assert_eq!(mounts(51).unwrap_err(), "the service `db` may not have more than 50 volumes");
}

#[test]
fn no_image_says_how_often_it_is_checked() {
    let seen = rendered(
        "services:
  web: {image: x, expose: [80], depends_on: {awaited: {condition: service_healthy}}}
  awaited: {image: x, depends_on: [never]}
  own: {image: x, healthcheck: {test: 'true'}}
  timed: {image: x, healthcheck: {test: 'true', interval: 2s}}
  never: {image: x, healthcheck: {disable: true}}",
        "web",
        &variables(&[]),
    );
    for (service, check) in [
        ("web", serde_json::json!({ "disable": true })),
        ("awaited", serde_json::json!({ "interval": "5s" })),
        ("own", serde_json::json!({ "test": "true", "interval": "30s" })),
        ("timed", serde_json::json!({ "test": "true", "interval": "2000ms" })),
        ("never", serde_json::json!({ "disable": true })),
    ] {
        assert_eq!(seen["services"][service]["healthcheck"], check, "{service}");
    }
}

#[test]
fn variables_that_are_not_set_are_reported() {
    let file = read("services: {a: {image: x, command: $PATH $TAG, expose: [80]}}").unwrap();
    assert_eq!(file.remarks, ["The variable `PATH` is not set: it is empty"]);
}
