//! The decision, as a pure function of the ids.

use launchway_domain::ids::InstanceId;

/// The identity of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatabaseIdentity {
    /// The database is new.
    Empty,
    /// The database was used only by earlier versions, which wrote no id.
    Unidentified,
    /// The database belongs to this installation.
    Of(InstanceId),
}

impl DatabaseIdentity {
    pub(super) fn of(id: Option<InstanceId>, is_used: bool) -> Self {
        match id {
            Some(id) => Self::Of(id),
            None if is_used => Self::Unidentified,
            None => Self::Empty,
        }
    }
}

/// The decision of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// Both have this id.
    Start(InstanceId),
    /// Both get a new id.
    Create,
    /// The database takes the id of the data directory.
    DatabaseTakes {
        id: InstanceId,
        /// True if the operator requested it.
        is_adopted: bool,
    },
    /// The data directory takes the id of the database.
    DirectoryTakes {
        id: InstanceId,
        /// True if the operator requested it.
        is_adopted: bool,
    },
}

/// The reason why a server does not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The data directory is in use, and the database is empty.
    EmptyDatabase { directory: InstanceId },
    /// The two belong to different installations.
    AnotherInstallation { directory: InstanceId, database: InstanceId },
}

/// Decides on a start with a data directory with or without an id, and a database. With `adopt` the two are
/// joined.
pub(super) fn decide(
    directory: Option<InstanceId>,
    database: DatabaseIdentity,
    adopt: bool,
) -> Result<Decision, Refusal> {
    match (directory, database) {
        (None, DatabaseIdentity::Empty | DatabaseIdentity::Unidentified) => Ok(Decision::Create),
        (None, DatabaseIdentity::Of(id)) => Ok(Decision::DirectoryTakes { id, is_adopted: false }),
        (Some(id), DatabaseIdentity::Of(same)) if id == same => Ok(Decision::Start(id)),
        (Some(id), DatabaseIdentity::Unidentified) => Ok(Decision::DatabaseTakes { id, is_adopted: false }),
        (Some(id), DatabaseIdentity::Empty) if adopt => Ok(Decision::DatabaseTakes { id, is_adopted: true }),
        (Some(id), DatabaseIdentity::Empty) => Err(Refusal::EmptyDatabase { directory: id }),
        (Some(_), DatabaseIdentity::Of(id)) if adopt => Ok(Decision::DirectoryTakes { id, is_adopted: true }),
        (Some(directory), DatabaseIdentity::Of(database)) => {
            Err(Refusal::AnotherInstallation { directory, database })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u8) -> InstanceId {
        format!("00000000-0000-7000-8000-{number:012}").parse().unwrap()
    }

    #[test]
    fn every_pair_of_ids_has_one_decision() {
        use DatabaseIdentity::{Empty, Of, Unidentified};
        let (x, y) = (id(1), id(2));
        let database_takes = |id, is_adopted| Ok(Decision::DatabaseTakes { id, is_adopted });
        let directory_takes = |id, is_adopted| Ok(Decision::DirectoryTakes { id, is_adopted });
        let empty = Err(Refusal::EmptyDatabase { directory: x });
        let another = Err(Refusal::AnotherInstallation { directory: x, database: y });
        for (directory, database, normal, adopting) in [
            (None, Empty, Ok(Decision::Create), Ok(Decision::Create)),
            (None, Unidentified, Ok(Decision::Create), Ok(Decision::Create)),
            (None, Of(y), directory_takes(y, false), directory_takes(y, false)),
            (Some(x), Of(x), Ok(Decision::Start(x)), Ok(Decision::Start(x))),
            (Some(x), Unidentified, database_takes(x, false), database_takes(x, false)),
            (Some(x), Empty, empty, database_takes(x, true)),
            (Some(x), Of(y), another, directory_takes(y, true)),
        ] {
            assert_eq!(decide(directory, database, false), normal, "{directory:?} {database:?}");
            assert_eq!(decide(directory, database, true), adopting, "{directory:?} {database:?} --adopt");
        }
    }

    #[test]
    fn a_database_without_an_id_is_empty_until_it_is_used() {
        assert_eq!(DatabaseIdentity::of(None, false), DatabaseIdentity::Empty);
        assert_eq!(DatabaseIdentity::of(None, true), DatabaseIdentity::Unidentified);
        assert_eq!(DatabaseIdentity::of(Some(id(1)), false), DatabaseIdentity::Of(id(1)));
    }
}
