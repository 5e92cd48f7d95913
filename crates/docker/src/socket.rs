//! Requests to the engine by its own socket.
//!
//! A request by the command line costs the start of a process, and users wait for some of them. So single
//! objects are inspected here, where the client itself would use this socket. Only a plain answer counts;
//! otherwise the command line is used, whose error messages are known. Lists of containers, events and logs
//! come from here where there is a socket: they are requested all the time.
//!
//! **Invariant:** requests by the socket only read: images, containers and their statistics, services, tasks, nodes,
//! events, output and the description of the engine. They change nothing on the engine.

mod connection;
mod logs;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use hyper::body::Bytes;
use launchway_domain::deployments::{ContainerId, Output};
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;
use url::form_urlencoded::byte_serialize;

pub(super) use self::connection::SocketError;
use self::{connection::Connection, logs::LogDecoder};
use crate::swarm::TaskId;

/// The timeout of the engine before the command line is used.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest response that is read.
const LONGEST: usize = 4 * 1024 * 1024;
/// The longest list that is read: about 40,000 containers.
const LONGEST_LIST: usize = 64 * 1024 * 1024;

/// The socket of an engine on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Socket(PathBuf);

/// A stream of events, one JSON object on each line.
#[derive(Debug)]
pub(super) struct EventStream {
    body: hyper::body::Incoming,
    /// The bytes of an incomplete line.
    begun: Vec<u8>,
    _connection: Connection,
}

/// A kind of objects that the managers of a Swarm know.
#[derive(Debug, Clone, Copy)]
pub(super) enum SwarmObjects {
    Services,
    Tasks,
    Nodes,
}

impl SwarmObjects {
    fn path(self) -> &'static str {
        match self {
            Self::Services => "services",
            Self::Tasks => "tasks",
            Self::Nodes => "nodes",
        }
    }
}

