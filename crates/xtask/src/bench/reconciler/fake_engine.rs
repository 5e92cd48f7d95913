//! A Docker engine on a unix socket whose containers exist only in its responses.

use std::{
    io::{self, Read as _, Write as _},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result};

use crate::bench::reconciler::containers::Fleet;

/// The pause between two events; the server debounces events that follow each other closely.
const BETWEEN_EVENTS: Duration = Duration::from_millis(200);
/// The text before the id of the installation in the filters of a list.
const INSTANCE_FILTER: &str = "launchway.instance%3D";
const LENGTH_OF_AN_ID: usize = 36;

/// An engine that listens until the process ends.
pub(crate) struct FakeEngine {
    socket: PathBuf,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    contents: Mutex<Contents>,
    /// The connections that read events.
    listeners: Mutex<Vec<UnixStream>>,
    lists: AtomicU64,
    log_reads: AtomicU64,
    sends_events: AtomicBool,
    holds_logs: AtomicBool,
}

#[derive(Default)]
struct Contents {
    fleet: Option<Fleet>,
    /// The installation that asked last, and the list for it.
    instance: String,
    list: Arc<str>,
}

impl FakeEngine {
    /// Listens on a socket in `folder`, without any containers.
    pub(crate) fn listen(folder: &Path) -> Result<Self> {
        let socket = folder.join("docker.sock");
        let listener =
            UnixListener::bind(&socket).with_context(|| format!("cannot listen on {}", socket.display()))?;
        let state = Arc::new(State::default());
        let (for_requests, for_events) = (Arc::clone(&state), Arc::clone(&state));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&for_requests);
                thread::spawn(move || {
                    // The server may close a connection at any time.
                    let _closed = state.answer(stream);
                });
            }
        });
        thread::spawn(move || {
            for number in 1.. {
                thread::sleep(BETWEEN_EVENTS);
                for_events.send_event(number);
            }
        });
        Ok(Self { socket, state })
    }

    /// The value of `DOCKER_HOST` for this engine.
    pub(crate) fn host(&self) -> String {
        format!("unix://{}", self.socket.display())
    }

    /// Replaces all containers.
    pub(crate) fn set_fleet(&self, fleet: Fleet) {
        *self.state.contents() = Contents { fleet: Some(fleet), ..Contents::default() };
    }

    /// Starts or stops a steady stream of events about containers of the installation.
    pub(crate) fn send_events(&self, is_on: bool) {
        self.state.sends_events.store(is_on, Ordering::Relaxed);
    }

    /// Leaves requests for logs unanswered, or answers them.
    pub(crate) fn hold_logs(&self, is_on: bool) {
        self.state.holds_logs.store(is_on, Ordering::Relaxed);
    }

    /// The number of lists of containers that were requested so far.
    pub(crate) fn lists(&self) -> u64 {
        self.state.lists.load(Ordering::Relaxed)
    }

    /// The number of requests for the logs of a container so far.
    pub(crate) fn log_reads(&self) -> u64 {
        self.state.log_reads.load(Ordering::Relaxed)
    }
}

