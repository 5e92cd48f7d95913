//! A connection to a server that counts what is sent, and can be cut.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

/// Forwards connections to a server.
pub(crate) struct Relay {
    url: String,
    shared: Arc<Shared>,
}

struct Shared {
    target: Mutex<String>,
    sent: AtomicU64,
    /// The number of bytes to the server after which a connection is cut.
    cut_at: AtomicU64,
    cuts: AtomicUsize,
    pause: Mutex<Duration>,
}

impl Relay {
    /// A relay to the server at `address`.
    pub(crate) fn to(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            target: Mutex::new(address.to_owned()),
            sent: 0.into(),
            cut_at: u64::MAX.into(),
            cuts: 0.into(),
            pause: Mutex::default(),
        });
        let of_thread = Arc::clone(&shared);
        // It ends with the process of the test.
        thread::spawn(move || {
            for client in listener.incoming() {
                let target = of_thread.target.lock().unwrap().clone();
                // A server that is down is a client's connection that is closed.
                let (client, Ok(server)) = (client.unwrap(), TcpStream::connect(target)) else { continue };
                let (back, forth) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let shared = Arc::clone(&of_thread);
                thread::spawn(move || shared.ask(client, forth));
                thread::spawn(move || answer(server, back));
            }
        });
        Self { url, shared }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Forwards to another address from now on.
    pub(crate) fn forward_to(&self, address: &str) {
        *self.shared.target.lock().unwrap() = address.to_owned();
    }

    /// Waits this long after each 16 KiB.
    pub(crate) fn slow_down(&self, pause: Duration) {
        *self.shared.pause.lock().unwrap() = pause;
    }

    /// Cuts the connection that sends the byte with this number, counted from now on.
    pub(crate) fn cut_after(&self, bytes: u64) {
        self.shared.cut_at.store(self.sent() + bytes, SeqCst);
    }

    /// Returns the number of cuts.
    pub(crate) fn cuts(&self) -> usize {
        self.shared.cuts.load(SeqCst)
    }

    /// Returns the number of bytes that clients have sent: heads and bodies of requests.
    pub(crate) fn sent(&self) -> u64 {
        self.shared.sent.load(SeqCst)
    }

    /// Waits until clients have sent this many bytes.
    #[track_caller]
    pub(crate) fn await_sent(&self, bytes: u64) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.sent() < bytes {
            assert!(Instant::now() < deadline, "{} of {bytes} bytes", self.sent());
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Shared {
    fn ask(&self, mut client: TcpStream, mut server: TcpStream) {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(count @ 1..) = client.read(&mut buffer) {
            let before = self.sent.fetch_add(count as u64, SeqCst);
            let is_cut = before + count as u64 > self.cut_at.load(SeqCst);
            if is_cut {
                self.cut_at.store(u64::MAX, SeqCst);
                self.cuts.fetch_add(1, SeqCst);
                break;
            }
            if server.write_all(&buffer[..count]).is_err() {
                break;
            }
            let pause = *self.pause.lock().unwrap();
            thread::sleep(pause);
        }
        for stream in [client, server] {
            // One that the other side closed is shut down already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

fn answer(mut server: TcpStream, mut client: TcpStream) {
    // A connection that is cut ends with an error, which is what it is for.
    let _ = std::io::copy(&mut server, &mut client);
    let _ = client.shutdown(Shutdown::Both);
}
