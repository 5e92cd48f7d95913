//! Injection payloads, and an engine to try them on.

/// Texts that make a careless program run a command: each would create the file `CANARY`. `§` stands for
/// its folder.
pub const PAYLOADS: [&str; 60] = [
    "; touch §/CANARY",
    ";touch §/CANARY;",
    "| touch §/CANARY",
    "|touch §/CANARY",
    "|| touch §/CANARY",
    "& touch §/CANARY",
    "&& touch §/CANARY",
    "&touch §/CANARY&",
    "$(touch §/CANARY)",
    "$(touch${IFS}§/CANARY)",
    "`touch §/CANARY`",
    "`touch${IFS}§/CANARY`",
    "${IFS}$(touch${IFS}§/CANARY)",
    "$((touch §/CANARY))",
    "<(touch §/CANARY)",
    ">(touch §/CANARY)",
    "> §/CANARY",
    ">> §/CANARY",
    "main\ntouch §/CANARY",
    "main\r\ntouch §/CANARY\r\n",
    "main\n\ntouch §/CANARY #",
    "main;touch${IFS}§/CANARY",
    "main|touch${IFS}§/CANARY",
    "main&&touch${IFS}§/CANARY",
    "'; touch §/CANARY; '",
    "\"; touch §/CANARY; \"",
    "'$(touch §/CANARY)'",
    "\"$(touch §/CANARY)\"",
    "\\\"; touch §/CANARY; \\\"",
    "\\'; touch §/CANARY; \\'",
    "--upload-pack=touch §/CANARY",
    "--upload-pack=touch§/CANARY",
    "-u touch §/CANARY",
    "--exec=touch §/CANARY",
    "-oProxyCommand=touch §/CANARY",
    "--config=core.sshCommand=touch §/CANARY",
    "-c core.fsmonitor=touch §/CANARY",
    "--template=§",
    "--output=§/CANARY",
    "-o§/CANARY",
    "--file=§/CANARY",
    "--iidfile=§/CANARY",
    "--cidfile=§/CANARY",
    "--privileged",
    "-v /:/host",
    "--volume=/:/host",
    "--env-file=/etc/passwd",
    "--entrypoint=touch",
    "ext::sh -c touch% §/CANARY",
    "ext::touch §/CANARY",
    "ssh://-oProxyCommand=touch${IFS}§/CANARY/x",
    "git@-oProxyCommand=touch${IFS}§/CANARY:x",
    "file://§/../../etc/passwd",
    "../../../../../../../../§/CANARY",
    "/../../../../../../../../etc/passwd",
    "{{ .Env }} $(touch §/CANARY)",
    "%0atouch %20§/CANARY",
    "$HOME/$(touch §/CANARY)",
    "!touch §/CANARY",
    "\u{202e}; touch §/CANARY",
];

/// A docker, for `FakeDocker`, that builds images and creates containers but starts none: a command in a
/// container is harmless here, and one on this machine is not.
pub const INERT_ENGINE: &str = r#"
id=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
case "$1 $2" in
  "network ls") echo $id;;
  "network inspect") echo '{"id":"'$id'","created":"1","subnets":[{"Subnet":"10.192.0.0/24"}]}';;
  "create "*) cat > /dev/null; echo $id;;
  "build "*) cat > /dev/null; echo built;;
  "start "*) echo 'Error response from daemon: this engine starts nothing' >&2; exit 1;;
esac
"#;