impl State {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, mut stream: UnixStream) -> io::Result<()> {
        let Some(target) = read_target(&mut stream)? else { return Ok(()) };
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let container = path.strip_prefix("/containers/");
        match (path, container.and_then(|rest| rest.split_once('/'))) {
            ("/_ping", _) => reply(&mut stream, "200 OK", "OK"),
            ("/containers/json", _) => {
                self.lists.fetch_add(1, Ordering::Relaxed);
                reply(&mut stream, "200 OK", &self.list(query))
            }
            ("/events", _) => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
                Ok(())
            }
            ("/networks" | "/images/json", _) => reply(&mut stream, "200 OK", "[]"),
            (_, Some((id, "json"))) => match self.inspect(id) {
                Some(record) => reply(&mut stream, "200 OK", &record),
                None => reply(&mut stream, "404 Not Found", "{}"),
            },
            (_, Some((_, "logs"))) => {
                self.log_reads.fetch_add(1, Ordering::Relaxed);
                while self.holds_logs.load(Ordering::Relaxed) {
                    thread::sleep(BETWEEN_EVENTS);
                }
                reply(&mut stream, "200 OK", "")
            }
            _ => reply(&mut stream, "404 Not Found", "{}"),
        }
    }

    fn list(&self, query: &str) -> Arc<str> {
        let instance = query.split_once(INSTANCE_FILTER).and_then(|(_, rest)| rest.get(..LENGTH_OF_AN_ID));
        let mut contents = self.contents();
        let (Some(fleet), Some(instance)) = (&contents.fleet, instance) else { return "[]".into() };
        if contents.instance != instance {
            let list = fleet.list(instance).into();
            (contents.instance, contents.list) = (instance.to_owned(), list);
        }
        Arc::clone(&contents.list)
    }

    fn inspect(&self, id: &str) -> Option<String> {
        let contents = self.contents();
        contents.fleet.as_ref()?.inspect(&contents.instance, id)
    }

    fn send_event(&self, number: u32) {
        if !self.sends_events.load(Ordering::Relaxed) {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let event = {
            let contents = self.contents();
            let Some(fleet) = &contents.fleet else { return };
            fleet.event(&contents.instance, number % fleet.size + 1, now)
        };
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain_mut(|stream| stream.write_all(chunk.as_bytes()).is_ok());
    }
}

/// Reads the head of a request; returns its target, or `None` if the connection ended first.
fn read_target(stream: &mut UnixStream) -> io::Result<Option<String>> {
    let (mut head, mut piece) = (Vec::new(), [0; 4096]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut piece)? {
            0 => return Ok(None),
            length => head.extend_from_slice(&piece[..length]),
        }
    }
    Ok(String::from_utf8_lossy(&head).split(' ').nth(1).map(str::to_owned))
}

fn reply(stream: &mut UnixStream, status: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )?;
    stream.write_all(body.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::{
        env,
        io::{BufRead as _, BufReader},
    };

    use super::*;
    use crate::{bench::reconciler::containers::ContainerState, scratch::Scratch};

    const INSTANCE: &str = "01900000-0000-7000-8000-000000000000";

    fn ask(engine: &FakeEngine, target: &str) -> UnixStream {
        let mut stream = UnixStream::connect(&engine.socket).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        write!(stream, "GET {target} HTTP/1.1\r\nHost: docker\r\n\r\n").unwrap();
        stream
    }

    fn answer(engine: &FakeEngine, target: &str) -> String {
        let mut text = String::new();
        ask(engine, target).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn answers_with_the_containers_of_its_fleet() {
        let scratch = Scratch::create(&env::temp_dir(), "engine", &[]).unwrap();
        let engine = FakeEngine::listen(scratch.path()).unwrap();
        let list = format!("/containers/json?all=1&filters=%22launchway.instance%3D{INSTANCE}%22");
        assert!(answer(&engine, &list).ends_with("\r\n\r\n[]"));
        let organization = "o".to_owned();
        engine.set_fleet(Fleet { organization, size: 2, state: ContainerState::Running, port: 80 });
        let listed = answer(&engine, &list);
        assert!(listed.contains(&format!(r#""launchway.instance":"{INSTANCE}""#)), "{listed}");
        assert_eq!(engine.lists(), 2);
        assert!(answer(&engine, &format!("/containers/{:064x}/json", 2)).starts_with("HTTP/1.1 200 OK"));
        assert!(answer(&engine, &format!("/containers/{:064x}/json", 3)).starts_with("HTTP/1.1 404"));
    }

    #[test]
    fn sends_events_while_enabled() {
        let scratch = Scratch::create(&env::temp_dir(), "engine", &[]).unwrap();
        let engine = FakeEngine::listen(scratch.path()).unwrap();
        let organization = "o".to_owned();
        engine.set_fleet(Fleet { organization, size: 2, state: ContainerState::Running, port: 80 });
        let events = BufReader::new(ask(&engine, "/events?since=0"));
        engine.send_events(true);
        let event = events.lines().map_while(Result::ok).find(|line| line.contains("timeNano"));
        assert!(event.is_some_and(|event| event.contains(r#""Action":"start""#)));
    }
}
