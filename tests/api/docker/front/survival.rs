//! Applications stay reachable whatever happens to the server, to the proxy or to the machine.

use std::{fs, process::Stdio};

use launchway_testkit::docker::docker;
use serde_json::{Value, json};

use super::{page, site, stage, status};
use crate::{
    docker::deployments::stage::{Stage, spec},
    wait::until,
};

/// A stage with a site and a container, by their names.
fn populated() -> (Stage, [&'static str; 2]) {
    let stage = stage();
    let repository = stage.repository("site");
    repository.write("index.html", "a site").commit();
    stage.create_live(&site("site", &repository));
    let repository = stage.repository("web");
    repository.commit_page("a container");
    stage.create_live(&spec("web", &repository));
    (stage, ["site.ada-s-team.localhost", "web.ada-s-team.localhost"])
}

#[track_caller]
fn both_are_reached(stage: &Stage, [site, web]: [&str; 2]) {
    assert_eq!((page(stage, site).as_str(), page(stage, web).as_str()), ("a site", "a container"));
}

#[test]
fn the_proxy_outlives_the_server_and_is_found_again() {
    let (mut stage, hosts) = populated();
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
    let (mut stage, _) = populated();
    stage.server.signal("INT");
    assert!(stage.server.wait().success());
    assert_eq!(stage.server.front_process(), None);
    assert!(stage.server.log().contains("The front proxy has stopped too"), "{}", stage.server.log());
}

#[test]
fn a_killed_proxy_restores_its_routes_without_the_server() {
    let (mut stage, hosts) = populated();
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
    let (stage, hosts) = populated();
    let first = stage.server.front_process().unwrap();
    stage.server.kill_front();
    until("another proxy", || stage.server.front_process().filter(|process| *process != first));
    both_are_reached(&stage, hosts);
}

#[test]
fn no_container_is_reachable_after_a_reboot_without_routes() {
    let (mut stage, [site, web]) = populated();
    stage.server.terminate();
    stage.server.kill_front();
    set_back_the_boot(&stage);

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
fn a_container_is_reached_at_its_new_address() {
    let (stage, [_, web]) = populated();
    let container = container_of(&stage, "web");
    let network = network_of(&container);
    docker(&["network", "disconnect", &network, &container]);
    docker(&["network", "connect", "--ip", &moved(&network), &network, &container]);
    docker(&["restart", "--time", "0", &container]);
    until("the page at the new address", || (status(&stage, web) == 200).then_some(()));
}

#[test]
fn every_host_reaches_its_own_container_after_a_crash() {
    let (mut stage, [site, web]) = populated();
    let repository = stage.repository("shop");
    repository.commit_page("another container");
    stage.create_live(&spec("shop", &repository));
    let shop = "shop.ada-s-team.localhost";
    let containers = ["web", "shop"].map(|name| container_of(&stage, name));

    stage.server.kill();
    stage.server.kill_front();
    exchange_addresses(&containers);
    set_back_the_boot(&stage);
    stage.server.restart();

    // No visitor ever gets the page of the other.
    let own = |host: &str, page: &str| {
        let answer = stage.server.visitor(host).get("/");
        assert!(answer.status == 503 || answer.text.trim_end() == page, "{host}: {answer:?}");
        answer.status == 200
    };
    until("both containers", || (own(web, "a container") & own(shop, "another container")).then_some(()));
    assert_eq!(page(&stage, site), "a site");
}

/// Starts two containers of a network as an engine might after a reboot: with exchanged addresses.
fn exchange_addresses([one, other]: &[String; 2]) {
    let network = network_of(one);
    let address = |container: &str| {
        let format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";
        docker(&["inspect", "--format", format, container])
    };
    let (first, second) = (address(one), address(other));
    docker(&["kill", one, other]);
    for container in [one, other] {
        docker(&["network", "disconnect", &network, container]);
    }
    docker(&["network", "connect", "--ip", &second, &network, one]);
    docker(&["network", "connect", "--ip", &first, &network, other]);
    docker(&["start", one, other]);
    assert_eq!((address(one), address(other)), (second, first));
}

/// Changes the boot id of the stored routes.
fn set_back_the_boot(stage: &Stage) {
    let file = stage.server.data_dir().join("proxy/routes.json");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let kept = fs::read_to_string(&file).unwrap();
    assert!(kept.contains(boot.trim()), "{kept}");
    fs::write(&file, kept.replace(boot.trim(), "00000000-0000-0000-0000-000000000000")).unwrap();
}

fn container_of(stage: &Stage, name: &str) -> String {
    let (id, _) = first_named(stage, name);
    stage.application(&id)["deployments"][0]["container_id"].as_str().unwrap().to_owned()
}

fn network_of(container: &str) -> String {
    let format = "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end}}";
    docker(&["inspect", "--format", format, container])
}

/// An unused address of a network.
fn moved(network: &str) -> String {
    let subnet = docker(&["network", "inspect", "--format", "{{(index .IPAM.Config 0).Subnet}}", network]);
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
