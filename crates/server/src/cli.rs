//! The command line.

use std::{error::Error, io::Write as _, path::PathBuf};

/// Deploy applications from git repositories
#[derive(Debug, clap::Parser)]
#[command(name = "launchway", version, help_template = crate::help::template())]
pub(crate) struct Arguments {
    /// Path of a TOML configuration file; environment variables take precedence
    #[arg(long, global = true, value_name = "FILE", env = "LAUNCHWAY_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The same as `serve --adopt`; only for `serve` or without a command
    #[arg(long)]
    pub(crate) adopt: bool,
    #[command(flatten)]
    pub(crate) client: launchway_client::Options,
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

/// The commands of the server and of the client.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    #[command(flatten)]
    Client(launchway_client::Verb),
    /// Show or verify the audit log
    Audit(Audit),
    #[command(flatten)]
    Server(ServerVerb),
    #[command(flatten)]
    Manual(ManualVerb),
}

/// Commands about the command line itself.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ManualVerb {
    /// Print a shell completion script
    Completions {
        /// The shell that completes the commands
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write a page for every command
    Man {
        /// The directory for the pages, such as /usr/local/share/man/man1
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// Commands on the configuration and the files of the server.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ServerVerb {
    /// Run the server (the default command)
    Serve(Serve),
    /// Check the installation, and print hints for problems
    Doctor,
    /// Migrate the database, and exit
    Migrate,
    /// Print the effective configuration, with secrets masked
    Config,
    /// Print the OpenAPI document
    Openapi,
    /// Run or query the front proxy, which routes traffic to applications
    #[command(subcommand)]
    Proxy(ProxyVerb),
    /// List the machines of the Docker Swarm that runs the applications
    Nodes,
    /// Prepare and drain machines of a Docker Swarm
    #[command(subcommand)]
    Node(NodeVerb),
    /// Administer the installation offline, with the files of the server
    #[command(subcommand)]
    Admin(AdminVerb),
    /// Create, verify and restore backups
    #[command(subcommand)]
    Backup(BackupVerb),
    /// Move to another database
    #[command(subcommand)]
    Database(DatabaseVerb),
    /// Rotate the encryption key of secrets
    #[command(subcommand)]
    Key(KeyVerb),
    /// Check the effects of an upgrade
    #[command(subcommand)]
    Upgrade(UpgradeVerb),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// Join a data directory and a database of different installations; resources that the database does
    /// not know are removed
    #[arg(long)]
    pub(crate) adopt: bool,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum NodeVerb {
    /// Prepare this machine for a Swarm, before it joins (root only)
    Prepare(PrepareNode),
    /// Move all applications away from a machine without downtime, for its maintenance; run it on a manager
    Drain(NamedNode),
    /// Let applications run on a machine: a new one, or one that was drained; run it on a manager
    Activate(NamedNode),
    /// Give up the volumes of a machine that does not come back, so that what ran there may start elsewhere
    Forget(NamedNode),
}

#[derive(Debug, clap::Args)]
pub(crate) struct PrepareNode {
    /// The private address of this machine, at which the others reach it
    #[arg(long)]
    pub(crate) address: std::net::Ipv4Addr,
    /// The network of all machines of the Swarm, such as 10.0.0.0/24
    #[arg(long)]
    pub(crate) network: ipnet::Ipv4Net,
    /// The configuration file of the Docker engine
    #[arg(long, value_name = "FILE", default_value = "/etc/docker/daemon.json")]
    pub(crate) engine_config: PathBuf,
    /// Add the rules of the packet filter and change nothing else: at each boot, before the Docker engine starts
    #[arg(long)]
    pub(crate) packet_filter_only: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NamedNode {
    /// The name of the machine, as in `launchway nodes`
    pub(crate) name: String,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum BackupVerb {
    /// Create a backup of everything except the key; the server can keep running
    Create(CreateBackup),
    /// Verify a backup; fails if it is damaged
    Verify(VerifyBackup),
    /// Restore a backup into an empty data directory and an empty database
    Restore(RestoreBackup),
}

#[derive(Debug, clap::Args)]
pub(crate) struct CreateBackup {
    /// The path of the backup
    pub(crate) file: PathBuf,
    /// Write a copy of the key to a separate file
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyBackup {
    /// The path of the backup
    pub(crate) file: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RestoreBackup {
    /// The path of the backup
    pub(crate) file: PathBuf,
    /// The key that its secrets were encrypted with
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum DatabaseVerb {
    /// Copy all data to an empty database; the server must be stopped
    Move(MoveDatabase),
}

#[derive(Debug, clap::Args)]
pub(crate) struct MoveDatabase {
    /// The target database, in the form of LAUNCHWAY_DATABASE_URL
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum KeyVerb {
    /// Encrypt every secret with a new key; the server must be stopped
    Rotate,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum UpgradeVerb {
    /// Check that this binary is compatible with the database; fails if the database is newer
    Check,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum ProxyVerb {
    /// Run the proxy in the foreground; it takes over from a running one
    Run,
    /// Show the status of the proxy; fails if it does not run
    Status,
    /// Stop the proxy when its running requests have finished
    Stop,
    /// Print a configuration for Caddy in front of the proxy, which terminates TLS
    Caddyfile,
}

/// Without a subcommand it queries a server, like the client; with one it opens the files of the server.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Audit {
    #[command(subcommand)]
    pub(crate) verb: Option<AuditVerb>,
    #[command(flatten)]
    pub(crate) filter: launchway_client::AuditFilter,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum AuditVerb {
    /// Verify the audit log with the files of the server; fails if an entry was changed or removed
    Verify,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum AdminVerb {
    /// Create the first administrator; the password is read from standard input
    Create(CreateAdmin),
    /// Set a user's password and end their sessions; the password is read from standard input
    ResetPassword(ResetPassword),
}

#[derive(Debug, clap::Args)]
pub(crate) struct CreateAdmin {
    /// The administrator's e-mail address
    #[arg(long)]
    pub(crate) email: String,
    /// The administrator's name
    #[arg(long)]
    pub(crate) username: String,
    /// The name of the first organization; by default the username and "'s Team"
    #[arg(long)]
    pub(crate) organization: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ResetPassword {
    /// The user's e-mail address
    #[arg(long)]
    pub(crate) email: String,
}

/// Prints data to standard output.
pub(crate) fn print(text: &str) -> Result<(), Box<dyn Error>> {
    let mut output = std::io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        // The reader has closed the pipe.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn every_command_of_the_api_reference_exists() {
        let document = launchway_api::document();
        let items = document["paths"].as_object().unwrap().values();
        let operations = items.flat_map(|item| item.as_object().unwrap().values());
        let commands: Vec<_> = operations.filter_map(|operation| operation["x-cli"].as_str()).collect();
        assert!(commands.len() > 50, "{commands:?}");
        for command in commands {
            let words = command.split(' ').map(|word| match word {
                "<ROLE>" => "viewer",
                "<CHANNEL>" => "smtp",
                "<NUMBER>" => "7",
                word => word,
            });
            let parsed = Arguments::try_parse_from(words);
            assert!(parsed.is_ok_and(|arguments| arguments.verb.is_some()), "{command}");
        }
    }
}
