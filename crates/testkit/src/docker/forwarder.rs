//! A socket that forwards to the real engine, and can be closed and opened: an engine that goes down.

use std::{
    env, fs, io,
    net::Shutdown,
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use tempfile::TempDir;

/// Forwards the connections to a Unix socket to the engine of this machine while it is open.
pub struct EngineForwarder {
    path: PathBuf,
    shared: Arc<Shared>,
    accepting: Mutex<Option<JoinHandle<()>>>,
    _folder: TempDir,
}

#[derive(Default)]
struct Shared {
    is_open: AtomicBool,
    /// Both ends of every connection, so that they can be closed.
    streams: Mutex<Vec<UnixStream>>,
}

impl EngineForwarder {
    /// Creates a forwarder that is closed.
    #[must_use]
    pub fn closed() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine.sock");
        Self { path, shared: Arc::default(), accepting: Mutex::default(), _folder: folder }
    }

    /// Returns the value of `DOCKER_HOST` for the engine behind it.
    #[must_use]
    pub fn host(&self) -> String {
        format!("unix://{}", self.path.display())
    }

    /// Starts listening.
    ///
    /// # Panics
    ///
    /// If it is open.
    pub fn open(&self) {
        let mut accepting = self.accepting.lock().unwrap();
        assert!(accepting.is_none(), "the forwarder is open");
        let listener = UnixListener::bind(&self.path).unwrap();
        self.shared.is_open.store(true, Ordering::SeqCst);
        let shared = Arc::clone(&self.shared);
        *accepting = Some(thread::spawn(move || shared.accept(&listener)));
    }

    /// Stops listening, and closes every connection. Does nothing if it is closed.
    ///
    /// # Panics
    ///
    /// If its thread has panicked.
    pub fn close(&self) {
        let Some(accepting) = self.accepting.lock().unwrap().take() else { return };
        self.shared.is_open.store(false, Ordering::SeqCst);
        // The thread waits for a connection: this one ends it.
        drop(UnixStream::connect(&self.path));
        fs::remove_file(&self.path).unwrap();
        accepting.join().unwrap();
        for stream in self.shared.streams.lock().unwrap().drain(..) {
            // One that has ended is shut down already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for EngineForwarder {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn accept(&self, listener: &UnixListener) {
        for client in listener.incoming() {
            if !self.is_open.load(Ordering::SeqCst) {
                return;
            }
            let client = client.unwrap();
            let engine = UnixStream::connect(engine_socket()).expect("this test needs the Docker engine");
            let ends = [client.try_clone().unwrap(), engine.try_clone().unwrap()];
            self.streams.lock().unwrap().extend(ends);
            for (mut from, mut to) in
                [(client.try_clone().unwrap(), engine.try_clone().unwrap()), (engine, client)]
            {
                thread::spawn(move || {
                    // A connection that is cut off ends with an error, which is what it is for.
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Write);
                });
            }
        }
    }
}

/// The socket of the engine that tests use.
fn engine_socket() -> PathBuf {
    let host = env::var("DOCKER_HOST").ok();
    let path = host.as_deref().and_then(|host| host.strip_prefix("unix://"));
    PathBuf::from(path.unwrap_or("/var/run/docker.sock"))
}
