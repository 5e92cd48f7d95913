//! Applications stay reachable whatever happens to the server, to the proxy or to the machine.

use std::{fs, process::Stdio};

use launchway_testkit::docker::docker;
use serde_json::{Value, json};

use super::{harness, page, site, status};
use crate::{
    docker::deployments::harness::{Harness, spec},
    wait::until,
};

/// A server with a site and a container, by their names.
fn populated() -> (Harness, [&'static str; 2]) {
    let harness = harness();
    let repository = harness.repository("site");
    repository.write("index.html", "a site").commit();
    harness.create_live(&site("site", &repository));
    let repository = harness.repository("web");
    repository.commit_page("a container");
    harness.create_live(&spec("web", &repository));
    (harness, ["site.ada-s-team.localhost", "web.ada-s-team.localhost"])
}

#[track_caller]
fn both_are_reached(harness: &Harness, [site, web]: [&str; 2]) {
    assert_eq!((page(harness, site).as_str(), page(harness, web).as_str()), ("a site", "a container"));
}

#[test]
fn the_proxy_outlives_the_server_and_is_found_again() {
    let (mut harness, hosts) = populated();
    let process = harness.server.front_process().unwrap();
    for is_killed in [true, false] {
        if is_killed {
            harness.server.kill();
        } else {
            assert!(harness.server.terminate().success());
        }
        both_are_reached(&harness, hosts);
        harness.server.restart();
        both_are_reached(&harness, hosts);
        assert_eq!(harness.server.front_process(), Some(process));
    }
}

#[test]
fn an_interrupt_ends_both_and_says_so() {
    let (mut harness, _) = populated();
    harness.server.signal("INT");
    assert!(harness.server.wait().success());
    assert_eq!(harness.server.front_process(), None);
    assert!(harness.server.log().contains("The front proxy has stopped too"), "{}", harness.server.log());
}

#[test]
fn a_killed_proxy_restores_its_routes_without_the_server() {
    let (mut harness, hosts) = populated();
    harness.server.terminate();
    harness.server.kill_front();
    let mut proxy = harness.server.command(&["proxy", "run"]);
    let address = harness.server.front().to_owned();
    let mut proxy = proxy.env("LAUNCHWAY_PROXY_BIND", address).stderr(Stdio::null()).spawn().unwrap();
    until("the proxy", || harness.server.front_process());
    both_are_reached(&harness, hosts);
    proxy.kill().unwrap();
    proxy.wait().unwrap();
}

#[test]
fn a_proxy_that_dies_is_started_again_by_the_server() {
    let (harness, hosts) = populated();
    let first = harness.server.front_process().unwrap();
    harness.server.kill_front();
    until("another proxy", || harness.server.front_process().filter(|process| *process != first));
    both_are_reached(&harness, hosts);
}

#[test]
fn no_container_is_reachable_after_a_reboot_without_routes() {
    let (mut harness, [site, web]) = populated();
    harness.server.terminate();
    harness.server.kill_front();
    set_back_the_boot(&harness);

    let address = harness.server.front().to_owned();
    let mut proxy = harness.server.command(&["proxy", "run"]);
    let mut proxy = proxy.env("LAUNCHWAY_PROXY_BIND", address).stderr(Stdio::null()).spawn().unwrap();
    until("the proxy", || harness.server.front_process());
    assert_eq!((status(&harness, site), status(&harness, web)), (200, 503));

    harness.server.restart();
    until("the container", || (status(&harness, web) == 200).then_some(()));
    proxy.kill().unwrap();
    proxy.wait().unwrap();
}

#[test]
fn a_container_is_reached_at_its_new_address() {
    let (harness, [_, web]) = populated();
    let container = container_of(&harness, "web");
    let network = network_of(&container);
    docker(&["network", "disconnect", &network, &container]);
    docker(&["network", "connect", "--ip", &moved(&network), &network, &container]);
    docker(&["restart", "--time", "0", &container]);
    until("the page at the new address", || (status(&harness, web) == 200).then_some(()));
}

#[test]
fn every_host_reaches_its_own_container_after_a_crash() {
    let (mut harness, [site, web]) = populated();
    let repository = harness.repository("shop");
    repository.commit_page("another container");
    harness.create_live(&spec("shop", &repository));
    let shop = "shop.ada-s-team.localhost";
    let containers = ["web", "shop"].map(|name| container_of(&harness, name));

    harness.server.kill();
    harness.server.kill_front();
    exchange_addresses(&containers);
    set_back_the_boot(&harness);
    harness.server.restart();

    // No visitor ever gets the page of the other.
    let own = |host: &str, page: &str| {
        let answer = harness.server.visitor(host).get("/");
        assert!(answer.status == 503 || answer.text.trim_end() == page, "{host}: {answer:?}");
        answer.status == 200
    };
    until("both containers", || (own(web, "a container") & own(shop, "another container")).then_some(()));
    assert_eq!(page(&harness, site), "a site");
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
fn set_back_the_boot(harness: &Harness) {
    let file = harness.server.data_dir().join("proxy/routes.json");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let kept = fs::read_to_string(&file).unwrap();
    assert!(kept.contains(boot.trim()), "{kept}");
    fs::write(&file, kept.replace(boot.trim(), "00000000-0000-0000-0000-000000000000")).unwrap();
}

fn container_of(harness: &Harness, name: &str) -> String {
    let (id, _) = first_named(harness, name);
    harness.application(&id)["deployments"][0]["container_id"].as_str().unwrap().to_owned()
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

fn first_named(harness: &Harness, name: &str) -> (String, Value) {
    let found = harness.admin.get(&format!("/api/v1/deploy/applications?search={name}")).success();
    let found = found["applications"]
        .as_array()
        .unwrap()
        .iter()
        .find(|application| application["name"] == json!(name));
    let found = found.unwrap().clone();
    (found["id"].as_str().unwrap().to_owned(), found)
}
