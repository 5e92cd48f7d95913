//! An engine on a Unix socket with configured responses.

use std::{
    collections::HashMap,
    io::{Read as _, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    sync::{Arc, Mutex},
    thread,
};

use tempfile::TempDir;

/// The response to a request.
#[derive(Clone)]
pub(crate) enum Reply {
    /// Answer with this JSON.
    Json(String),
    /// Send these lines, and keep the connection until it is [broken off](FakeEngine::break_off).
    Stream(String),
    /// Answer with this status, such as `500 Internal Server Error`.
    Status(&'static str),
    /// Never answer.
    Nothing,
}

pub(crate) struct FakeEngine {
    folder: TempDir,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    replies: HashMap<String, Reply>,
    requests: Vec<String>,
    open: Vec<UnixStream>,
}

impl FakeEngine {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("docker.sock")).unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = state.clone();
        // It ends with the process of the test.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, state) = (stream.unwrap(), shared.clone());
                thread::spawn(move || answer(stream, &state));
            }
        });
        Self { folder, state }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("docker.sock")
    }

    /// Sets the response to requests for this path.
    pub(crate) fn reply(&self, path: &str, reply: Reply) {
        self.state.lock().unwrap().replies.insert(path.to_owned(), reply);
    }

    /// Returns the paths of the requests since the last call, without their queries.
    pub(crate) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().requests)
    }

    /// Sends more lines on every open stream.
    pub(crate) fn send(&self, lines: &str) {
        for stream in &mut self.state.lock().unwrap().open {
            stream.write_all(chunk(lines).as_bytes()).unwrap();
        }
    }

    /// Ends every stream.
    pub(crate) fn break_off(&self) {
        for stream in self.state.lock().unwrap().open.drain(..) {
            stream.shutdown(std::net::Shutdown::Both).unwrap();
        }
    }
}

fn chunk(lines: &str) -> String {
    format!("{:x}\r\n{lines}\r\n", lines.len())
}

fn answer(mut stream: UnixStream, state: &Mutex<State>) {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(length) => request.extend_from_slice(&piece[..length]),
        }
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    let path = request.split(' ').nth(1).unwrap_or_default().split('?').next().unwrap_or_default().to_owned();
    let reply = {
        let mut state = state.lock().unwrap();
        state.requests.push(path.clone());
        state.replies.get(&path).cloned()
    };
    // Who asked may have gone away.
    let _gone = match reply {
        Some(Reply::Json(body)) => stream
            .write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).as_bytes()),
        Some(Reply::Stream(lines)) => {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let first = if lines.is_empty() { String::new() } else { chunk(&lines) };
            let sent = stream.write_all(format!("{head}{first}").as_bytes());
            state.lock().unwrap().open.push(stream);
            sent
        }
        Some(Reply::Status(status)) => {
            stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}").as_bytes())
        }
        Some(Reply::Nothing) => {
            state.lock().unwrap().open.push(stream);
            Ok(())
        }
        None => stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}"),
    };
}
