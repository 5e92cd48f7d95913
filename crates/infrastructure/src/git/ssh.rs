//! The files that ssh reads instead of any of this machine's.

use std::net::SocketAddr;

use launchway_domain::deployments::{GitSource, StepError};
use launchway_system::files::fault;

use super::GitOptions;

/// The host keys that large code hosts publish.
const PUBLISHED: &str = include_str!("known_hosts");

/// Returns the files of a connection to `host` at `address`, all in one folder.
pub(super) async fn files(
    host: &str,
    address: SocketAddr,
    source: &GitSource,
    options: &GitOptions,
) -> Result<Vec<(&'static str, String)>, StepError> {
    let known_hosts = match &options.known_hosts {
        None => PUBLISHED.to_owned(),
        Some(path) => {
            let what = format!("read the known hosts in {}", path.display());
            tokio::fs::read_to_string(path).await.map_err(|error| fault(&what, &error))?
        }
    };
    let mut files =
        vec![("ssh_config", config(host, address, source.key.is_some())), ("known_hosts", known_hosts)];
    if let Some(key) = &source.key {
        files.push(("key", format!("{}\n", key.expose().trim_end())));
    }
    Ok(files)
}

/// Git uses the host name, and this sets its address. Paths are relative to the working directory of git,
/// so that none has to be quoted.
fn config(host: &str, address: SocketAddr, has_key: bool) -> String {
    let (ip, port) = (address.ip(), address.port());
    // As the files of known hosts write it.
    let name = if port == 22 { host.to_owned() } else { format!("[{host}]:{port}") };
    let key = if has_key { "./key" } else { "none" };
    format!(
        "HostName {ip}\n\
         Port {port}\n\
         HostKeyAlias {name}\n\
         CheckHostIP no\n\
         StrictHostKeyChecking yes\n\
         UserKnownHostsFile ./known_hosts\n\
         GlobalKnownHostsFile /dev/null\n\
         UpdateHostKeys no\n\
         VerifyHostKeyDNS no\n\
         CanonicalizeHostname no\n\
         IdentityFile {key}\n\
         IdentitiesOnly yes\n\
         IdentityAgent none\n\
         PreferredAuthentications publickey\n\
         PasswordAuthentication no\n\
         KbdInteractiveAuthentication no\n\
         BatchMode yes\n\
         ForwardAgent no\n\
         ForwardX11 no\n\
         ClearAllForwardings yes\n\
         PermitLocalCommand no\n\
         ProxyCommand none\n\
         ControlPath none\n\
         RequestTTY no\n\
         ConnectTimeout 10\n\
         ServerAliveInterval 10\n\
         ServerAliveCountMax 3\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_port_is_part_of_the_name_that_the_key_is_known_by() {
        let at = |port| config("git.example.com", SocketAddr::from(([192, 0, 2, 1], port)), true);
        assert!(at(22).contains("HostName 192.0.2.1\nPort 22\nHostKeyAlias git.example.com\n"));
        assert!(at(2222).contains("HostName 192.0.2.1\nPort 2222\nHostKeyAlias [git.example.com]:2222\n"));
    }

    #[test]
    fn without_a_deploy_key_no_key_of_this_machine_is_tried() {
        let text = config("h", SocketAddr::from(([192, 0, 2, 1], 22)), false);
        assert!(text.contains("IdentityFile none\n") && text.contains("IdentityAgent none\n"));
    }

    #[test]
    fn the_published_host_keys_are_whole_lines_of_three_words() {
        let lines: Vec<_> = PUBLISHED.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines.len(), 8);
        for line in lines {
            let key = line.split(' ').nth(2).unwrap();
            assert_eq!(line.split(' ').count(), 3, "{line}");
            assert!(data_encoding::BASE64.decode(key.as_bytes()).is_ok(), "{line}");
        }
    }
}
