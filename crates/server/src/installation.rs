//! The id of the installation, and the check at start that a data directory and a database belong together.
//!
//! An installation has one id: in a table of its database, in the file `instance-id` of its data directory,
//! and in a label of every resource on the engine. A server must never run with the database of another
//! installation, or with an empty one: it would treat the running resources as unknown.
//!
//! **Invariant:** nothing in the data directory, on the engine or in the front proxy is changed before this
//! module has found that the data directory and the database have the same id (decision 33).

mod decision;
mod hostname;

use std::{error::Error, fs, os::unix::fs::MetadataExt as _, path::Path, time::Duration};

use launchway_domain::{
    clock::Clock as _,
    ids::{Ids as _, InstanceId},
};
use launchway_infrastructure::{
    backup::replace_private_file,
    clock::{SystemClock, TimeOrderedIds},
    data_dir::{DataDir, LOCK_TIMEOUT},
    database::{
        Database, DatabaseOptions, DatabaseUrl, FileLock, FileLockError, Inspection, LockHolder, LockMode,
        SchemaStatus, ServerLock, ServerLockError, inspect,
    },
    secrets::XChaChaBox,
};

use self::decision::{DatabaseIdentity, Decision, Refusal, decide};
pub(crate) use self::hostname::hostname;
use crate::{
    assembly::{self, Tables},
    config::{Config, shown_database},
    key,
};

/// The file of the installation id.
const INSTANCE_ID: &str = "instance-id";
/// The file of the id of this server, by which it takes back its own jobs after a crash.
const SERVER_ID: &str = "server-id";
/// The longest wait for the previous server to release a PostgreSQL database. PostgreSQL ends the session
/// of a machine that has vanished after about ten seconds.
const SERVER_LOCK_TIMEOUT: Duration = Duration::from_secs(15);

/// A database that belongs to the data directory, is migrated, and matches the key.
pub(crate) struct Installation {
    /// The id of the installation.
    pub(crate) id: InstanceId,
    /// The id of this server, which owns its jobs.
    pub(crate) server: InstanceId,
    pub(crate) database: Database,
    pub(crate) secrets: XChaChaBox,
    /// The lock on the PostgreSQL database; `None` on SQLite, and for a process beside a running server.
    pub(crate) server_lock: Option<ServerLock>,
}

impl Installation {
    /// Opens the database of the installation and migrates it. With `adopt`, a data directory and a
    /// database of different installations are joined.
    ///
    /// # Errors
    /// When they do not belong together and are not to be joined, or when one of them cannot be used. Then
    /// nothing was changed.
    pub(crate) async fn open(
        config: &Config,
        data: &DataDir,
        tables: Tables,
        adopt: bool,
    ) -> Result<Self, Box<dyn Error>> {
        let checked = match tables {
            Tables::LeaveAsTheyAre => Checked::without_lock(config, data)?,
            Tables::MustBeThere => Checked::existing(config, data)?,
            Tables::BesideReplicas => Checked::locked(config, data, LockMode::Shared, adopt)?,
            Tables::BringUpToDate => Checked::alone(config, data, adopt)?,
        };
        checked.check_key(config)?;
        let Checked { decision, directory, lock, server_lock, .. } = checked;
        let lock_state = server_lock.as_ref().map(ServerLock::state);
        let options = DatabaseOptions { lock, lock_state, ..DatabaseOptions::new(config.database.clone()) };
        let database = Database::open(DatabaseOptions { must_exist: tables.must_exist(), ..options })?
            .with_log_limits(config.deployments.log_limits);
        assembly::bring_up_to_date(&database, &tables).await?;
        let secrets = key::fitting(config, data, &database).await?;
        let id = match tables {
            // The running server does this.
            Tables::LeaveAsTheyAre => database.installation_id().await?.or(directory),
            _ => Some(join(data, &database, decision, directory).await?),
        };
        let id =
            id.ok_or("the database has no id of an installation yet: wait until the server has started")?;
        let server = server_id(data, directory)?;
        Ok(Self { id, server, database, secrets, server_lock })
    }
}

/// A data directory and a database that belong together, or are to be joined. Nothing was changed yet.
pub(crate) struct Checked {
    decision: Decision,
    /// The id of the data directory.
    directory: Option<InstanceId>,
    key_check: Option<String>,
    /// The lock on the SQLite file.
    pub(crate) lock: Option<FileLock>,
    /// The lock on the PostgreSQL database.
    pub(crate) server_lock: Option<ServerLock>,
}

impl Checked {
    /// Checks for a process with exclusive access to the data directory and the database. A missing SQLite
    /// file is created after the check.
    pub(crate) fn alone(config: &Config, data: &DataDir, adopt: bool) -> Result<Self, Box<dyn Error>> {
        Self::locked(config, data, LockMode::Exclusive, adopt)
    }