/// The container whose output is requested.
#[derive(Debug, Clone, Copy)]
pub(super) enum LogSource<'a> {
    /// A container of this engine.
    Container(&'a ContainerId),
    /// The container of a task, on any node of the Swarm.
    Task(&'a TaskId),
}

/// The requested part of a container's output.
#[derive(Debug, Clone, Copy)]
pub(super) enum LogRange {
    All,
    /// From a time on, in nanoseconds since 1970.
    Since(i64),
    /// The last lines, so many.
    Last(usize),
}

/// The result of a request.
type Answer<T> = Result<T, SocketError>;

impl Socket {
    /// Parses the docker client's host setting; `None` if it is no Unix socket.
    pub(super) fn named(host: &str) -> Option<Self> {
        let path = Path::new(host.trim().strip_prefix("unix://")?);
        path.is_absolute().then(|| Self(path.to_owned()))
    }

    /// Returns the record of an image. The reference is in the form that docker lists.
    pub(super) async fn image(&self, reference: &str) -> Option<Value> {
        self.inspect("images", reference).await
    }

    /// Returns the record of a container.
    pub(super) async fn container(&self, id: &str) -> Option<Value> {
        self.inspect("containers", id).await
    }

    async fn inspect(&self, kind: &str, name: &str) -> Option<Value> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
        // Rejects characters that would change the path.
        if name.contains("..") || !name.bytes().all(is_plain) {
            return None;
        }
        let asked = async {
            let body =
                Connection::open(&self.0).await?.read(&format!("/{kind}/{name}/json"), LONGEST).await?;
            serde_json::from_slice(&body).map_err(|_not_json| SocketError::Unreadable)
        };
        timeout(TIMEOUT, asked).await.ok()?.ok()
    }

    /// Returns the id of the engine; `None` if it does not respond.
    pub(super) async fn engine_id(&self) -> Option<String> {
        Some(self.info().await?.get("ID")?.as_str()?.to_owned())
    }

    /// Returns the description of the engine; `None` if it does not respond.
    pub(super) async fn info(&self) -> Option<Value> {
        let asked = async { Connection::open(&self.0).await?.read("/info", LONGEST).await };
        let body = timeout(TIMEOUT, asked).await.ok()?.ok()?;
        serde_json::from_slice(&body).ok()
    }

    /// Pings the engine. Fails with the reason if it does not answer within `limit`; an engine that answers
    /// with an error is available.
    pub(super) async fn ping(&self, limit: Duration) -> Result<(), String> {
        let asked = async { Connection::open(&self.0).await?.read("/_ping", LONGEST).await };
        match timeout(limit, asked).await {
            Ok(Err(SocketError::Unavailable(why))) => Err(why),
            Ok(_) => Ok(()),
            Err(_elapsed) => Err(format!("{}: no answer within {limit:?}", self.0.display())),
        }
    }

    /// Lists containers that pass all `filters`, whether they run or not, as JSON.
    pub(super) async fn containers(&self, filters: &impl Serialize, limit: Duration) -> Answer<Bytes> {
        let target = format!("/containers/json?all=1&filters={}", encoded(filters)?);
        let asked = async { Connection::open(&self.0).await?.read(&target, LONGEST_LIST).await };
        let late = |_elapsed| SocketError::Unavailable(format!("no list of containers within {limit:?}"));
        timeout(limit, asked).await.map_err(late)?
    }

    /// Returns one sample of the statistics of a container, as JSON.
    pub(super) async fn statistics(&self, container: &ContainerId) -> Answer<Bytes> {
        let target = format!("/containers/{}/stats?stream=false&one-shot=true", container.as_str());
        let asked = async { Connection::open(&self.0).await?.read(&target, LONGEST).await };
        let late = |_elapsed| SocketError::Unavailable(format!("no statistics within {TIMEOUT:?}"));
        timeout(TIMEOUT, asked).await.map_err(late)?
    }

    /// Lists the objects of a Swarm that pass all `filters`, as JSON. An engine that is no manager answers with
    /// [`SocketError::Status`].
    pub(super) async fn swarm_objects(
        &self,
        objects: SwarmObjects,
        filters: &impl Serialize,
        limit: Duration,
    ) -> Answer<Bytes> {
        let target = format!("/{}?filters={}", objects.path(), encoded(filters)?);
        let asked = async { Connection::open(&self.0).await?.read(&target, LONGEST_LIST).await };
        let late =
            |_elapsed| SocketError::Unavailable(format!("no list of {} within {limit:?}", objects.path()));
        timeout(limit, asked).await.map_err(late)?
    }

    /// Writes the output of a container to `output`, each line after its timestamp. With
    /// [`SocketError::Status`] nothing was written.
    pub(super) async fn logs(
        &self,
        source: LogSource<'_>,
        range: LogRange,
        output: Arc<dyn Output>,
        limit: Duration,
    ) -> Answer<()> {
        use http_body_util::BodyExt as _;
        let range = match range {
            LogRange::All => String::new(),
            LogRange::Since(nanoseconds) => format!("&since={}", seconds(nanoseconds)),
            LogRange::Last(lines) => format!("&tail={lines}"),
        };
        let source = match source {
            LogSource::Container(container) => format!("containers/{}", container.as_str()),
            LogSource::Task(task) => format!("tasks/{}", task.as_str()),
        };
        let target = format!("/{source}/logs?stdout=1&stderr=1&timestamps=1{range}");
        let read = async {
            let mut connection = Connection::open(&self.0).await?;
            let mut body = connection.get(&target).await?.into_body();
            let mut decoder = LogDecoder::new(output);
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|_cut_off| SocketError::Unreadable)?;
                decoder.push(frame.data_ref().map_or(&[], |data| data)).await?;
            }
            decoder.finish().await
        };
        let late = |_elapsed| SocketError::Unavailable(format!("no end of a log within {limit:?}"));
        timeout(limit, read).await.map_err(late)?
    }

    /// Opens the stream of events that pass all `filters`, from a time in nanoseconds since 1970 on. It
    /// lasts as long as the engine runs.
    pub(super) async fn events(&self, filters: &impl Serialize, since: i64) -> Answer<EventStream> {
        let target = format!("/events?since={}&filters={}", seconds(since), encoded(filters)?);
        let opened = async {
            let mut connection = Connection::open(&self.0).await?;
            let body = connection.get(&target).await?.into_body();
            Ok(EventStream { body, begun: Vec::new(), _connection: connection })
        };
        let late = |_elapsed| SocketError::Unavailable(format!("no events within {TIMEOUT:?}"));
        timeout(TIMEOUT, opened).await.map_err(late)?
    }
}

