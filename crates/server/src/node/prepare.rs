//! Prepares a machine for a Swarm: its packet filter, its engine and its bridge.
//!
//! Every step can be repeated: the packet filter is empty after a boot.

use std::{
    error::Error,
    fs, io,
    net::Ipv4Addr,
    path::Path,
    process::{Command, Output},
};

use serde_json::{Value, json};

use super::packet_filter::add_rules;
use crate::{cli::PrepareNode, print_line};

/// The bridge that connects the containers of a node with its network.
const BRIDGE: &str = "docker_gwbridge";
const BINDING: &str = "com.docker.network.bridge.host_binding_ipv4";
/// The option of the engine by which no program in a container gains privileges. Services have no such option.
const NO_NEW_PRIVILEGES: &str = "no-new-privileges";

/// Prepares this machine.
pub(crate) fn prepare(arguments: &PrepareNode) -> Result<(), Box<dyn Error>> {
    let PrepareNode { address, network, engine_config, packet_filter_only } = arguments;
    if !network.contains(address) {
        return Err(format!("the address {address} is not in the network {network}").into());
    }
    add_rules(*network)?;
    if *packet_filter_only {
        print_line(&format!("containers of this machine open no connection to the machines in {network}"));
        return Ok(());
    }
    require_privileges_setting(engine_config)?;
    prepare_bridge(*address)?;
    print_line(&format!(
        "this machine is prepared at {address}: let it join the Swarm, and run `launchway node activate` for it on a manager"
    ));
    Ok(())
}

/// Fails if programs in containers could gain privileges, after the setting of the engine is written.
fn require_privileges_setting(file: &Path) -> Result<(), Box<dyn Error>> {
    let options = docker(&["info", "--format", "{{json .SecurityOptions}}"])?;
    if options.contains(NO_NEW_PRIVILEGES) {
        return Ok(());
    }
    let shown = file.display();
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => "{}".to_owned(),
        Err(error) => return Err(format!("{shown} cannot be read: {error}").into()),
    };
    // Docker before version 23 does not tell.
    if has_setting(&text) {
        return Ok(());
    }
    let changed = with_setting(&text).map_err(|why| format!("{shown} cannot be changed: {why}"))?;
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, changed).map_err(|error| format!("{shown} cannot be written: {error}"))?;
    Err(format!(
        "`{NO_NEW_PRIVILEGES}` was added to {shown}, which the Docker engine reads when it starts: restart it \
         (`systemctl restart docker`), and run this command again"
    )
    .into())
}

fn has_setting(text: &str) -> bool {
    let settings = serde_json::from_str::<Value>(text).unwrap_or_default();
    settings.get(NO_NEW_PRIVILEGES) == Some(&Value::Bool(true))
}

/// Returns the configuration of the engine with the setting.
fn with_setting(text: &str) -> Result<String, String> {
    let mut settings: Value = match text.trim() {
        "" => json!({}),
        text => serde_json::from_str(text).map_err(|error| error.to_string())?,
    };
    let object = settings.as_object_mut().ok_or("it is not a JSON object")?;
    object.insert(NO_NEW_PRIVILEGES.to_owned(), Value::Bool(true));
    Ok(format!("{settings:#}\n"))
}

/// Creates the bridge such that the ports of containers are published at the private address only. Swarm would create it
/// itself, at all addresses.
fn prepare_bridge(address: Ipv4Addr) -> Result<(), Box<dyn Error>> {
    if let Some(bound) = bridge_address()? {
        if bound == address.to_string() {
            return Ok(());
        }
        let bound = if bound.is_empty() { "all addresses" } else { &bound };
        return Err(format!(
            "the network {BRIDGE} publishes ports at {bound} instead of {address}: drain this node, let it leave the Swarm \
             (`docker swarm leave`), remove the network (`docker network rm {BRIDGE}`), and run this command again"
        )
        .into());
    }
    let binding = format!("{BINDING}={address}");
    let name = format!("com.docker.network.bridge.name={BRIDGE}");
    docker(&[
        "network",
        "create",
        "--driver",
        "bridge",
        "--opt",
        &name,
        "--opt",
        "com.docker.network.bridge.enable_icc=false",
        "--opt",
        "com.docker.network.bridge.enable_ip_masquerade=true",
        "--opt",
        &binding,
        BRIDGE,
    ])?;
    Ok(())
}

/// Returns the address at which the ports of containers are published, empty for all addresses; `None` without the bridge.
pub(crate) fn bridge_address() -> Result<Option<String>, Box<dyn Error>> {
    let format = format!("{{{{index .Options \"{BINDING}\"}}}}");
    let inspected = run("docker", &["network", "inspect", "--format", &format, BRIDGE])?;
    let bound = String::from_utf8_lossy(&inspected.stdout).trim().to_owned();
    Ok(inspected.status.success().then_some(bound))
}

fn docker(arguments: &[&str]) -> Result<String, Box<dyn Error>> {
    succeeded("docker", run("docker", arguments)?)
}

pub(super) fn run(program: &str, arguments: &[&str]) -> Result<Output, Box<dyn Error>> {
    let output = Command::new(program).args(arguments).output();
    output.map_err(|error| format!("`{program}` cannot be run: {error}").into())
}

pub(super) fn succeeded(program: &str, output: Output) -> Result<String, Box<dyn Error>> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_settings_of_the_engine_stay() {
        let settings = |text: &str| serde_json::from_str::<Value>(&with_setting(text).unwrap()).unwrap();
        assert_eq!(settings(""), json!({ "no-new-privileges": true }));
        let changed = settings(r#"{"insecure-registries": ["10.0.0.5:5000"], "no-new-privileges": false}"#);
        assert_eq!(changed, json!({ "insecure-registries": ["10.0.0.5:5000"], "no-new-privileges": true }));
        assert!(has_setting(&with_setting("").unwrap()) && !has_setting(r#"{"no-new-privileges": false}"#));
        for text in ["[]", "{", "no"] {
            assert!(with_setting(text).is_err(), "{text}");
        }
    }
}
