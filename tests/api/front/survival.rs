//! Applications are reached whatever happens to the server, to the proxy or to the machine.

use std::{fs, process::Stdio};

use serde_json::{Value, json};

use super::{page, site, stage, status};
use crate::{
    deployments::stage::{Stage, wish},
    patience::until,
};

/// A stage with a site and a container, by their names.
fn furnished() -> (Stage, [&'static str; 2]) {
    let stage = stage();
    let repository = stage.repository("site");
    repository.write("index.html", "a site").commit();
    stage.create_live(&site("site", &repository));
    let repository = stage.repository("web");
    repository.commit_page("a container");
    stage.create_live(&wish("web", &repository));
    (stage, ["site.ada-s-team.localhost", "web.ada-s-team.localhost"])
}

#[track_caller]
fn both_are_reached(stage: &Stage, [site, web]: [&str; 2]) {
    assert_eq!((page(stage, site).as_str(), page(stage, web).as_str()), ("a site", "a container"));
}

#[test]
fn the_proxy_goes_on_without_the_server_and_the_server_finds_it_again() {
    let (mut stage, hosts) = furnished();
    let process = stage.server.front_process().unwrap();
    for is_killed in [true, false] {
        if is_killed {
            stage.server.kill();
        } else {
            assert!(stage.server.terminate().success());
        }
        both_are_reached(&stage, hosts);
        stage.server.restart();
        both_are_reached(&stage, hosts);
        assert_eq!(stage.server.front_process(), Some(process));
    }
}

#[test]
fn an_interrupt_ends_both_and_says_so() {
    let (mut stage, _) = furnished();
    stage.server.signal("INT");
    assert!(stage.server.wait().success());
    assert_eq!(stage.server.front_process(), None);
    assert!(stage.server.log().contains("The front proxy has ended too"), "{}", stage.server.log());
}

#[test]
fn a_killed_proxy_is_back_with_its_routes_before_the_server_has_told_them() {
    let (mut stage, hosts) = furnished();
    stage.server.terminate();
    stage.server.kill_front();
    let mut proxy = stage.server.command(&["proxy", "run"]);
    let address = stage.server.front().to_owned();
    let mut proxy = proxy.env("LAUNCHWAY_PROXY_BIND", address).stderr(Stdio::null()).spawn().unwrap();
    until("the proxy", || stage.server.front_process());
    both_are_reached(&stage, hosts);
    proxy.kill().unwrap();
    proxy.wait().unwrap();
}

#[test]
fn a_proxy_that_dies_is_started_again_by_the_server() {
    let (stage, hosts) = furnished();
    let first = stage.server.front_process().unwrap();
    stage.server.kill_front();
    until("another proxy", || stage.server.front_process().filter(|process| *process != first));
    both_are_reached(&stage, hosts);
}

#[test]
fn after_a_reboot_no_container_is_reached_until_the_server_has_told_where_they_are() {
    let (mut stage, [site, web]) = furnished();
    stage.server.terminate();
    stage.server.kill_front();
    // As another boot of the machine left it.
    let file = stage.server.data_dir().join("proxy/routes.json");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let kept = fs::read_to_string(&file).unwrap();
    assert!(kept.contains(boot.trim()), "{kept}");
    fs::write(&file, kept.replace(boot.trim(), "00000000-0000-0000-0000-000000000000")).unwrap();

    let address = stage.server.front().to_owned();
    let mut proxy = stage.server.command(&["proxy", "run"]);
    let mut proxy = proxy.env("LAUNCHWAY_PROXY_BIND", address).stderr(Stdio::null()).spawn().unwrap();
    until("the proxy", || stage.server.front_process());
    assert_eq!((status(&stage, site), status(&stage, web)), (200, 503));

    stage.server.restart();
    until("the container", || (status(&stage, web) == 200).then_some(()));
    proxy.kill().unwrap();
    proxy.wait().unwrap();
}

#[test]
fn a_container_that_the_engine_gave_another_address_is_reached_there() {
    let (stage, [_, web]) = furnished();
    let (id, _) = first_named(&stage, "web");
    let container = stage.application(&id)["deployments"][0]["container_id"].as_str().unwrap().to_owned();
    let docker = |arguments: &[&str]| launchway_testkit::docker::docker(arguments);
    let network = docker(&[
        "inspect",
        "--format",
        "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end}}",
        &container,
    ]);
    docker(&["network", "disconnect", &network, &container]);
    docker(&["network", "connect", "--ip", &moved(&network), &network, &container]);
    docker(&["restart", "--time", "0", &container]);
    until("the page at the new address", || (status(&stage, web) == 200).then_some(()));
}

/// An address of a network that nobody has.
fn moved(network: &str) -> String {
    let subnet = launchway_testkit::docker::docker(&[
        "network",
        "inspect",
        "--format",
        "{{(index .IPAM.Config 0).Subnet}}",
        network,
    ]);
    let (base, _) = subnet.split_once('/').unwrap();
    format!("{}.77", base.rsplit_once('.').unwrap().0)
}

fn first_named(stage: &Stage, name: &str) -> (String, Value) {
    let found = stage.admin.get(&format!("/api/v1/deploy/applications?search={name}")).success();
    let found = found["applications"]
        .as_array()
        .unwrap()
        .iter()
        .find(|application| application["name"] == json!(name));
    let found = found.unwrap().clone();
    (found["id"].as_str().unwrap().to_owned(), found)
}
