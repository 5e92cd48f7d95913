//! A temporary folder that is removed however its owner ends.

use std::{
    ffi::OsString,
    fs::{DirBuilder, Permissions},
    os::unix::{
        fs::{DirBuilderExt, PermissionsExt as _},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio, id},
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result};
use fs_err as fs;

use crate::workspace;

/// Waits for the end of its input, runs the cleanup command inside the folder, and removes it.
const WATCHDOG: &str = r#"
trap '' HUP INT TERM
folder=$1
shift
read -r _
[ "$#" -eq 0 ] || "$@" >/dev/null 2>&1
cd /
rm -rf -- "$folder"
"#;

/// The file system in memory of most Linux machines.
const MEMORY: &str = "/dev/shm";
/// The free space there that a run of the tests gets, in kilobytes. It uses about half of that.
const NEEDED_MEMORY: u64 = 6 * 1024 * 1024;

/// Returns the parent of what tests throw away: a folder in memory if the machine has enough of it.
///
/// On a disk, tests wait for writes that nobody needs; and ext4 searches all files that were removed in the last seconds
/// for each file that is created, which is most of the time of thousands of small databases.
pub(crate) fn throwaway_parent() -> PathBuf {
    let free = |text: String| text.lines().last()?.trim().parse::<u64>().ok();
    let mut df = Command::new("df");
    let space = workspace::output(df.args(["--output=avail", "--block-size=1K", MEMORY])).ok().and_then(free);
    let memory = fs::read_to_string("/proc/meminfo").ok();
    let memory = memory.as_deref().and_then(available_memory);
    let is_enough = |free: Option<u64>| free.is_some_and(|kilobytes| kilobytes >= NEEDED_MEMORY);
    match is_enough(space) && is_enough(memory) {
        true => PathBuf::from(MEMORY),
        // Below `/tmp` whatever the environment says: sockets need short paths, and everyone may enter it.
        false => PathBuf::from("/tmp"),
    }
}

/// Returns the kilobytes of memory that programs can still get.
fn available_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse().ok()
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
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let path = parent.join(format!("launchway-{name}-{}-{}", id(), now.as_nanos()));
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("cannot create {}", path.display()))?;
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
