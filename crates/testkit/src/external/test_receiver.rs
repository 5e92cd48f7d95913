//! An HTTP receiver of notifications that stores them, replies as configured, and can go down and come
//! back.

use std::{
    collections::HashMap,
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{
    Request,
    receiver::{Conversation, Seen},
};

/// The reply to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A status without a body.
    Status(u16),
    /// A status with header lines, each with its line end, and a body.
    Full(u16, String, String),
    /// No reply, for as long as the other side waits.
    Silence,
}

/// A received message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The number of the message, counted from 0.
    pub number: usize,
    /// The request.
    pub request: Request,
    /// The reply was a success. It is unknown whether the sender received it.
    pub is_taken: bool,
}

/// A receiver on 127.0.0.1. It keeps its port while it is down.
pub struct TestReceiver {
    /// The port.
    pub port: u16,
    inside: Arc<Inside>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

type Answering = Box<dyn Fn(usize, &Request) -> Reply + Send + Sync>;

struct Inside {
    is_open: AtomicBool,
    answer: Mutex<Arc<Answering>>,
    connections: AtomicUsize,
    arrivals: AtomicUsize,
    taken: AtomicUsize,
    /// Open connections, so that they can be closed.
    sockets: Mutex<HashMap<usize, TcpStream>>,
    kept: Mutex<Vec<Message>>,
}

impl TestReceiver {
    /// Creates a receiver that accepts every message.
    #[must_use]
    pub fn taking() -> Self {
        Self::answering(|_, _| Reply::Status(204))
    }

    /// Creates a receiver that replies to the n-th message, counted from 0, by `answer`.
    #[must_use]
    pub fn answering(answer: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let inside = Arc::new(Inside {
            is_open: AtomicBool::new(true),
            answer: Mutex::new(Arc::new(Box::new(answer))),
            connections: AtomicUsize::new(0),
            arrivals: AtomicUsize::new(0),
            taken: AtomicUsize::new(0),
            sockets: Mutex::default(),
            kept: Mutex::default(),
        });
        let accepting = Mutex::new(Some(accept(listener, Arc::clone(&inside))));
        Self { port, inside, accepting }
    }

    /// Returns the URL for messages.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    /// Changes the replies.
    pub fn answer_by(&self, answer: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static) {
        *self.inside.answer.lock().unwrap() = Arc::new(Box::new(answer));
    }

    /// Goes down: stops listening and closes all connections.
    ///
    /// # Panics
    ///
    /// If it is down already.
    pub fn die(&self) {
        let accepting = self.accepting.lock().unwrap().take().expect("it lives");
        self.inside.is_open.store(false, Ordering::SeqCst);
        // This connection wakes the accepting thread, which then checks the flag.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        accepting.join().unwrap();
        for (_, socket) in self.inside.sockets.lock().unwrap().drain() {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Comes back, at the same port.
    ///
    /// # Panics
    ///
    /// If another process has taken the port.
    pub fn come_back(&self) {
        let end = Instant::now() + Duration::from_secs(10);
        let listener = loop {
            match TcpListener::bind(("127.0.0.1", self.port)) {
                Ok(listener) => break listener,
                Err(error) => assert!(Instant::now() < end, "port {}: {error}", self.port),
            }
            thread::sleep(Duration::from_millis(10));
        };
        self.inside.is_open.store(true, Ordering::SeqCst);
        *self.accepting.lock().unwrap() = Some(accept(listener, Arc::clone(&self.inside)));
    }

    /// Returns the number of connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.inside.connections.load(Ordering::SeqCst)
    }

    /// Returns the messages so far, in the order of the replies.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        self.inside.kept.lock().unwrap().clone()
    }

    /// Returns the number of accepted messages so far.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.inside.taken.load(Ordering::SeqCst)
    }

    /// Waits for `count` messages and returns them.
    ///
    /// # Panics
    ///
    /// If they do not come.
    #[must_use]
    pub fn wait_for(&self, count: usize) -> Vec<Message> {
        let end = Instant::now() + Duration::from_secs(60);
        while self.inside.kept.lock().unwrap().len() < count {
            assert!(Instant::now() < end, "{count} messages did not come: {:#?}", self.messages());
            thread::sleep(Duration::from_millis(5));
        }
        self.messages()
    }
}

impl Drop for TestReceiver {
    fn drop(&mut self) {
        if self.accepting.lock().is_ok_and(|accepting| accepting.is_some()) {
            self.die();
        }
    }
}

fn accept(listener: TcpListener, inside: Arc<Inside>) -> JoinHandle<()> {
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            if !inside.is_open.load(Ordering::SeqCst) {
                return;
            }
            let number = inside.connections.fetch_add(1, Ordering::SeqCst);
            inside.sockets.lock().unwrap().insert(number, socket.try_clone().unwrap());
            let inside = Arc::clone(&inside);
            thread::spawn(move || {
                inside.talk(socket);
                inside.sockets.lock().unwrap().remove(&number);
            });
        }
    })
}

impl Inside {
    fn talk(&self, socket: TcpStream) {
        let mut conversation = Conversation::new(socket, None, Arc::new(Seen::default()));
        let Some(request) = conversation.read_request() else { return };
        let number = self.arrivals.fetch_add(1, Ordering::SeqCst);
        let answer = Arc::clone(&self.answer.lock().unwrap());
        let (status, headers, text) = match answer(number, &request) {
            Reply::Status(status) => (status, String::new(), String::new()),
            Reply::Full(status, headers, text) => (status, headers, text),
            Reply::Silence => {
                self.kept.lock().unwrap().push(Message { number, request, is_taken: false });
                return conversation.hang();
            }
        };
        let said = format!(
            "HTTP/1.1 {status} So\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n{text}",
            text.len()
        );
        // Stored before the reply is sent: a client that has the reply finds the message here.
        let is_taken = (200..300).contains(&status);
        self.kept.lock().unwrap().push(Message { number, request, is_taken });
        self.taken.fetch_add(usize::from(is_taken), Ordering::SeqCst);
        conversation.say(said);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;

    #[test]
    fn it_dies_and_comes_back_at_the_same_port() {
        let receiver =
            TestReceiver::answering(|number, _| Reply::Status(if number == 0 { 503 } else { 204 }));
        let client = Client::new(&format!("http://127.0.0.1:{}", receiver.port));
        assert_eq!(client.send("POST", "/hook", Some("one")).status, 503);
        receiver.die();
        assert!(client.try_send("POST", "/hook", Some("two")).is_err());
        receiver.come_back();
        assert_eq!(client.send("POST", "/hook", Some("three")).status, 204);
        let kept: Vec<_> =
            receiver.messages().into_iter().map(|message| (message.request.body, message.is_taken)).collect();
        assert_eq!(kept, [("one".to_owned(), false), ("three".to_owned(), true)]);
        assert_eq!((receiver.connections(), receiver.taken()), (2, 1));
    }

    #[test]
    fn who_is_met_with_silence_is_cut_off_when_it_dies() {
        let receiver = TestReceiver::answering(|_, _| Reply::Silence);
        let client = Client::new(&format!("http://127.0.0.1:{}", receiver.port));
        thread::scope(|scope| {
            let asked = scope.spawn(|| client.try_send("POST", "/hook", Some("one")).is_err());
            let _one = receiver.wait_for(1);
            receiver.die();
            assert!(asked.join().unwrap());
        });
    }
}
