//! A registry without images.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// An HTTP server on the loopback that gives the same response to every request and counts them.
pub struct FakeRegistry {
    /// The port that it listens on.
    pub port: u16,
    requests: Arc<AtomicUsize>,
}

impl FakeRegistry {
    /// Starts one that gives this response.
    ///
    /// # Panics
    ///
    /// If it cannot listen.
    #[must_use]
    pub fn answering(answer: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = requests.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                counter.fetch_add(1, Ordering::SeqCst);
                let _request = stream.read(&mut [0; 4096]);
                let _gone = stream.write_all(answer.as_bytes());
            }
        });
        Self { port, requests }
    }

    /// Starts one that has no image.
    #[must_use]
    pub fn empty() -> Self {
        let body = r#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}"#;
        Self::answering(registry_response("404 Not Found", "Content-Type: application/json\r\n", body))
    }

    /// Returns the number of requests so far.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// Returns the name of an image in it.
    #[must_use]
    pub fn image(&self) -> String {
        format!("127.0.0.1:{}/team/web:1", self.port)
    }
}

/// Returns the response of a registry.
#[must_use]
pub fn registry_response(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nDocker-Distribution-Api-Version: registry/2.0\r\n{headers}Content-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}
