//! An unreliable connection to a server.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

/// Forwards connections to a server and cuts them somewhere in the responses.
pub(crate) struct Tunnel {
    url: String,
    cuts: Arc<Cuts>,
}

/// The number of remaining cuts, and their positions.
struct Cuts {
    left: AtomicUsize,
    done: AtomicUsize,
    seed: AtomicU64,
}

impl Tunnel {
    /// A tunnel to the server at `address`; it cuts nothing yet.
    pub(crate) fn to(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let cuts = Arc::new(Cuts { left: 0.into(), done: 0.into(), seed: 7.into() });
        let (address, of_thread) = (address.to_owned(), Arc::clone(&cuts));
        // It ends with the process of the test.
        thread::spawn(move || {
            for caller in listener.incoming() {
                let (caller, server) = (caller.unwrap(), TcpStream::connect(&address));
                let Ok(server) = server else { continue };
                let (cuts, of_answers) = (Arc::clone(&of_thread), Arc::clone(&of_thread));
                let allowance = Arc::new(AtomicU64::new(u64::MAX));
                let left = Arc::clone(&allowance);
                let (back, forth) = (caller.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || ask(caller, forth, &cuts, &allowance));
                thread::spawn(move || answer(server, back, &of_answers, &left));
            }
        });
        Self { url, cuts }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Cuts connections this many times, from now on.
    pub(crate) fn cut(&self, times: usize) {
        self.cuts.left.store(times, Ordering::SeqCst);
    }

    /// Returns the number of cuts.
    pub(crate) fn cuts(&self) -> usize {
        self.cuts.done.load(Ordering::SeqCst)
    }
}

impl Cuts {
    /// Returns the number of bytes of the next response that are forwarded: all, or a few, or more, so that
    /// cuts are in heads and in bodies. Every response gets through sooner or later.
    fn next(&self) -> u64 {
        let seed = self.seed.fetch_add(1, Ordering::SeqCst).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ (seed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20;
        let magnitude = 1 << ((mixed >> 1) % 13);
        if mixed.is_multiple_of(2) { u64::MAX } else { magnitude + (mixed >> 8) % magnitude }
    }

    fn take(&self) -> bool {
        let taken = self.left.try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if taken.is_ok() {
            self.done.fetch_add(1, Ordering::SeqCst);
        }
        taken.is_ok()
    }
}

/// Forwards requests; for each, a new position of the cut is chosen.
fn ask(mut from: TcpStream, mut to: TcpStream, cuts: &Cuts, allowance: &AtomicU64) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        allowance.store(cuts.next(), Ordering::SeqCst);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    end(&from, &to);
}

/// Forwards responses until they are cut.
fn answer(mut from: TcpStream, mut to: TcpStream, cuts: &Cuts, allowance: &AtomicU64) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let left = allowance.load(Ordering::SeqCst);
        let is_cut = left < count as u64 && cuts.take();
        let passed = if is_cut { usize::try_from(left).unwrap() } else { count };
        allowance.store(left.saturating_sub(count as u64), Ordering::SeqCst);
        if to.write_all(&buffer[..passed]).is_err() || is_cut {
            break;
        }
    }
    end(&from, &to);
}

fn end(from: &TcpStream, to: &TcpStream) {
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
