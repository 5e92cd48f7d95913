//! A temporary folder that is removed however its owner ends.

use std::{
    ffi::OsString,
    fs::{DirBuilder, Permissions},
    io::ErrorKind,
    iter,
    os::unix::{
        fs::{DirBuilderExt, PermissionsExt as _},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio, id},
};

use anyhow::{Context as _, Result, bail};
use fs_err as fs;

use crate::workspace;

/// Waits for the end of its input, runs the cleanup command inside the folder, and removes it with what is mounted below it.
const WATCHDOG: &str = r#"
trap '' HUP INT TERM
folder=$1
shift
read -r _
[ "$#" -eq 0 ] || "$@" >/dev/null 2>&1
cd /
# Engines leave mounts behind.
while read -r _ mount _; do
    case $mount in "$folder"/*) umount --lazy "$mount" ;; esac
done < /proc/self/mounts
rm -rf -- "$folder"
"#;

/// The file system in memory of most Linux machines.
const MEMORY: &str = "/dev/shm";
/// The free space and memory that a run of the tests has to find, in kilobytes: several times what one was seen to use.
const NEEDED_MEMORY: u64 = 6 * 1024 * 1024;

/// Returns the parent of what tests throw away: a folder in memory if the machine has enough of it.
///
/// On a disk, tests wait for writes that nobody needs; and ext4 searches all files that were removed in the last seconds
/// for each file that is created, which slows down tests with thousands of small databases.
pub(crate) fn throwaway_parent() -> PathBuf {
    let mut df = Command::new("df");
    let space = workspace::output(df.args(["--output=avail", "--block-size=1K", MEMORY])).unwrap_or_default();
    let [memory, mounts] =
        ["/proc/meminfo", "/proc/self/mounts"].map(|file| fs::read_to_string(file).unwrap_or_default());
    match is_enough_memory(&space, &memory) && !is_noexec(&mounts) {
        true => PathBuf::from(MEMORY),
        // Below `/tmp` whatever the environment says: sockets need short paths, and everyone may enter it.
        false => PathBuf::from("/tmp"),
    }
}

/// Returns whether the outputs of df and `/proc/meminfo` show enough free space and memory.
fn is_enough_memory(space: &str, memory: &str) -> bool {
    let available = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let free = [space.lines().last(), available.and_then(|text| text.split_whitespace().next())];
    free.into_iter().all(|text| {
        text.and_then(|text| text.trim().parse().ok())
            .is_some_and(|kilobytes: u64| kilobytes >= NEEDED_MEMORY)
    })
}

/// Returns whether programs in the file system in memory may not be run, which tests do.
fn is_noexec(mounts: &str) -> bool {
    let mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mut options =
        mounts.filter(|fields| fields.get(1) == Some(&MEMORY)).filter_map(|fields| fields.get(3).copied());
    options.any(|options| options.split(',').any(|option| option == "noexec"))
}

/// Creates a folder with this name, or with a number behind it if the name is taken. Paths of sockets in it have to be shorter
/// than 108 bytes.
fn create_folder(parent: &Path, name: &str) -> Result<PathBuf> {
    let names = iter::once(name.to_owned()).chain((2..).map(|number: u32| format!("{name}-{number}")));
    for path in names.map(|name| parent.join(name)) {
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => {
                created.with_context(|| format!("cannot create {}", path.display()))?;
                return Ok(path);
            }
        }
    }
    bail!("no name is left in {}", parent.display())
}

/// A private folder with a watchdog.
///
/// The watchdog is a process of its own, outside our process group, and reads from a pipe that only we
/// hold. The pipe closes when this value is dropped, and also when we are interrupted or killed.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    watchdog: Child,
}

impl Scratch {
    /// Creates a folder below `parent`; `farewell` is a cleanup command that runs inside it before it is
    /// removed.
    pub(crate) fn create(parent: &Path, name: &str, farewell: &[OsString]) -> Result<Self> {
        let path = create_folder(parent, &format!("lw-{name}-{}", id()))?;
        let watchdog = Command::new("sh")
            .args(["-c", WATCHDOG, "watchdog"])
            .arg(&path)
            .args(farewell)
            .current_dir(&path)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start `sh`")?;
        Ok(Self { path, watchdog })
    }

    /// Lets everyone create files in the folder, as in `/tmp`: programs of tests run as other users, too.
    pub(crate) fn open_to_everyone(self) -> Result<Self> {
        fs::set_permissions(&self.path, Permissions::from_mode(0o1777))?;
        Ok(self)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        if let Err(error) = self.watchdog.wait() {
            eprintln!("{} may be left over: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::*;

    #[test]
    fn memory_is_used_if_it_is_large_enough_and_runs_programs() {
        let space = |kilobytes: u64| format!("   Avail\n{kilobytes}\n");
        let memory =
            |kilobytes: u64| format!("MemTotal: 1 kB\nMemAvailable:   {kilobytes} kB\nSwapFree: 0 kB\n");
        let enough = NEEDED_MEMORY;
        assert!(is_enough_memory(&space(enough), &memory(enough)));
        assert!(!is_enough_memory(&space(enough - 1), &memory(enough)));
        assert!(!is_enough_memory(&space(enough), &memory(enough - 1)));
        assert!(!is_enough_memory("", ""), "another system");
        let mount = |folder: &str, options: &str| {
            format!("tmpfs / tmpfs rw,noexec 0 0\ntmpfs {folder} tmpfs {options} 0 0\n")
        };
        assert!(!is_noexec(&mount(MEMORY, "rw,nosuid,nodev")));
        assert!(is_noexec(&mount(MEMORY, "rw,nosuid,noexec")));
    }

    #[test]
    fn a_dropped_folder_is_gone_with_everything_in_it() {
        let scratch = Scratch::create(&env::temp_dir(), "scratch", &[]).unwrap();
        let path = scratch.path().to_owned();
        fs::write(path.join("file"), "content").unwrap();
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn the_farewell_runs_inside_the_folder() {
        let witness = Scratch::create(&env::temp_dir(), "scratch", &[]).unwrap();
        let copy = witness.path().join("copy");
        let farewell = ["cp".into(), "file".into(), copy.clone().into_os_string()];
        let scratch = Scratch::create(&env::temp_dir(), "scratch", &farewell).unwrap();
        fs::write(scratch.path().join("file"), "content").unwrap();
        drop(scratch);
        assert_eq!(fs::read_to_string(copy).unwrap(), "content");
    }
}
