//! A real PostgreSQL server for one run of the tests.

use std::{
    env,
    ffi::OsString,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, anyhow, bail};
use fs_err::{self as fs, OpenOptions};

use crate::{
    install, needs,
    network::free_port,
    scratch::{Scratch, throwaway_parent},
    workspace,
};

/// The number of attempts: another process may take the free port before the server does.
const ATTEMPTS: u32 = 3;

/// A running server with a cluster of its own, stopped and removed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    port: u16,
    _scratch: Scratch,
}

/// The durability of commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// They survive a failure of the machine, as those of an installation do.
    Machine,
    /// They survive the death of any process, but not a failure of the machine: tests, which create and drop a database
    /// each, would mostly wait for the disk. The files are in memory if there is enough of it.
    Processes,
}

impl Server {
    /// Creates a cluster in a temporary folder and waits until it accepts connections.
    pub(crate) fn start(durability: Durability) -> Result<Self> {
        let binaries = binaries().context("there is no PostgreSQL server here")?;
        let is_root = install::is_root()?;
        // The server refuses to run as root.
        let user: &[&str] =
            if is_root { &["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] } else { &[] };
        let command = |program: &str, arguments: &str| -> Vec<OsString> {
            let program = binaries.join(program).into_os_string();
            let words = user.iter().map(OsString::from).chain([program]);
            words.chain(arguments.split_whitespace().map(OsString::from)).collect()
        };
        let parent = match durability {
            Durability::Processes => throwaway_parent(),
            // Root's own temporary folder may be inaccessible to others; `/tmp` is open to everyone.
            Durability::Machine if is_root => "/tmp".into(),
            Durability::Machine => env::temp_dir(),
        };
        let stop = command("pg_ctl", "-D cluster -m immediate -w stop");
        let scratch = Scratch::create(&parent, "postgres", &stop)?;
        let run = |words: &[OsString]| {
            workspace::output(Command::new(&words[0]).args(&words[1..]).current_dir(scratch.path()))
        };
        if is_root {
            run(&["chown", "postgres:", "."].map(OsString::from))?;
        }
        run(&command("initdb", "-D cluster -A trust -U postgres --no-sync -E UTF8 --locale=C"))?;

        let mut last = anyhow!("no attempt was made");
        for _ in 0..ATTEMPTS {
            let port = free_port()?;
            configure(scratch.path(), port, durability)?;
            match run(&command("pg_ctl", "-D cluster -l log -w -t 60 start")) {
                Ok(_) => return Ok(Self { port, _scratch: scratch }),
                Err(error) => last = error,
            }
        }
        let log = fs::read_to_string(scratch.path().join("log")).unwrap_or_default();
        bail!("{last:#}: {}", log.trim())
    }

    /// Creates an empty database; returns its URL.
    pub(crate) fn create_database(&self, name: &str) -> Result<String> {
        let binaries = binaries().context("there is no PostgreSQL server here")?;
        let mut createdb = Command::new(binaries.join("createdb"));
        createdb.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &self.port.to_string(), name]);
        workspace::output(&mut createdb)?;
        Ok(format!("postgres://postgres@127.0.0.1:{}/{name}", self.port))
    }

    /// Returns the URL of the server.
    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

/// Returns the folder with `initdb`, `pg_ctl` and `postgres`: from the path, or Debian's newest.
pub(crate) fn binaries() -> Option<PathBuf> {
    let on_path = needs::program_folders().into_iter().filter_map(|folder| {
        // Debian keeps the server off the path; a link there points into the folder with all three.
        folder.join("initdb").canonicalize().ok()?.parent().map(Path::to_owned)
    });
    on_path.chain(debian_folders()).find(|folder| {
        ["initdb", "pg_ctl", "postgres"].iter().all(|program| needs::is_program(&folder.join(program)))
    })
}

fn debian_folders() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    newest_first(versions.map(|version| version.path()).collect())
        .into_iter()
        .map(|version| version.join("bin"))
        .collect()
}

fn newest_first(mut folders: Vec<PathBuf>) -> Vec<PathBuf> {
    let version = |folder: &PathBuf| -> Vec<u32> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.split('.').map_while(|part| part.parse().ok()).collect()
    };
    folders.sort_by_key(|folder| std::cmp::Reverse(version(folder)));
    folders
}

/// Appends our settings; of a duplicate setting, the server takes the last.
fn configure(folder: &Path, port: u16, durability: Durability) -> Result<()> {
    let mut settings = format!(
        "listen_addresses = '127.0.0.1'\n\
         port = {port}\n\
         unix_socket_directories = '{}'\n\
         max_connections = 400\n",
        folder.display()
    );
    if durability == Durability::Processes {
        settings.push_str("fsync = off\nfull_page_writes = off\n");
    }
    let mut file = OpenOptions::new().append(true).open(folder.join("cluster/postgresql.conf"))?;
    Ok(file.write_all(settings.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpStream};

    use super::*;

    #[test]
    fn a_server_answers_while_it_lives_and_leaves_nothing_behind() {
        let server = Server::start(Durability::Processes).unwrap();
        let (port, folder) = (server.port, server._scratch.path().to_owned());
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
        assert!(folder.join("cluster/postmaster.pid").exists());

        drop(server);
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
        assert!(!folder.exists());
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        let folders = ["9.6", "15", "17", "x"].map(PathBuf::from).to_vec();
        assert_eq!(newest_first(folders), ["17", "15", "9.6", "x"].map(PathBuf::from));
    }
}
