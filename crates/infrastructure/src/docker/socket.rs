//! Questions to the engine by its own socket.
//!
//! By the command line a question costs the start of a process, and people wait for some of them. So
//! what one thing is like is asked here, where the client itself would ask this socket. Only a plain
//! answer counts; whatever else happens, the command line is asked, whose complaints are known.

use std::{
    path::{Path, PathBuf},
    pin::pin,
    time::Duration,
};

use http_body_util::{BodyExt as _, Limited};
use hyper::{Request, StatusCode, client::conn::http1, header::HOST};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::UnixStream, time::timeout};

/// How long the engine may take before the command line is asked.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest answer that is read.
const LONGEST: usize = 4 * 1024 * 1024;

/// The socket of an engine on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Socket(PathBuf);

impl Socket {
    /// The socket at which the client of docker says that the engine is; `None` if it is elsewhere.
    pub(super) fn named(host: &str) -> Option<Self> {
        let path = Path::new(host.trim().strip_prefix("unix://")?);
        path.is_absolute().then(|| Self(path.to_owned()))
    }

    /// What an image is like. The reference is one that docker lists.
    pub(super) async fn image(&self, reference: &str) -> Option<Value> {
        self.get("images", reference).await
    }

    /// How a container is.
    pub(super) async fn container(&self, id: &str) -> Option<Value> {
        self.get("containers", id).await
    }

    async fn get(&self, kind: &str, name: &str) -> Option<Value> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
        // Nothing that would be another path.
        if name.contains("..") || !name.bytes().all(is_plain) {
            return None;
        }
        timeout(PATIENCE, ask(&self.0, &format!("/{kind}/{name}/json"))).await.ok()?
    }
}

async fn ask(socket: &Path, path: &str) -> Option<Value> {
    let stream = UnixStream::connect(socket).await.ok()?;
    let request = Request::get(path).header(HOST, "docker").body(String::new()).ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    let answer = async {
        let answer = sender.send_request(request).await.ok()?;
        if answer.status() != StatusCode::OK {
            return None;
        }
        let body = Limited::new(answer.into_body(), LONGEST).collect().await.ok()?;
        serde_json::from_slice(&body.to_bytes()).ok()
    };
    let mut answer = pin!(answer);
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        // The answer may have come together with the end of the connection.
        _closed = connection => answer.await,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::UnixListener,
    };

    use super::*;

    /// What a question for `name` comes to when the engine answers with `text`, and what it was asked.
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
    async fn nothing_but_a_name_is_asked_for_and_without_an_engine_there_is_no_answer() {
        let socket = Socket(PathBuf::from("/nonexistent/docker.sock"));
        for name in ["a", "../containers/a", "a?b", "a b", "a\r\nb", "a%2fb"] {
            assert_eq!(socket.container(name).await, None);
        }
    }
}
