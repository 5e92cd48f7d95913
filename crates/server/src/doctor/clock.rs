//! The check of the clock: the servers of an installation agree by that of PostgreSQL.

use launchway_domain::{clock::Clock as _, diagnostics::HealthReport};
use launchway_infrastructure::{
    clock::SystemClock,
    database::{Database, DatabaseUrl},
};

use super::describe;
use crate::config::Config;

/// The largest difference without a warning, in seconds.
const TOLERANCE: f64 = 1.0;

/// Checks the clock of this machine against that of PostgreSQL. A SQLite file has one machine.
pub(super) async fn check(config: &Config, database: &Database, report: &mut HealthReport) {
    let DatabaseUrl::Postgres(_) = config.database else { return };
    let before = SystemClock.now();
    match database.clock_time().await {
        Ok(there) => {
            let round_trip = (SystemClock.now() - before).as_seconds_f64();
            let ahead = (before - there).as_seconds_f64() + round_trip / 2.0;
            report_difference(ahead, round_trip, report);
        }
        Err(error) => report.fail("clock", describe(&error), ""),
    }
}

/// Reports by how many seconds this machine is ahead. Half of a round trip is not known.
fn report_difference(ahead: f64, round_trip: f64, report: &mut HealthReport) {
    let difference = ahead.abs();
    if difference - round_trip / 2.0 <= TOLERANCE {
        return report.ok("clock", format!("differs from that of PostgreSQL by {difference:.3} seconds"));
    }
    let direction = if ahead > 0.0 { "ahead of" } else { "behind" };
    report.warn(
        "clock",
        format!("is {difference:.1} seconds {direction} that of PostgreSQL"),
        "synchronize the clocks of all machines, such as with chrony or systemd-timesyncd",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_above_a_second_is_a_warning() {
        for (ahead, round_trip, line) in [
            (0.002, 0.0, "ok    clock: differs from that of PostgreSQL by 0.002 seconds\n"),
            (-1.0, 0.0, "ok    clock: differs from that of PostgreSQL by 1.000 seconds\n"),
            (1.2, 0.5, "ok    clock: differs from that of PostgreSQL by 1.200 seconds\n"),
            (1.2, 0.01, "warn  clock: is 1.2 seconds ahead of that of PostgreSQL\n"),
            (-90.0, 0.01, "warn  clock: is 90.0 seconds behind that of PostgreSQL\n"),
        ] {
            let mut report = HealthReport::default();
            report_difference(ahead, round_trip, &mut report);
            assert!(report.to_string().starts_with(line), "{line}{report}");
        }
    }
}