impl EventStream {
    /// Returns the next complete lines; `None` at the end of the stream.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        use http_body_util::BodyExt as _;
        loop {
            let piece = self.body.frame().await?.ok()?;
            let Ok(piece) = piece.into_data() else { continue };
            self.begun.extend_from_slice(&piece);
            if self.begun.len() > LONGEST {
                return None;
            }
            if let Some(end) = self.begun.iter().rposition(|byte| *byte == b'\n') {
                let rest = self.begun.split_off(end + 1);
                return Some(std::mem::replace(&mut self.begun, rest));
            }
        }
    }
}

/// Formats a time in nanoseconds since 1970 as the engine reads it.
fn seconds(nanoseconds: i64) -> String {
    format!("{}.{:09}", nanoseconds.div_euclid(1_000_000_000), nanoseconds.rem_euclid(1_000_000_000))
}

/// Encodes filters for the target of a request.
fn encoded(filters: &impl Serialize) -> Answer<String> {
    let filters = serde_json::to_vec(filters).map_err(|_not_json| SocketError::Unreadable)?;
    Ok(byte_serialize(&filters).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::UnixListener,
    };

    use super::*;

    /// Requests `name` from an engine that answers with `text`. Returns the result, and the request that
    /// the engine got.
    async fn asked(name: &str, text: &'static str) -> (Option<Value>, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("docker.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let engine = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let length = stream.read(&mut request).await.unwrap();
            stream.write_all(text.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        let answer = Socket(path).image(name).await;
        let request =
            if engine.is_finished() || answer.is_some() { engine.await.unwrap() } else { String::new() };
        (answer, request)
    }

    #[test]
    fn only_a_socket_of_this_machine_is_asked() {
        let socket = Socket(PathBuf::from("/run/docker.sock"));
        assert_eq!(Socket::named("unix:///run/docker.sock\n"), Some(socket));
        for elsewhere in ["", "tcp://10.0.0.1:2376", "ssh://engine", "npipe:////./pipe/docker", "unix://here"]
        {
            assert_eq!(Socket::named(elsewhere), None, "{elsewhere}");
        }
    }

    #[tokio::test]
    async fn a_plain_answer_is_taken() {
        let (answer, request) =
            asked("some/thing:1", "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n{\"Os\":\"a\"}\n").await;
        assert_eq!(answer, Some(json!({ "Os": "a" })));
        assert!(request.starts_with("GET /images/some/thing:1/json HTTP/1.1\r\n"), "{request}");
    }

    #[tokio::test]
    async fn every_other_answer_is_none() {
        for text in [
            "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.1 301 Moved\r\nLocation: /x\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nnot JSON.",
            "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}",
            "",
        ] {
            assert_eq!(asked("some/thing:1", text).await.0, None, "{text}");
        }
    }

    #[tokio::test]
    async fn requests_only_valid_names_and_needs_an_engine() {
        let socket = Socket(PathBuf::from("/nonexistent/docker.sock"));
        for name in ["a", "../containers/a", "a?b", "a b", "a\r\nb", "a%2fb"] {
            assert_eq!(socket.container(name).await, None);
        }
    }
}
