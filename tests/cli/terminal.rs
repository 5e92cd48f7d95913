//! A real terminal and its screen.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    process::{Child, ExitStatus},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use launchway_testkit::{server::binary, wait::until};
use rustix::{
    pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};

use crate::person::Person;

const ROWS: u16 = 40;
const COLUMNS: u16 = 160;
/// The timeout for a text to appear.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A terminal in which the binary runs.
pub(crate) struct Terminal {
    keyboard: File,
    seen: Arc<Mutex<Seen>>,
    process: Child,
    reader: JoinHandle<()>,
}

/// The output to the terminal, and the resulting screen.
struct Seen {
    bytes: Vec<u8>,
    /// The same in pieces, with the time since the start.
    pieces: Vec<(Duration, Vec<u8>)>,
    parser: vt100::Parser,
}

/// The final state after the binary has exited.
pub(crate) struct Left {
    pub(crate) status: ExitStatus,
    /// The raw output.
    pub(crate) raw: String,
    pub(crate) pieces: Vec<(Duration, Vec<u8>)>,
    pub(crate) screen: vt100::Screen,
}

impl Terminal {
    /// Runs the binary with its standard streams here.
    pub(crate) fn of(person: &Person, arguments: &[&str]) -> Self {
        Self::sized((ROWS, COLUMNS), person, arguments)
    }

    /// The same in a terminal of this many rows and columns.
    pub(crate) fn sized((rows, columns): (u16, u16), person: &Person, arguments: &[&str]) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let master = openpt(flags).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let process = {
            let slave = File::from(ioctl_tiocgptpeer(&master, flags).unwrap());
            // A session of its own, so that keys such as Ctrl-C reach it.
            let mut command = person.program("setsid");
            command.args(["--ctty", "--wait"]).arg(binary()).args(arguments);
            command.env("TERM", "xterm-256color");
            command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
            command.spawn().unwrap()
        };
        let keyboard = File::from(master);
        let parser = vt100::Parser::new(rows.try_into().unwrap(), columns.try_into().unwrap(), 0);
        let seen = Arc::new(Mutex::new(Seen { bytes: Vec::new(), pieces: Vec::new(), parser }));
        let reader = {
            let (mut screen, seen) = (keyboard.try_clone().unwrap(), Arc::clone(&seen));
            let begun = Instant::now();
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                // The last one who has it open has ended when reading fails.
                while let Ok(count @ 1..) = screen.read(&mut buffer) {
                    let mut seen = seen.lock().unwrap();
                    seen.bytes.extend_from_slice(&buffer[..count]);
                    seen.pieces.push((begun.elapsed(), buffer[..count].to_vec()));
                    seen.parser.process(&buffer[..count]);
                }
            })
        };
        Self { keyboard, seen, process, reader }
    }

    /// Waits until the screen shows a text.
    #[track_caller]
    pub(crate) fn shows(&self, text: &str) -> &Self {
        let deadline = Instant::now() + TIMEOUT;
        while !self.contents().contains(text) {
            assert!(Instant::now() < deadline, "{text:?} is not on the screen:\n{}", self.contents());
            thread::sleep(Duration::from_millis(10));
        }
        self
    }

    /// Returns the text on the screen.
    pub(crate) fn contents(&self) -> String {
        self.seen.lock().unwrap().parser.screen().contents()
    }

    /// Types keys.
    pub(crate) fn types(&mut self, keys: &str) -> &mut Self {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
        self
    }

    /// Types keys once echo is off, as for a password.
    #[track_caller]
    pub(crate) fn types_unseen(&mut self, keys: &str) -> &mut Self {
        until("hidden keys", || {
            let modes = tcgetattr(&self.keyboard).unwrap().local_modes;
            (!modes.contains(LocalModes::ECHO)).then_some(())
        });
        self.types(keys)
    }

    /// Waits until the binary has exited.
    pub(crate) fn ends(mut self) -> Left {
        let status = self.process.wait().unwrap();
        self.reader.join().unwrap();
        let seen = self.seen.lock().unwrap();
        let raw = String::from_utf8(seen.bytes.clone()).unwrap();
        Left { status, raw, pieces: seen.pieces.clone(), screen: seen.parser.screen().clone() }
    }
}

impl Left {
    /// Returns the text on the screen.
    pub(crate) fn text(&self) -> String {
        self.screen.contents()
    }

    /// Returns the first cell of the only line that consists of a text.
    #[track_caller]
    pub(crate) fn line(&self, text: &str) -> vt100::Cell {
        let rows = (0..ROWS).zip(self.screen.rows(0, COLUMNS));
        let rows: Vec<_> = rows.filter(|(_, line)| line.trim() == text).collect();
        assert_eq!(rows.len(), 1, "{text:?} is not on the screen once:\n{}", self.text());
        let column = u16::try_from(rows[0].1.find(text).unwrap()).unwrap();
        self.screen.cell(rows[0].0, column).unwrap().clone()
    }

    /// Returns the cell in which the last occurrence of a text begins.
    #[track_caller]
    pub(crate) fn cell(&self, text: &str) -> vt100::Cell {
        let rows: Vec<_> = (0..ROWS).zip(self.screen.rows(0, COLUMNS)).collect();
        for (row, line) in rows.into_iter().rev() {
            if let Some(place) = line.find(text) {
                let column = u16::try_from(line[..place].chars().count()).unwrap();
                return self.screen.cell(row, column).unwrap().clone();
            }
        }
        panic!("{text:?} is not on the screen:\n{}", self.text());
    }
}
