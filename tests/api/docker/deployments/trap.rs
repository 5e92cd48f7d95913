//! Wrappers of docker and git that kill the server at a chosen time.

use std::{env, fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use tempfile::TempDir;

/// Runs the real program. When the trap is set for this call, it kills the server once, like a power cut:
/// before the call, a while after its beginning, or after it.
const SCRIPT: &str = r#"#!/bin/sh
strike() {
    mv TRAP/set TRAP/sprung 2>/dev/null && kill -9 "$(cat TRAP/server)"
}
moment=
if [ -f TRAP/set ]; then
    { read -r wanted; read -r program; read -r pattern; } < TRAP/set
    if [ "$program" = NAME ]; then
        case "$*" in $pattern) moment=$wanted ;; esac
    fi
fi
case "$moment" in
before) strike; exit 1 ;;
during) { sleep 0.7; strike; } >/dev/null 2>&1 & exec REAL "$@" ;;
after) REAL "$@"; code=$?; strike; exit $code ;;
*) exec REAL "$@" ;;
esac
"#;

/// The time at which the server is killed, relative to a call of a program.
#[derive(Clone, Copy)]
pub(crate) enum Moment {
    Before,
    During,
    After,
}

/// A folder with the programs.
pub(crate) struct Trap {
    folder: TempDir,
}

impl Trap {
    /// Creates one that is not set.
    pub(crate) fn new() -> Self {
        let trap = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["docker", "git"] {
            let script = SCRIPT
                .replace("TRAP", &trap.folder.path().display().to_string())
                .replace("NAME", name)
                .replace("REAL", &real(name).display().to_string());
            let path = trap.folder.path().join(name);
            fs::write(&path, script).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        trap
    }

    /// Returns the `PATH` by which the server finds these programs first.
    pub(crate) fn path(&self) -> String {
        format!("{}:{}", self.folder.path().display(), env::var("PATH").unwrap())
    }

    /// Sets it for the first call of `program` whose arguments match the shell's `pattern`.
    pub(crate) fn set(&self, server: u32, moment: Moment, program: &str, pattern: &str) {
        let moment = match moment {
            Moment::Before => "before",
            Moment::During => "during",
            Moment::After => "after",
        };
        fs::write(self.folder.path().join("server"), server.to_string()).unwrap();
        let (draft, set) = (self.folder.path().join("draft"), self.folder.path().join("set"));
        fs::write(&draft, format!("{moment}\n{program}\n{pattern}\n")).unwrap();
        fs::rename(draft, set).unwrap();
    }

    /// Returns whether it has killed the server.
    pub(crate) fn is_sprung(&self) -> bool {
        self.folder.path().join("sprung").exists()
    }
}

fn real(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap();
    env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.exists()).unwrap()
}
