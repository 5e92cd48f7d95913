//! The disk of the data folder fills up, and gets space again.

use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use super::kills::seconds;
use crate::{
    cluster::is_root,
    harness::{DEPLOY, Harness, Plan},
    load::{Load, STEADY},
    options::Options,
    section::Section,
    verdict,
};

const METHOD: &str = "\
The data directory is a file system of 32 MB in memory, and the database is SQLite. Clients send requests as in the \
other campaigns while a file is written beside the database until the disk is full; after 3 s the file is removed. \
The server is never restarted. While the disk is full, the server may refuse requests with 503 or 507, but it must \
answer reads.";

/// Mounts in a namespace of its own, which ends with the server.
const MOUNT: &str = "mount -t tmpfs -o size=32m,mode=700 launchway-chaos DATA && exec \"$@\"";
/// The time for which the disk is full.
const FULL: Duration = Duration::from_secs(3);
/// The time within which the server must accept deployments once there is space.
const GOES_ON: Duration = Duration::from_secs(5);
const REST: Duration = Duration::from_secs(150);

pub(crate) fn run(options: &Options) -> Section {
    let mut section = Section::new("A full disk that gets space again", METHOD);
    let mut wrapper = vec!["unshare", "--mount"];
    if !is_root() {
        wrapper.push("--map-root-user");
    }
    wrapper.extend(["sh", "-c", MOUNT, "sh"]);
    let wrapper = wrapper.into_iter().map(str::to_owned).collect();
    // Deployments must meet the full disk, and not be rejected before.
    let floor = ("LAUNCHWAY_MIN_FREE_DISK".to_owned(), "0".to_owned());
    let mut harness =
        Harness::set(options, &Plan { sites: 3, wrapper, settings: vec![floor], ..Plan::default() });
    let application = harness.applications[0].clone();
    let rounds = options.count(1, 25);
    let (mut refused, mut unread, mut stuck) = (0, 0, 0);
    let mut slowest = Duration::ZERO;
    let load = Load::on(&harness, STEADY);
    for _ in 0..rounds {
        sleep(Duration::from_millis(800));
        let ballast = harness.data_seen().join("ballast");
        fill(&ballast);
        let full = Instant::now();
        while full.elapsed() < FULL {
            refused += usize::from(harness.redeploy(&application).is_some_and(|status| status >= 500));
            let read = harness.admin.try_send("GET", &format!("{DEPLOY}?id={application}"), None);
            unread += usize::from(!read.is_ok_and(|answer| answer.status == 200));
            // Space that others freed is filled, too.
            fill(&ballast);
            sleep(Duration::from_millis(50));
        }
        fs::remove_file(&ballast).unwrap();
        match harness.accepts_within(&application, GOES_ON) {
            Some(time) => slowest = slowest.max(time),
            None => stuck += 1,
        }
    }
    let has_ended = harness.server.exit().is_some();
    let responses = load.end();
    let (figures, rest) = harness.wait_until_finished(REST);
    section.note("times that the disk was full", rounds);
    section.note("answers by status", responses.shown());
    section.never("answers other than 200, 503 and 507", responses.odd());
    section.never("reads refused while it was full", unread);
    section.never("ends of the server", usize::from(has_ended));
    section.never("did not take a deployment within 5 s of having space", stuck);
    section.note("longest until a deployment was accepted again", seconds(slowest));
    section.note("from the end of the load until everything was at its end", seconds(rest));
    verdict::add_figures(&mut section, &figures);
    verdict::add_false_records(&mut section, &harness);
    section.control("deployments refused while it was full", refused);
    section
}

/// Fills the remaining space.
fn fill(path: &Path) {
    let Ok(mut file) = File::options().create(true).append(true).open(path) else { return };
    for size in [64 * 1024, 4096, 512] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}
