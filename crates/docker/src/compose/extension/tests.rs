use launchway_domain::applications::Port;

use super::*;

fn read(service: &str) -> Result<ExtensionFile, String> {
    let values =
        BTreeMap::from([("tag".to_owned(), "16".to_owned()), ("port".to_owned(), "9000".to_owned())]);
    let text = format!("services:\n  db: {service}\nvolumes: {{data: }}\n");
    ExtensionFile::read(&text, &values.try_into().unwrap())
}

#[test]
fn everything_on_the_list_is_read() {
    let file = read(
        "{image: 'postgres:${tag}', command: [a], entrypoint: b, environment: {A: '${tag}'}, labels: {team: x}, \
         volumes: ['data:/data'], ports: ['${port}:5432', {target: 53, published: 5353, protocol: udp, host_ip: 127.0.0.1}], \
         healthcheck: {test: 'true', interval: 5s}, restart: always}",
    )
    .unwrap();
    assert_eq!(file.images().map(|(_, image)| image.as_str()).collect::<Vec<_>>(), ["postgres:16"]);
    assert_eq!(file.volumes().collect::<Vec<_>>(), ["data"]);
    let ports: Vec<_> =
        file.ports().map(|(_, port)| (port.host.unwrap().get(), port.container.get(), port.is_udp)).collect();
    assert_eq!(ports, [(9000, 5432, false), (5353, 53, true)]);
}

#[test]
fn everything_else_is_refused_by_its_name() {
    for (key, rest) in [
        ("privileged", "privileged: true"),
        ("network_mode", "network_mode: host"),
        ("network_mode", "network_mode: 'container:other'"),
        ("networks", "networks: [host]"),
        ("pid", "pid: host"),
        ("ipc", "ipc: host"),
        ("uts", "uts: host"),
        ("userns_mode", "userns_mode: host"),
        ("cap_add", "cap_add: [SYS_ADMIN]"),
        ("cap_drop", "cap_drop: [ALL]"),
        ("devices", "devices: ['/dev/sda:/dev/sda']"),
        ("device_cgroup_rules", "device_cgroup_rules: ['c 1:3 mr']"),
        ("security_opt", "security_opt: ['seccomp:unconfined']"),
        ("cgroup_parent", "cgroup_parent: /"),
        ("build", "build: ."),
        ("env_file", "env_file: /etc/passwd"),
        ("extends", "extends: {file: other.yaml, service: x}"),
        ("secrets", "secrets: [x]"),
        ("configs", "configs: [x]"),
        ("volumes_from", "volumes_from: ['container:other']"),
        ("external_links", "external_links: [other]"),
        ("extra_hosts", "extra_hosts: ['a:1.2.3.4']"),
        ("sysctls", "sysctls: {net.core.somaxconn: 1}"),
        ("tmpfs", "tmpfs: /tmp"),
        ("user", "user: root"),
        ("container_name", "container_name: postgres"),
        ("mem_limit", "mem_limit: 64g"),
        ("deploy", "deploy: {replicas: 1}"),
        ("runtime", "runtime: nvidia"),
        ("scale", "scale: 2"),
    ] {
        let told = read(&format!("{{image: postgres, {rest}}}")).unwrap_err();
        assert!(told.starts_with(&format!("the service `db` may not have `{key}`")), "{rest}: {told}");
    }
}

#[test]
fn nothing_of_this_machine_is_mounted_or_reached_from_elsewhere() {
    for rest in [
        "volumes: ['/:/host']",
        "volumes: ['./x:/x']",
        "volumes: ['/var/run/docker.sock:/var/run/docker.sock']",
        "volumes: [{type: bind, source: /, target: /host}]",
        "volumes: ['/data']",
        "volumes: [{type: tmpfs, target: /x}]",
        "volumes: ['unknown:/data']",
        "ports: ['0.0.0.0:8080:80']",
        "ports: ['[::]:8080:80']",
        "ports: ['8080-8090:80-90']",
        "ports: [{target: 80, published: 8080, host_ip: 0.0.0.0}]",
        "ports: [{target: 80, published: 8080, mode: host}]",
        "ports: [{published: 8080}]",
        "ports: '8080:80'",
        "labels: {launchway.web: 'true'}",
        "labels: {launchway.extension: other}",
        "labels: {com.docker.compose.project: other}",
    ] {
        assert!(read(&format!("{{image: postgres, {rest}}}")).is_err(), "{rest}");
    }
}

#[test]
fn the_file_itself_names_nothing_that_others_have() {
    let none = Variables::default();
    for text in [
        "services: {db: {image: a}}\nnetworks: {other: {external: true}}",
        "services: {db: {image: a}}\nvolumes: {data: {external: true}}",
        "services: {db: {image: a}}\nvolumes: {data: {driver: local, driver_opts: {device: /, o: bind, type: none}}}",
        "services: {db: {image: a}}\nvolumes: {data: {name: others}}",
        "services: {db: {image: a}}\nconfigs: {a: {file: /etc/passwd}}",
        "services: {db: {image: a}}\nsecrets: {a: {file: /etc/passwd}}",
        "include: [other.yaml]",
        "services: {}",
        "services: [a]",
        "",
    ] {
        assert!(ExtensionFile::read(text, &none).is_err(), "{text}");
    }
}

#[test]
fn a_value_stays_what_it_is() {
    let values: Variables =
        BTreeMap::from([("x".to_owned(), "a}\n  evil: {privileged: true".to_owned())]).try_into().unwrap();
    let text = "services: {db: {image: a, environment: {A: '${x}', PATH: '${PATH}'}}}";
    let file = ExtensionFile::read(text, &values).unwrap();
    assert_eq!(file.services().map(ServiceName::as_str).collect::<Vec<_>>(), ["db"]);
    let id = ImageId::read(&json!({ "id": format!("sha256:{}", "a".repeat(64)) })).unwrap();
    let images = file.services().map(|name| (name.clone(), id.clone())).collect();
    let port = ForwardedPort::published("127.0.0.1:20000".parse().unwrap(), Port::try_from(80).unwrap());
    let rendering = ExtensionRendering {
        file: &file,
        images: &images,
        values: &values,
        network: "launchway-o",
        limits: &ContainerLimits::default(),
        container: &|service| format!("launchway-x-1-p_{service}"),
        volume: &|volume| format!("launchway-x-1-p_{volume}"),
        labels: &|_| Vec::new(),
        addresses: &BTreeMap::from([("db".parse().unwrap(), [10, 0, 0, 7].into())]),
        ports: &BTreeMap::from([("db".parse().unwrap(), vec![port])]),
    };
    let rendered: Value = serde_json::from_slice(&rendering.render().unwrap()).unwrap();
    let db = &rendered["services"]["db"];
    assert_eq!(db["environment"], json!({ "A": "a}\n  evil: {privileged: true", "PATH": "" }));
    assert_eq!((&db["restart"], &db["pids_limit"]), (&json!("unless-stopped"), &json!(512)));
    assert_eq!(db["networks"], json!({ "organization": { "ipv4_address": "10.0.0.7" } }));
    assert_eq!(db["labels"]["launchway.address"], "10.0.0.7");
    assert_eq!(db["ports"], json!(["127.0.0.1:20000:80/tcp"]));
}