    /// Checks for a process that holds the lock on the database in `mode`. A SQLite file has one user in any mode.
    fn locked(config: &Config, data: &DataDir, mode: LockMode, adopt: bool) -> Result<Self, Box<dyn Error>> {
        let path = match &config.database {
            DatabaseUrl::Sqlite(path) => path,
            DatabaseUrl::Postgres(url) => {
                let lock = ServerLock::acquire(url, mode, &hostname(), SERVER_LOCK_TIMEOUT);
                let server_lock = Some(lock.map_err(|error| not_locked(config, error))?);
                return Ok(Self { server_lock, ..check(config, data, adopt)? });
            }
        };
        let lock = FileLock::acquire(path, LOCK_TIMEOUT)?;
        let checked = check(config, data, adopt)?;
        if lock.is_some() {
            return Ok(Self { lock, ..checked });
        }
        let lock = FileLock::acquire_or_create(path, LOCK_TIMEOUT)?;
        // Another server may have created it in the meantime, and have stopped again.
        Ok(Self { lock: Some(lock), ..check(config, data, adopt)? })
    }

    /// Checks for a process with exclusive access that needs an existing database.
    pub(crate) fn existing(config: &Config, data: &DataDir) -> Result<Self, Box<dyn Error>> {
        refuse_missing(config)?;
        Self::alone(config, data, false)
    }

    /// Checks for a process beside a running server.
    pub(crate) fn without_lock(config: &Config, data: &DataDir) -> Result<Self, Box<dyn Error>> {
        refuse_missing(config)?;
        check(config, data, false)
    }

    /// Fails if the key is missing or did not encrypt the secrets of the database.
    pub(crate) fn check_key(&self, config: &Config) -> Result<(), Box<dyn Error>> {
        match &self.key_check {
            Some(sealed) => key::check(config, sealed),
            None => Ok(()),
        }
    }
}

/// Checks that a backup of the data directory and the database would be one of a single installation. A
/// newer schema may store the id elsewhere, so it is not read there.
pub(crate) fn check_for_backup(config: &Config, data: &DataDir) -> Result<(), Box<dyn Error>> {
    match schema_status(config)? {
        SchemaStatus::Ahead(_) => Ok(()),
        SchemaStatus::UpToDate | SchemaStatus::Behind(_) => Checked::without_lock(config, data).map(drop),
    }
}

/// Returns whether a server with another data directory uses the database.
pub(crate) fn is_database_in_use(config: &Config) -> Result<bool, Box<dyn Error>> {
    let path = match &config.database {
        DatabaseUrl::Sqlite(path) => path,
        DatabaseUrl::Postgres(url) => {
            return match ServerLock::acquire(url, LockMode::Exclusive, &hostname(), LOCK_TIMEOUT) {
                Err(ServerLockError::InUse(_)) => Ok(true),
                outcome => Ok(outcome.map(|_released| false)?),
            };
        }
    };
    match FileLock::acquire(path, LOCK_TIMEOUT) {
        // SQLite finds its WAL by the name of the file: two names would be two logs.
        Err(FileLockError::InUse(_)) if fs::metadata(path)?.nlink() > 1 => Err(format!(
            "a server uses the database file `{}`, which has several names (hard links): stop the server, or remove the \
             other names",
            path.display()
        )
        .into()),
        Err(FileLockError::InUse(_)) => Ok(true),
        outcome => Ok(outcome.map(|_released| false)?),
    }
}

/// Returns the status of the schema for this binary. The database has to exist.
pub(crate) fn schema_status(config: &Config) -> Result<SchemaStatus, Box<dyn Error>> {
    match inspect(&config.database)? {
        Inspection::Missing => Err(missing(config)),
        Inspection::Foreign => Err(foreign(config)),
        Inspection::Usable { schema_status, .. } => Ok(schema_status),
    }
}

fn check(config: &Config, data: &DataDir, adopt: bool) -> Result<Checked, Box<dyn Error>> {
    let directory = directory_id(data)?;
    let (installation, key_check) = match inspect(&config.database)? {
        Inspection::Foreign => return Err(foreign(config)),
        Inspection::Missing => (None, None),
        Inspection::Usable { schema_status: SchemaStatus::Ahead(unknown), .. } => {
            return Err(assembly::newer(&unknown));
        }
        Inspection::Usable { installation, key_check, .. } => (installation, key_check),
    };
    let database = DatabaseIdentity::of(installation, key_check.is_some());
    let decision = decide(directory, database, adopt).map_err(|refusal| in_words(config, data, refusal))?;
    Ok(Checked { decision, directory, key_check, lock: None, server_lock: None })
}

