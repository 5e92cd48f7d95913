//! A way to a server that breaks again and again.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

/// Leads connections to a server and cuts them somewhere in what it answers.
pub(crate) struct Tunnel {
    url: String,
    cuts: Arc<Cuts>,
}

/// How often is still to be cut, and where.
struct Cuts {
    left: AtomicUsize,
    done: AtomicUsize,
    seed: AtomicU64,
}

impl Tunnel {
    /// To the server at `address`; nothing is cut yet.
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
                let cuts = Arc::clone(&of_thread);
                let (back, forth) = (caller.try_clone().unwrap(), server.try_clone().unwrap());
                thread::spawn(move || carry(caller, forth, None));
                thread::spawn(move || carry(server, back, Some(&cuts)));
            }
        });
        Self { url, cuts }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Cuts connections so often, from now on.
    pub(crate) fn cut(&self, times: usize) {
        self.cuts.left.store(times, Ordering::SeqCst);
    }

    /// How often it was cut.
    pub(crate) fn cuts(&self) -> usize {
        self.cuts.done.load(Ordering::SeqCst)
    }
}

impl Cuts {
    /// How many bytes are let through: a few or many, so that cuts are in heads and in bodies.
    fn next(&self) -> u64 {
        let seed = self.seed.fetch_add(1, Ordering::SeqCst).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (seed ^ (seed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20;
        let magnitude = 1 << (mixed % 17);
        magnitude + (mixed >> 8) % magnitude
    }

    fn take(&self) -> bool {
        let taken = self.left.try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        if taken.is_ok() {
            self.done.fetch_add(1, Ordering::SeqCst);
        }
        taken.is_ok()
    }
}

/// Carries bytes until one side ends, or until it is cut.
fn carry(mut from: TcpStream, mut to: TcpStream, cuts: Option<&Cuts>) {
    let mut allowance = cuts.map_or(u64::MAX, Cuts::next);
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let passed = usize::try_from(allowance).unwrap_or(usize::MAX).min(count);
        if to.write_all(&buffer[..passed]).is_err() {
            break;
        }
        allowance -= passed as u64;
        if passed < count {
            if cuts.is_some_and(Cuts::take) {
                break;
            }
            allowance = cuts.map_or(u64::MAX, Cuts::next);
            if to.write_all(&buffer[passed..count]).is_err() {
                break;
            }
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
