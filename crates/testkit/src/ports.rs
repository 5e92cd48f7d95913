//! Ports for programs that cannot choose one themselves.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, TcpListener},
    path::Path,
    process,
    sync::{Mutex, PoisonError},
};

use crate::SHARED;

/// Above the ports that Linux gives to connections and to listeners without a choice, so that none of those takes one.
const FIRST: u16 = 61_000;
const LAST: u16 = 64_999;

/// The locks of the ports that this process got.
static LOCKS: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// Returns a port on which nothing listens, and which no other process gets from here while this one runs.
///
/// # Panics
/// If there is none.
pub fn free_port() -> u16 {
    let folder = Path::new(SHARED).join("launchway-test-ports");
    fs::create_dir_all(&folder).expect("a folder for locks");
    let count = LAST - FIRST + 1;
    // Processes begin at different places, because most of them run at the same time.
    let begin = process::id().wrapping_mul(37) % u32::from(count);
    let free = (0..count).map(|step| FIRST + (begin + u32::from(step)) as u16 % count).find(|port| {
        let lock = File::create(folder.join(port.to_string())).expect("a file for a lock");
        if lock.try_lock().is_err() || TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_err() {
            return false;
        }
        LOCKS.lock().unwrap_or_else(PoisonError::into_inner).push(lock);
        true
    });
    free.expect("a free port")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_port_is_returned_twice_or_taken() {
        let first = free_port();
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, first + 1));
        let ports: HashSet<u16> = (0..50).map(|_| free_port()).collect();
        assert_eq!(ports.len(), 50);
        assert!(ports.iter().all(|port| (FIRST..=LAST).contains(port)));
        assert!(!ports.contains(&first));
        assert!(taken.is_err() || !ports.contains(&(first + 1)));
    }
}
