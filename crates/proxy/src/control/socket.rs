//! The location of the control socket.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io,
    os::{
        fd::AsRawFd as _,
        unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

use tokio::net::{UnixListener, UnixStream};

const SOCKET: &str = "control.sock";
const NEXT_SOCKET: &str = "control.sock.next";

/// The users who may enter the folder and connect to the socket. The socket looks at the user once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Owner,
    Group,
}

impl Access {
    /// The modes of the folder and of the socket.
    fn modes(self) -> (u32, u32) {
        match self {
            Self::Owner => (0o700, 0o600),
            Self::Group => (0o750, 0o660),
        }
    }
}

/// The proxy's folder, held open: a socket's address has at most 107 bytes, and the folder's own path may
/// be longer.
#[derive(Debug)]
pub(crate) struct Folder(File);

impl Folder {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    /// Opens the folder, and creates it if it does not exist.
    pub(crate) fn make(path: &Path, access: Access) -> io::Result<Self> {
        let (mode, _) = access.modes();
        DirBuilder::new().recursive(true).mode(mode).create(path)?;
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        Self::open(path)
    }

    /// The user whose folder it is.
    pub(crate) fn owner(&self) -> io::Result<u32> {
        Ok(self.0.metadata()?.uid())
    }

    pub(crate) async fn connect(&self) -> io::Result<UnixStream> {
        UnixStream::connect(self.place_of(SOCKET)).await
    }

    /// Binds a socket at a temporary name.
    pub(crate) fn prepare(&self, access: Access) -> io::Result<Prepared> {
        let place = self.place_of(NEXT_SOCKET);
        match fs::remove_file(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&place)?;
        let (_, mode) = access.modes();
        fs::set_permissions(&place, Permissions::from_mode(mode))?;
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
