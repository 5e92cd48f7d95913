//! Namespaces for a campaign that breaks a Docker engine.
//!
//! The program runs itself again in process, mount and network namespaces of its own. An engine in there
//! shares no bridge, no iptables rule and no mount with the engine of the machine, and the kernel removes
//! all of them when the campaign ends, however it ends. Only the folder and the control groups are left,
//! which the outer process removes.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitCode, id},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::cluster::is_root;

/// The variable with the folder of the campaign, set inside of the namespaces only.
const FOLDER: &str = "LAUNCHWAY_CHAOS_FOLDER";
/// The place of that folder, and the beginning of its name.
const PARENT: &str = "/tmp";
const PREFIX: &str = "lwc-";
/// Gives the network namespace its loopback device, then runs the campaign.
const ENTER: &str = "/bin/busybox ip link set lo up && exec \"$@\"";
/// The time that the kernel gets to end the processes in the control groups.
const CLEANUP: Duration = Duration::from_secs(10);

/// Returns true inside of the namespaces.
pub(crate) fn is_isolated() -> bool {
    env::var_os(FOLDER).is_some()
}

/// The folder of the campaign, with a short path: sockets are in it.
pub(crate) fn folder() -> PathBuf {
    env::var_os(FOLDER).map(PathBuf::from).expect("the campaign runs in its own namespaces")
}

/// The socket of the engine, below the folder of the campaign.
pub(crate) fn socket(folder: &Path) -> PathBuf {
    folder.join("engine.sock")
}

/// The control group of the engine's containers.
pub(crate) fn control_group(folder: &Path) -> String {
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Runs this program with the same arguments in namespaces of its own, and removes what is left of it.
pub(crate) fn rerun() -> ExitCode {
    if !is_root() {
        eprintln!("this campaign starts a Docker engine of its own, which only root can do");
        return ExitCode::from(2);
    }
    remove_leftovers();
    let prefix = format!("{PREFIX}{}-", id());
    let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(PARENT).unwrap();
    let temporary = folder.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let path = env::var("PATH").unwrap_or_default();
    let status = Command::new("setpriv")
        // A test runner may kill this process: then everything in the namespaces ends, too.
        .args(["--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child"])
        // The first process of a namespace has to wait for orphans.
        .args(["--mount-proc", "docker-init", "--", "sh", "-c", ENTER, "sh"])
        .arg(env::current_exe().unwrap())
        .args(env::args_os().skip(1))
        .env(FOLDER, folder.path())
        .env("TMPDIR", &temporary)
        .env("DOCKER_HOST", format!("unix://{}", socket(folder.path()).display()))
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .status()
        .expect("`setpriv` and `unshare` of util-linux can be started");
    remove_control_groups(&control_group(folder.path()));
    if let Err(error) = folder.close() {
        eprintln!("the folder of the campaign cannot be removed: {error}");
        return ExitCode::FAILURE;
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(1))
}

/// Removes what an earlier run left that was killed itself: the folders name their processes.
fn remove_leftovers() {
    for entry in fs::read_dir(PARENT).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            remove_control_groups(&name);
            // Another campaign may remove it at the same time.
            let _gone = fs::remove_dir_all(entry.path());
        }
    }
}

/// Removes the control groups of that name in every hierarchy.
fn remove_control_groups(name: &str) {
    let root = Path::new("/sys/fs/cgroup");
    let hierarchies = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let started = Instant::now();
    for group in hierarchies.chain([root.to_owned()]).map(|hierarchy| hierarchy.join(name)) {
        while let Err(error) = remove_groups_below(&group) {
            if started.elapsed() > CLEANUP {
                eprintln!("the control group {} cannot be removed: {error}", group.display());
                break;
            }
            sleep(Duration::from_millis(50));
        }
    }
}

/// Removes a control group behind those in it. One that does not exist is no error.
fn remove_groups_below(group: &Path) -> io::Result<()> {
    if !group.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(group)?.flatten() {
        if entry.file_type()?.is_dir() {
            remove_groups_below(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}
