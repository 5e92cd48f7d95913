//! A small web server that serves repositories by git's own CGI program.

use std::{
    io::{BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use data_encoding::BASE64;

/// The behaviour of the server.
#[derive(Debug, Clone)]
pub enum Manner {
    /// It serves everyone.
    Open,
    /// It requires a name and a password, `name:password`.
    Locked(String),
    /// It redirects every request to another base URL.
    Elsewhere(String),
    /// It accepts a request and never answers.
    Silent,
    /// It lists its branches and never sends a commit.
    SilentAboutCommits,
    /// It answers everything with an error that repeats the request.
    Parrot,
}

/// A server on a port of its own. Its threads end with the process of the test.
pub struct Web {
    /// The port.
    pub port: u16,
    address: String,
    state: Arc<State>,
}

struct State {
    manner: Manner,
    folder: PathBuf,
    backend: String,
    requests: AtomicU64,
    sent: AtomicU64,
    is_closed: Mutex<bool>,
    opened: Condvar,
    has_seen_credentials: AtomicBool,
}

impl Web {
    /// Serves every repository in `folder`.
    #[must_use]
    pub fn serve(folder: &Path, manner: Manner) -> Self {
        Self::serve_at("127.0.0.1", folder, manner)
    }

    /// The same at another address of this machine.
    ///
    /// # Panics
    ///
    /// If this machine does not have that address.
    #[must_use]
    pub fn serve_at(address: &str, folder: &Path, manner: Manner) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let output = Command::new("git").arg("--exec-path").output().unwrap();
        let backend = format!("{}/git-http-backend", String::from_utf8(output.stdout).unwrap().trim());
        let state = Arc::new(State {
            manner,
            folder: folder.to_owned(),
            backend,
            requests: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            is_closed: Mutex::new(false),
            opened: Condvar::new(),
            has_seen_credentials: AtomicBool::new(false),
        });
        let shared = state.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let state = shared.clone();
                // A client that disconnects early is no failure of the test.
                std::thread::spawn(move || drop(state.answer(connection)));
            }
        });
        Self { port, address: address.to_owned(), state }
    }

    /// Returns the URL of a repository.
    #[must_use]
    pub fn url(&self, name: &str) -> String {
        format!("http://{}:{}/{name}", self.address, self.port)
    }

    /// Returns the URL of a repository with credentials, `name:password`.
    #[must_use]
    pub fn url_for(&self, credentials: &str, name: &str) -> String {
        format!("http://{credentials}@{}:{}/{name}", self.address, self.port)
    }

    /// Returns the number of requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.state.requests.load(Ordering::SeqCst)
    }

    /// Returns the number of bytes sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.state.sent.load(Ordering::SeqCst)
    }

    /// Returns whether any request had credentials.
    #[must_use]
    pub fn has_seen_credentials(&self) -> bool {
        self.state.has_seen_credentials.load(Ordering::SeqCst)
    }

    /// Blocks every new request until the gate is opened.
    pub fn close_gate(&self) {
        *self.state.is_closed.lock().unwrap() = true;
    }

    /// Continues the blocked requests.
    pub fn open_gate(&self) {
        *self.state.is_closed.lock().unwrap() = false;
        self.state.opened.notify_all();
    }
}

struct Request {
    method: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

impl State {
    fn answer(&self, mut connection: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(connection.try_clone()?);
        let request = read(&mut reader, &mut connection)?;
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.has_seen_credentials.fetch_or(request.header("authorization").is_some(), Ordering::SeqCst);
        let mut is_closed = self.is_closed.lock().unwrap();
        while *is_closed {
            is_closed = self.opened.wait(is_closed).unwrap();
        }
        drop(is_closed);
        let answer = match &self.manner {
            Manner::Open => self.serve(&request)?,
            Manner::Locked(pair) => {
                let wanted = format!("Basic {}", BASE64.encode(pair.as_bytes()));
                if request.header("authorization") == Some(wanted.as_str()) {
                    self.serve(&request)?
                } else {
                    b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"git\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec()
                }
            }
            Manner::Elsewhere(to) => format!(
                "HTTP/1.1 302 Found\r\nLocation: {to}{}?{}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                request.path, request.query
            )
            .into_bytes(),
            Manner::SilentAboutCommits if request.method == "GET" => self.serve(&request)?,
            Manner::SilentAboutCommits if !is_want(&request) => self.serve(&request)?,
            Manner::Silent | Manner::SilentAboutCommits => {
                // Until the client gives up.
                return reader.read_to_end(&mut Vec::new()).map(drop);
            }
            Manner::Parrot => {
                let said = request.header("authorization").unwrap_or("nothing").to_owned();
                let body = format!("001e# service=git-upload-pack\n0000{:04x}ERR {said}", said.len() + 8);
                format!("HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).into_bytes()
            }
        };
        self.sent.fetch_add(answer.len() as u64, Ordering::SeqCst);
        connection.write_all(&answer)
    }

    /// Returns the response of git's CGI program.
    fn serve(&self, request: &Request) -> std::io::Result<Vec<u8>> {
        let header = |name: &str| request.header(name).unwrap_or_default().to_owned();
        let mut child = Command::new(&self.backend)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_PROJECT_ROOT", &self.folder)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("REQUEST_METHOD", &request.method)
            .env("PATH_INFO", &request.path)
            .env("QUERY_STRING", &request.query)
            .env("CONTENT_TYPE", header("content-type"))
            .env("CONTENT_LENGTH", request.body.len().to_string())
            .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
            .env("HTTP_GIT_PROTOCOL", header("git-protocol"))
            .env("REMOTE_ADDR", "127.0.0.1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        child.stdin.take().unwrap().write_all(&request.body)?;
        let output = child.wait_with_output()?.stdout;
        let end = output.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&output[..end]).into_owned();
        let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
        let body = &output[end + 4..];
        let start = format!(
            "HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        Ok([start.as_bytes(), body].concat())
    }
}

/// Returns whether a commit is requested, and not the list of branches.
fn is_want(request: &Request) -> bool {
    // Larger requests are compressed; they only ever want commits.
    request.header("content-encoding").is_some()
        || request.body.windows(13).any(|bytes| bytes == b"command=fetch")
}

fn read(reader: &mut impl std::io::BufRead, connection: &mut TcpStream) -> std::io::Result<Request> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (method, path, query) = (method.to_owned(), path.to_owned(), query.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request { method, path, query, headers, body: Vec::new() };
    if request.header("expect").is_some() {
        connection.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    if let Some(length) = request.header("content-length").and_then(|length| length.parse().ok()) {
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        request.body = body;
    }
    Ok(request)
}
