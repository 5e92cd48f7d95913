//! The command line.

use std::{error::Error, io::Write as _, path::PathBuf};

/// Launchway deploys applications from a git repository.
#[derive(Debug, clap::Parser)]
#[command(name = "launchway", version, help_template = crate::help::template())]
pub(crate) struct Arguments {
    /// A TOML file with settings; the environment wins over it
    #[arg(long, global = true, value_name = "FILE", env = "LAUNCHWAY_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// With `serve`, or without a verb: the same as `serve --adopt`
    #[arg(long)]
    pub(crate) adopt: bool,
    #[command(flatten)]
    pub(crate) client: launchway_client::Options,
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

/// What a server does, and what its users do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    #[command(flatten)]
    Client(launchway_client::Verb),
    /// Show the audit trail, or check it
    Audit(Audit),
    #[command(flatten)]
    Server(ServerVerb),
    #[command(flatten)]
    Manual(ManualVerb),
}

/// What is written about the command line itself.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ManualVerb {
    /// Print what lets a shell complete commands
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the page of the manual, or write a page for every verb
    Man {
        /// The folder to write the pages to, such as /usr/local/share/man/man1
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// What is done with the server's own configuration and files.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ServerVerb {
    /// Run the server (also when no verb is given)
    Serve(Serve),
    /// Check what a running installation needs, and say how to mend what is wrong
    Doctor,
    /// Bring the database's tables up to date, and stop
    Migrate,
    /// Print the effective configuration, secrets masked
    Config,
    /// Print the OpenAPI document
    Openapi,
    /// Run or ask the front proxy, which leads traffic to applications
    #[command(subcommand)]
    Proxy(ProxyVerb),
    /// Do without the API what needs the server's own files
    #[command(subcommand)]
    Admin(AdminVerb),
    /// Write, check and restore backups
    #[command(subcommand)]
    Backup(BackupVerb),
    /// Use another database
    #[command(subcommand)]
    Database(DatabaseVerb),
    /// Change the key that seals secrets
    #[command(subcommand)]
    Key(KeyVerb),
    /// Ask before an upgrade what it would do
    #[command(subcommand)]
    Upgrade(UpgradeVerb),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    /// Join a data directory and a database that do not belong together; what the database does not know is removed
    #[arg(long)]
    pub(crate) adopt: bool,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum BackupVerb {
    /// Write everything but the key to one file; a server may run meanwhile
    Create(CreateBackup),
    /// Read a whole backup, and fail if it is not as it was written
    Verify(VerifyBackup),
    /// Put a backup into an empty data directory and an empty database
    Restore(RestoreBackup),
}

#[derive(Debug, clap::Args)]
pub(crate) struct CreateBackup {
    /// Where it goes
    pub(crate) file: PathBuf,
    /// Write a copy of the key to a file of its own
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Replace files that are there
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyBackup {
    /// Where it is
    pub(crate) file: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RestoreBackup {
    /// Where it is
    pub(crate) file: PathBuf,
    /// The key that its secrets were sealed with
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum DatabaseVerb {
    /// Copy everything to another database, which has to be empty; the server must not run
    Move(MoveDatabase),
}

#[derive(Debug, clap::Args)]
pub(crate) struct MoveDatabase {
    /// Which one, in the form of LAUNCHWAY_DATABASE_URL
    #[arg(long, value_name = "URL")]
    pub(crate) to: String,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum KeyVerb {
    /// Seal every secret anew with a new key; the server must not run
    Rotate,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum UpgradeVerb {
    /// Say whether this binary and the database fit; fails if the database is newer
    Check,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum ProxyVerb {
    /// Run it in the foreground; one that runs already hands over and ends
    Run,
    /// Say how it is; fails if it does not run
    Status,
    /// End it when the requests that are under way have been answered
    Stop,
    /// Print a configuration for a Caddy in front of it, which terminates TLS
    Caddyfile,
}

/// Without a verb it asks a server, as the client does; with one it opens the server's files.
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
    /// Check in the server's files that nobody changed or removed an entry; fails if somebody did
    Verify,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum AdminVerb {
    /// Make the first administrator; the password is read from standard input
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
    /// The name of the first organization; without, the username and "'s Team"
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
        // Whoever reads has read enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
