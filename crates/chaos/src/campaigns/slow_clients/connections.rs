//! Many slow connections, each replaced as soon as the server closes it.

use std::{
    io::{ErrorKind, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{JoinHandle, sleep, spawn},
    time::{Duration, Instant},
};

/// The interval at which each connection sends its next byte.
const ROUND: Duration = Duration::from_secs(1);
/// The number of parts of an interval, so that bytes do not arrive all at once.
const PARTS: usize = 50;

/// The behaviour of a slow connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// It sends its head byte by byte.
    Head,
    /// It sends its body byte by byte.
    Body,
    /// It sends nothing at all.
    Idle,
}

impl Pace {
    pub(crate) const ALL: [Self; 3] = [Self::Head, Self::Body, Self::Idle];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Head => "heads byte by byte",
            Self::Body => "bodies byte by byte",
            Self::Idle => "nothing",
        }
    }
}

/// The head that each sends: a login, because that needs no token.
const HEAD: &[u8] = b"POST /api/v1/auth/login HTTP/1.1\r\nhost: localhost\r\ncontent-length: 900\r\n\r\n";

/// Connections of every pace.
pub(crate) struct SlowConnections {
    is_over: Arc<AtomicBool>,
    caring: JoinHandle<Stays>,
}

/// The lifetimes of connections.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stays {
    pub(crate) opened: usize,
    /// Connections that were refused.
    pub(crate) refused: usize,
    /// The lifetime of each connection that the server closed.
    ended: Vec<(Pace, Duration)>,
    /// Connections that were still open after the longest wait.
    left: Vec<Pace>,
}

impl Stays {
    pub(crate) fn ended(&self) -> usize {
        self.ended.len()
    }

    pub(crate) fn longest(&self, pace: Pace) -> Duration {
        let of_pace = self.ended.iter().filter(|(own, _)| *own == pace);
        of_pace.map(|(_, stay)| *stay).max().unwrap_or_default()
    }

    pub(crate) fn left(&self, pace: Pace) -> usize {
        self.left.iter().filter(|own| **own == pace).count()
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.opened += other.opened;
        self.refused += other.refused;
        self.ended.extend(other.ended);
        self.left.extend(other.left);
    }
}

struct Slow {
    pace: Pace,
    stream: TcpStream,
    opened: Instant,
    sent: usize,
}

impl SlowConnections {
    /// Opens `count` connections of each of these paces, over one interval. At the end, each may last
    /// `timeout` from its start.
    pub(crate) fn open(address: SocketAddr, paces: &'static [Pace], count: usize, timeout: Duration) -> Self {
        let is_over = Arc::new(AtomicBool::default());
        let end = Arc::clone(&is_over);
        let caring = spawn(move || {
            let mut stays = Stays::default();
            let paces = paces.iter().flat_map(|pace| vec![*pace; count]);
            let mut places: Vec<(Pace, Option<Slow>)> = paces.map(|pace| (pace, None)).collect();
            let part = places.len().div_ceil(PARTS);
            loop {
                let is_over = end.load(Ordering::Relaxed);
                for part in places.chunks_mut(part) {
                    for (pace, place) in part {
                        look_after(*pace, place, address, is_over, &mut stays);
                    }
                    sleep(ROUND / u32::try_from(PARTS).unwrap_or(1));
                }
                let mut open = places.iter().filter_map(|(_, place)| place.as_ref());
                if is_over && !open.any(|slow| slow.opened.elapsed() < timeout) {
                    break;
                }
            }
            stays.left.extend(places.iter().filter(|(_, place)| place.is_some()).map(|(pace, _)| *pace));
            stays
        });
        Self { is_over, caring }
    }

    /// Stops replacing connections, and waits until all are closed or their time is over.
    pub(crate) fn close(self) -> Stays {
        self.is_over.store(true, Ordering::Relaxed);
        self.caring.join().expect("a thread that only waits")
    }
}

fn look_after(pace: Pace, place: &mut Option<Slow>, address: SocketAddr, is_over: bool, stays: &mut Stays) {
    if let Some(slow) = place {
        if slow.goes_on() {
            return;
        }
        stays.ended.push((pace, slow.opened.elapsed()));
        *place = None;
    }
    if !is_over {
        match Slow::open(pace, address) {
            Ok(slow) => {
                stays.opened += 1;
                *place = Some(slow);
            }
            Err(_) => stays.refused += 1,
        }
    }
}

impl Slow {
    fn open(pace: Pace, address: SocketAddr) -> std::io::Result<Self> {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        if pace == Pace::Body {
            stream.write_all(HEAD)?;
        }
        Ok(Self { pace, stream, opened: Instant::now(), sent: 0 })
    }

    /// Sends the next byte; returns whether the connection is still open.
    fn goes_on(&mut self) -> bool {
        let byte = match self.pace {
            Pace::Head => HEAD.get(self.sent).copied(),
            Pace::Body => Some(b' '),
            Pace::Idle => None,
        };
        if let Some(byte) = byte {
            self.sent += 1;
            if self.stream.write_all(&[byte]).is_err_and(|error| error.kind() != ErrorKind::WouldBlock) {
                return false;
            }
        }
        // An answer is read to its end; the connection ends with it or goes on.
        let mut answer = [0; 2048];
        loop {
            match self.stream.read(&mut answer) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }
}