/// Writes the decision: first to the database, then to the data directory. A process that ends in between
/// leaves a data directory without an id, which takes that of the database at the next start.
async fn join(
    data: &DataDir,
    database: &Database,
    decision: Decision,
    directory: Option<InstanceId>,
) -> Result<InstanceId, Box<dyn Error>> {
    let (wanted, is_adopted) = match decision {
        Decision::Start(id) => return Ok(id),
        Decision::Create => (TimeOrderedIds.next().into(), false),
        Decision::DatabaseTakes { id, is_adopted } | Decision::DirectoryTakes { id, is_adopted } => {
            (id, is_adopted)
        }
    };
    let id = database.claim_for_installation(wanted, SystemClock.now()).await?;
    match decision {
        Decision::DatabaseTakes { .. } if id != wanted => {
            return Err(
                format!("another server made the database that of installation {id} meanwhile").into()
            );
        }
        Decision::DatabaseTakes { .. } if is_adopted => {
            tracing::warn!(installation = %id, "database adopted the id of the data directory");
        }
        Decision::DatabaseTakes { .. } => {
            tracing::info!(installation = %id, "database took the installation id over")
        }
        Decision::DirectoryTakes { .. } if is_adopted => {
            let previous = directory.map(|id| id.to_string());
            tracing::warn!(installation = %id, previous, "data directory adopted the id of the database");
        }
        Decision::DirectoryTakes { .. } => {
            tracing::info!(installation = %id, "data directory took the installation id over")
        }
        Decision::Create | Decision::Start(_) => tracing::info!(installation = %id, "installation created"),
    }
    if directory != Some(id) {
        // Before the other file: a data directory with that one only is of an earlier version.
        server_id(data, directory)?;
        replace_private_file(&data.path().join(INSTANCE_ID), &format!("{id}\n"), true)?;
    }
    Ok(id)
}

fn directory_id(data: &DataDir) -> Result<Option<InstanceId>, Box<dyn Error>> {
    data.read_private_file(INSTANCE_ID)?.map(|text| parsed(data.path(), INSTANCE_ID, &text)).transpose()
}

/// Returns the id of this server. A data directory of an earlier version has none; there the id of the
/// installation was that of the server too.
fn server_id(data: &DataDir, directory: Option<InstanceId>) -> Result<InstanceId, Box<dyn Error>> {
    let text = data.private_file(SERVER_ID, || {
        let id = directory.unwrap_or_else(|| TimeOrderedIds.next().into());
        format!("{id}\n")
    })?;
    parsed(data.path(), SERVER_ID, &text)
}

fn parsed(folder: &Path, name: &str, text: &str) -> Result<InstanceId, Box<dyn Error>> {
    text.parse().map_err(|refused| format!("the file `{}` {refused}", folder.join(name).display()).into())
}

/// Fails if there is no SQLite file.
pub(crate) fn refuse_missing(config: &Config) -> Result<(), Box<dyn Error>> {
    match &config.database {
        DatabaseUrl::Sqlite(file) if !file.exists() => Err(missing(config)),
        _ => Ok(()),
    }
}

fn missing(config: &Config) -> Box<dyn Error> {
    format!(
        "there is no database at {}: check LAUNCHWAY_DATABASE_URL and LAUNCHWAY_DATA_DIR",
        shown_database(&config.database)
    )
    .into()
}

/// Returns the error for a server that lost the PostgreSQL database to another process.
pub(crate) fn taken_over(config: &Config, holder: &LockHolder) -> Box<dyn Error> {
    format!(
        "another Launchway process ({holder}) has taken the database {} over while this one had lost its connection: a \
         command that has to be alone, or a server of an earlier version. Start this one again when it has ended",
        shown_database(&config.database)
    )
    .into()
}

fn not_locked(config: &Config, error: ServerLockError) -> Box<dyn Error> {
    let ServerLockError::InUse(holder) = error else { return error.into() };
    // The id only helps the operator; a database that cannot be inspected is in use all the same.
    let id = match inspect(&config.database) {
        Ok(Inspection::Usable { installation: Some(id), .. }) => format!(" of installation {id}"),
        _ => String::new(),
    };
    format!(
        "another Launchway process{id} ({holder}) uses the database {}. Nothing was changed. A command such as `launchway key \
         rotate` and a server of an earlier version have to be alone: stop the other one, or give each a database of its own \
         by LAUNCHWAY_DATABASE_URL",
        shown_database(&config.database)
    )
    .into()
}

fn foreign(config: &Config) -> Box<dyn Error> {
    format!(
        "the database {} was not made by Launchway: it has tables of another program. Nothing was changed. Check \
         LAUNCHWAY_DATABASE_URL",
        shown_database(&config.database)
    )
    .into()
}

fn in_words(config: &Config, data: &DataDir, refusal: Refusal) -> Box<dyn Error> {
    let (directory, database) = (data.path().display(), shown_database(&config.database));
    match refusal {
        Refusal::EmptyDatabase { directory: id } => format!(
            "the data directory `{directory}` belongs to installation {id}, and the database {database} is empty. \
             Nothing was changed. Check LAUNCHWAY_DATABASE_URL and LAUNCHWAY_DATA_DIR. To give up everything that this \
             installation has and start with an empty database, run `launchway serve --adopt`"
        ),
        Refusal::AnotherInstallation { directory: id, database: other } => format!(
            "the data directory `{directory}` belongs to installation {id}, and the database {database} to installation \
             {other}. Nothing was changed. Check LAUNCHWAY_DATABASE_URL and LAUNCHWAY_DATA_DIR. To give up everything \
             that this data directory has and use it for the other installation, run `launchway serve --adopt`"
        ),
    }
    .into()
}
