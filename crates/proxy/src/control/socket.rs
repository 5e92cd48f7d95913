//! The location of the control socket.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io,
    os::{
        fd::AsRawFd as _,
        unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use tokio::net::{UnixListener, UnixStream};

const SOCKET: &str = "control.sock";
const NEXT_SOCKET: &str = "control.sock.next";

/// The proxy's folder, held open: a socket's address has at most 107 bytes, and the folder's own path may
/// be longer.
#[derive(Debug)]
pub(crate) struct Folder(File);

impl Folder {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    /// Opens the folder, and creates it for its owner only if it does not exist.
    pub(crate) fn make(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        fs::set_permissions(path, Permissions::from_mode(0o700))?;
        Self::open(path)
    }

    pub(crate) async fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect(self.place_of(SOCKET)).await
    }

    /// Binds a socket at a temporary name.
    pub(crate) fn prepare(&self) -> io::Result<Prepared> {
        let place = self.place_of(NEXT_SOCKET);
        match fs::remove_file(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&place)?;
        fs::set_permissions(&place, Permissions::from_mode(0o600))?;
        Ok(Prepared(listener))
    }

    /// Renames the socket to its well-known name, atomically.
    pub(crate) fn publish(&self, prepared: Prepared) -> io::Result<UnixListener> {
        fs::rename(self.place_of(NEXT_SOCKET), self.place_of(SOCKET))?;
        Ok(prepared.0)
    }

    fn place_of(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.0.as_raw_fd()))
    }
}

/// A listening socket at a temporary name.
#[derive(Debug)]
pub(crate) struct Prepared(UnixListener);
