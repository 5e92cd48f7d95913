//! The result of a comparison, as numbers.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use serde::{Deserialize, Serialize};

use crate::{
    database::Database,
    engine,
    ledger::{self, Fact},
};

/// The final states of a deployment.
const ENDS: [&str; 3] = ["deployed", "failed", "cancelled"];
/// The number of bits of a line's id that contain its position in the log of its application.
const PLACE_BITS: u32 = 40;

/// The sources that the verifier compares with the ledger.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// `sqlite:<file>` or `postgres://…`.
    pub database: String,
    /// The installation whose containers are checked; without it the engine is not checked.
    pub instance: Option<String>,
    /// The time from which on acknowledgements are ignored.
    pub until: Option<u128>,
    /// Everything should be in a final state.
    pub at_rest: bool,
}

/// The numbers. Those of [`Figures::wrong`] must be 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Deployments whose acceptance was acknowledged.
    pub accepted: usize,
    /// Accepted deployments that are missing in the database.
    pub lost: usize,
    /// All deployments in the database.
    pub deployments: usize,
    /// Deployments that succeeded.
    pub succeeded: usize,
    /// Deployments that failed, as every deployment does whose worker was lost three times.
    pub failed: usize,
    /// Deployments and jobs that are not in a final state, though everything should be.
    pub not_terminal: usize,
    /// Log lines that were returned to a client.
    pub lines_shown: usize,
    /// Returned lines that are missing or have another text.
    pub lines_lost: usize,
    /// Logs with a missing position.
    pub gaps: usize,
    /// Containers of the installation.
    pub containers: usize,
    /// Containers of no live version.
    pub leaked: usize,
    /// Live versions whose container is not running.
    pub missing: usize,
    /// Errors of the database's integrity check.
    pub damage: Vec<String>,
}

impl Figures {
    /// Returns the number of violations.
    #[must_use]
    pub fn wrong(&self) -> usize {
        let counts = [self.lost, self.not_terminal, self.lines_lost, self.gaps, self.leaked, self.missing];
        counts.iter().sum::<usize>() + self.damage.len()
    }
}

/// Compares the ledger with the database and the engine.
///
/// # Errors
/// Returns what could not be read.
pub fn compare(ledger: &Path, evidence: &Evidence) -> Result<Figures, String> {
    let entries = ledger::read(ledger, evidence.until).map_err(|error| format!("the ledger: {error}"))?;
    let mut database = Database::open(&evidence.database)?;
    let unreadable = |error: diesel::result::Error| format!("the database: {error}");
    let damage = database.damage().map_err(unreadable)?;
    let mut figures = Figures { damage, ..Figures::default() };
    let states = database.deployments().map_err(unreadable)?;
    figures.deployments = states.len();
    figures.succeeded = states.values().filter(|state| *state == "deployed").count();
    figures.failed = states.values().filter(|state| *state == "failed").count();

    let mut shown: HashMap<String, Vec<(u64, &str)>> = HashMap::new();
    let mut accepted = HashSet::new();
    for entry in &entries {
        match &entry.fact {
            Fact::Accepted { deployment } => drop(accepted.insert(plain(deployment))),
            Fact::Shown { application, line, text } => {
                let place = place_of(line).ok_or_else(|| format!("`{line}` is no id of a line"))?;
                shown.entry(plain(application)).or_default().push((place, text));
            }
        }
    }
    figures.accepted = accepted.len();
    figures.lost = accepted.iter().filter(|id| !states.contains_key(*id)).count();
    for (application, lines) in &shown {
        let kept = database.lines(application).map_err(unreadable)?;
        figures.lines_shown += lines.len();
        figures.lines_lost +=
            lines.iter().filter(|(place, text)| kept.get(place).is_none_or(|kept| kept != text)).count();
    }
    figures.gaps = database.logs_with_gaps().map_err(unreadable)?.len();
    if evidence.at_rest {
        let open = states.values().filter(|state| !ENDS.contains(&state.as_str())).count();
        figures.not_terminal = open + database.open_jobs().map_err(unreadable)?;
    }
    if let Some(instance) = &evidence.instance {
        let live = database.live_containers().map_err(unreadable)?;
        let found = engine::containers(instance)?;
        figures.containers = found.len();
        figures.leaked = found.keys().filter(|id| !live.contains(*id)).count();
        figures.missing = live.iter().filter(|id| !found.get(*id).copied().unwrap_or_default()).count();
    }
    Ok(figures)
}

