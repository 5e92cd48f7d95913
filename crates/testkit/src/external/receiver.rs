//! A scripted TCP server on this machine that counts connections.

use std::{
    io::{BufRead as _, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A receiver on 127.0.0.1 and on ::1, at a port that is free on both. Its threads end with the
/// process of the test.
#[derive(Debug)]
pub struct Receiver {
    /// The port.
    pub port: u16,
    seen: Arc<Seen>,
}

#[derive(Debug, Default)]
pub(super) struct Seen {
    connections: AtomicUsize,
    requests: Mutex<Vec<Request>>,
}

/// An HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The first line.
    pub line: String,
    /// The headers, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Request {
    /// Returns the value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// One connection, from the side of the receiver.
pub struct Conversation {
    stream: BufReader<Box<dyn Duplex>>,
    socket: TcpStream,
    seen: Arc<Seen>,
}

trait Duplex: Read + Write + Send {}

impl<T: Read + Write + Send> Duplex for T {}

impl Receiver {
    /// Handles each connection by `talk`, in a thread of its own.
    #[must_use]
    pub fn talking(talk: impl Fn(&mut Conversation) + Send + Sync + 'static) -> Self {
        let (port, listeners) = listeners();
        Self::start(port, listeners, None, Arc::new(talk))
    }

    /// The same at one address.
    #[must_use]
    pub fn talking_at(
        address: &str,
        port: u16,
        talk: impl Fn(&mut Conversation) + Send + Sync + 'static,
    ) -> Self {
        Self::start(port, [TcpListener::bind((address, port)).unwrap()], None, Arc::new(talk))
    }

    /// The same with TLS.
    #[must_use]
    pub fn talking_in_secret(
        tls: Arc<ServerConfig>,
        talk: impl Fn(&mut Conversation) + Send + Sync + 'static,
    ) -> Self {
        let (port, listeners) = listeners();
        Self::start(port, listeners, Some(tls), Arc::new(talk))
    }

    /// Records each request and answers with `answer`, a complete HTTP response.
    #[must_use]
    pub fn answering(answer: impl Into<String>) -> Self {
        let answer = answer.into();
        Self::talking(move |conversation| {
            conversation.read_request();
            conversation.say(&answer);
        })
    }

    /// Returns the number of connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::SeqCst)
    }

    /// Returns the requests, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.seen.requests.lock().unwrap().clone()
    }

    fn start(
        port: u16,
        listeners: impl IntoIterator<Item = TcpListener>,
        tls: Option<Arc<ServerConfig>>,
        talk: Arc<dyn Fn(&mut Conversation) + Send + Sync>,
    ) -> Self {
        let seen = Arc::new(Seen::default());
        for listener in listeners {
            let (tls, talk, seen) = (tls.clone(), Arc::clone(&talk), Arc::clone(&seen));
            thread::spawn(move || {
                for socket in listener.incoming().flatten() {
                    seen.connections.fetch_add(1, Ordering::SeqCst);
                    let mut conversation = Conversation::new(socket, tls.clone(), Arc::clone(&seen));
                    let talk = Arc::clone(&talk);
                    thread::spawn(move || talk(&mut conversation));
                }
            });
        }
        Self { port, seen }
    }
}

fn listeners() -> (u16, [TcpListener; 2]) {
    for _ in 0..100 {
        let v4 = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = v4.local_addr().unwrap().port();
        if let Ok(v6) = TcpListener::bind(("::1", port)) {
            return (port, [v4, v6]);
        }
    }
    panic!("no port is free on both 127.0.0.1 and ::1");
}

impl Conversation {
    pub(super) fn new(socket: TcpStream, tls: Option<Arc<ServerConfig>>, seen: Arc<Seen>) -> Self {
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        socket.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
        socket.set_nodelay(true).unwrap();
        let own = socket.try_clone().unwrap();
        let stream: Box<dyn Duplex> = match tls {
            Some(tls) => Box::new(StreamOwned::new(ServerConnection::new(tls).unwrap(), own)),
            None => Box::new(own),
        };
        Self { stream: BufReader::new(stream), socket, seen }
    }

    /// Sends bytes. The other side may be gone, which is not an error here.
    pub fn say(&mut self, text: impl AsRef<[u8]>) -> bool {
        let stream = self.stream.get_mut();
        stream.write_all(text.as_ref()).and_then(|()| stream.flush()).is_ok()
    }

    /// Returns the next line, without its end; `None` if there is none.
    pub fn read_line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        let length = self.stream.read_until(b'\n', &mut line).ok()?;
        (length > 0).then(|| String::from_utf8_lossy(&line).trim_end().to_owned())
    }

    /// Reads and records a complete HTTP request.
    pub fn read_request(&mut self) -> Option<Request> {
        let line = self.read_line()?;
        let mut headers = Vec::new();
        loop {
            let header = self.read_line()?;
            if header.is_empty() {
                break;
            }
            let (name, value) = header.split_once(':')?;
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let mut request = Request { line, headers, body: String::new() };
        let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).ok()?;
        request.body = String::from_utf8_lossy(&body).into_owned();
        self.seen.requests.lock().unwrap().push(request.clone());
        Some(request)
    }

    /// Continues with TLS.
    pub fn encrypt(&mut self, tls: Arc<ServerConfig>) {
        let own = self.socket.try_clone().unwrap();
        self.stream = BufReader::new(Box::new(StreamOwned::new(ServerConnection::new(tls).unwrap(), own)));
    }

    /// Sends nothing until the other side disconnects, or the test ends.
    pub fn hang(&mut self) {
        while self.read_line().is_some() {}
    }

    /// Waits for data to arrive. Closing without reading it then resets the connection.
    pub fn wait_for_something(&mut self) {
        let _ = self.socket.peek(&mut [0]);
    }
}