/// Returns an id without its dashes.
fn plain(id: &str) -> String {
    id.replace('-', "")
}

/// Returns the position that a line's id contains, in its last bits.
fn place_of(id: &str) -> Option<u64> {
    let value = u128::from_str_radix(&plain(id), 16).ok()?;
    u64::try_from(value & ((1 << PLACE_BITS) - 1)).ok()
}

#[cfg(test)]
mod tests {
    use diesel::{Connection as _, SqliteConnection, connection::SimpleConnection as _};
    use tempfile::TempDir;

    use super::*;
    use crate::ledger::Ledger;

    const APPLICATION: &str = "01980000-0000-7000-8000-00000000000a";
    const DEPLOYMENT: &str = "01980000-0000-7000-8000-00000000000b";
    const SECOND_LINE: &str = "01980000-0000-7000-8000-000000000002";

    /// The columns that the verifier reads, with one deployment and two lines.
    const TABLES: &str = "
        CREATE TABLE applications (id BLOB, live_deployment_id BLOB, deleted_at INTEGER);
        CREATE TABLE deployments (id BLOB, status TEXT, container_id TEXT);
        CREATE TABLE jobs (id BLOB, state TEXT);
        CREATE TABLE application_logs (application_id BLOB, number INTEGER, log TEXT);
        INSERT INTO deployments VALUES (X'0198000000007000800000000000000b', 'building', NULL);
        INSERT INTO jobs VALUES (X'01', 'running');
        INSERT INTO application_logs VALUES (X'0198000000007000800000000000000a', 1, 'it begins');
        INSERT INTO application_logs VALUES (X'0198000000007000800000000000000a', 2, 'it goes on');
    ";

    struct Case {
        folder: TempDir,
        evidence: Evidence,
    }

    impl Case {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("launchway.db").display().to_string();
            SqliteConnection::establish(&file).unwrap().batch_execute(TABLES).unwrap();
            let evidence = Evidence { database: format!("sqlite:{file}"), ..Evidence::default() };
            let case = Self { folder, evidence };
            case.note(Fact::Accepted { deployment: DEPLOYMENT.to_owned() });
            case.note_line("it goes on");
            case
        }

        fn note(&self, fact: Fact) {
            Ledger::open(&self.folder.path().join("ledger")).unwrap().note(fact).unwrap();
        }

        fn note_line(&self, text: &str) {
            let (application, line) = (APPLICATION.to_owned(), SECOND_LINE.to_owned());
            self.note(Fact::Shown { application, line, text: text.to_owned() });
        }

        fn figures(&self) -> Figures {
            compare(&self.folder.path().join("ledger"), &self.evidence).unwrap()
        }
    }

    #[test]
    fn what_is_there_is_not_missed() {
        let figures = Case::new().figures();
        assert_eq!((figures.accepted, figures.lines_shown, figures.wrong()), (1, 1, 0), "{figures:?}");
    }

    #[test]
    fn an_acknowledgement_without_a_record_is_a_loss() {
        let case = Case::new();
        case.note(Fact::Accepted { deployment: APPLICATION.to_owned() });
        assert_eq!(case.figures().lost, 1);
    }

    #[test]
    fn a_line_that_says_something_else_is_a_loss() {
        let case = Case::new();
        case.note_line("it goes on and on");
        assert_eq!(case.figures().lines_lost, 1);
    }

    #[test]
    fn open_deployments_count_only_when_all_should_be_final() {
        let mut case = Case::new();
        assert_eq!(case.figures().not_terminal, 0);
        case.evidence.at_rest = true;
        assert_eq!(case.figures().not_terminal, 2, "the deployment and its job");
    }

    #[test]
    fn what_was_acknowledged_later_does_not_count() {
        let mut case = Case::new();
        case.evidence.until = Some(0);
        assert_eq!((case.figures().accepted, case.figures().lines_shown), (0, 0));
    }

    #[test]
    fn a_file_that_is_not_there_is_not_made() {
        let mut case = Case::new();
        case.evidence.database.push_str(".gone");
        assert!(compare(&case.folder.path().join("ledger"), &case.evidence).is_err());
    }
}
