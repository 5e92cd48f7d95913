//! Inspects a database before it is used. Changes nothing, neither in the database nor in the files of
//! SQLite.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::File,
    io::{self, ErrorKind, Read as _},
    path::{Path, PathBuf},
};

use diesel::{
    Connection as _, QueryableByName, RunQueryDsl as _, SqliteConnection, connection::SimpleConnection as _,
    pg::PgConnection, prelude::*, sql_query, sql_types::Text,
};
use launchway_domain::{ids::InstanceId, replicas::Replica};

use super::{
    DatabaseUrl, OpenError,
    columns::DbId,
    connection::AnyConnection,
    error::QueryError,
    installation_id,
    migrations::{self, SchemaStatus},
    options, replicas,
    schema::{applications, key_check},
};

/// The first bytes of every SQLite database.
const MAGIC: &[u8] = b"SQLite format 3\0";
/// The position in the header of a SQLite database of the number that is 2 in the write-ahead log mode.
const READ_VERSION: usize = 19;
const HEADER: usize = 100;
const OF_MIGRATIONS: &str = "__diesel_schema_migrations";

/// The state of a database that is not open yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inspection {
    /// There is no such SQLite file.
    Missing,
    /// A SQLite database with tables of another program.
    Foreign,
    /// A database that this binary can use, or could if it were newer.
    Usable {
        /// The relation of its schema to this binary.
        schema_status: SchemaStatus,
        /// The id of the installation that it belongs to. `None` for a new database, and for one that only earlier
        /// versions have used.
        installation: Option<InstanceId>,
        /// The sealed text that only the right secret key opens. Every server that has ever used the database has made
        /// sure that there is one.
        key_check: Option<String>,
    },
}

/// The reason why a database could not be inspected.
#[derive(Debug, thiserror::Error)]
pub enum InspectionError {
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file is something else than a SQLite database.
    #[error("the file `{}` is not a SQLite database", .0.display())]
    NotADatabase(PathBuf),
    /// A query failed.
    #[error(transparent)]
    Query(#[from] QueryError),
}

impl From<diesel::result::Error> for InspectionError {
    fn from(error: diesel::result::Error) -> Self {
        Self::Query(error.into())
    }
}

/// Reads the state of a database.
///
/// # Errors
/// [`InspectionError`] when it cannot be reached or read.
pub fn inspect(url: &DatabaseUrl) -> Result<Inspection, InspectionError> {
    match url {
        DatabaseUrl::Postgres(url) => {
            let url = options::with_connect_timeout(url);
            let connection =
                PgConnection::establish(&url).map_err(|error| OpenError::Connect(error.into()))?;
            usable(&mut AnyConnection::Postgres(connection))
        }
        DatabaseUrl::Sqlite(path) => {
            let header = match header_of(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Inspection::Missing),
                header => header.map_err(|error| unusable(path, error))?,
            };
            if header.is_empty() {
                return Ok(Inspection::Usable {
                    schema_status: nothing_applied(),
                    installation: None,
                    key_check: None,
                });
            }
            if !header.starts_with(MAGIC) {
                return Err(InspectionError::NotADatabase(path.clone()));
            }
            let mut connection = AnyConnection::Sqlite(read_only(path, &header)?);
            if is_foreign(&mut connection)? { Ok(Inspection::Foreign) } else { usable(&mut connection) }
        }
    }
}

/// An application that runs an image of a registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageInUse {
    /// The id of the application.
    pub id: String,
    /// The name of the application.
    pub application: String,
    /// The image, as the user wrote it.
    pub image: String,
}

/// Reads the images of the applications that run one of a registry, whatever version the tables are of.
///
/// # Errors
/// [`InspectionError`] when the database cannot be reached or read.
pub fn images_in_use(url: &DatabaseUrl) -> Result<Vec<ImageInUse>, InspectionError> {
    let Some(mut connection) = connect(url)? else { return Ok(Vec::new()) };
    if !tables(&mut connection)?.contains("applications") {
        return Ok(Vec::new());
    }
    let rows: Vec<(DbId, String, String)> = applications::table
        .filter(applications::build_pack.eq("image"))
        .filter(applications::deleted_at.is_null())
        .order(applications::name.asc())
        .select((applications::id, applications::name, applications::repository))
        .load(&mut connection)?;
    let used = |(id, application, image): (DbId, String, String)| ImageInUse {
        id: id.0.to_string(),
        application,
        image,
    };
    Ok(rows.into_iter().map(used).collect())
}

/// Reads the replicas that are alive, whatever version the tables are of.
///
/// # Errors
/// [`InspectionError`] when the database cannot be reached or read.
pub fn living_replicas(url: &DatabaseUrl) -> Result<Vec<Replica>, InspectionError> {
    let Some(mut connection) = connect(url)? else { return Ok(Vec::new()) };
    if !tables(&mut connection)?.contains("replicas") {
        return Ok(Vec::new());
    }
    let statuses = replicas::known(&mut connection)?;
    Ok(statuses.into_iter().filter(|status| status.is_alive).map(|status| status.replica).collect())
}

/// Connects without a change; `None` if there is no SQLite file.
fn connect(url: &DatabaseUrl) -> Result<Option<AnyConnection>, InspectionError> {
    Ok(Some(match url {
        DatabaseUrl::Postgres(url) => {
            let url = options::with_connect_timeout(url);
            let connection =
                PgConnection::establish(&url).map_err(|error| OpenError::Connect(error.into()))?;
            AnyConnection::Postgres(connection)
        }
        DatabaseUrl::Sqlite(path) => match header_of(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(path, error)),
            Ok(header) if header.is_empty() => return Ok(None),
            Ok(header) => AnyConnection::Sqlite(read_only(path, &header)?),
        },
    }))
}

fn usable(connection: &mut AnyConnection) -> Result<Inspection, InspectionError> {
    let schema_status = migrations::schema_status(connection)?;
    if let SchemaStatus::Ahead(_) = schema_status {
        // A newer version may have changed the tables that are read below.
        return Ok(Inspection::Usable { schema_status, installation: None, key_check: None });
    }
    let tables = tables(connection)?;
    let installation = match tables.contains("installation_identity") {
        true => installation_id::stored(connection)?,
        false => None,
    };
    let key_check = match tables.contains("key_check") {
        true => key_check::table.select(key_check::sealed).first(connection).optional()?,
        false => None,
    };
    Ok(Inspection::Usable { schema_status, installation, key_check })
}

fn nothing_applied() -> SchemaStatus {
    SchemaStatus::Behind(migrations::known())
}

/// Reports tables of another program: there are some, and none of our migrations made them. On PostgreSQL tables of
/// extensions may be beside ours.
fn is_foreign(connection: &mut AnyConnection) -> Result<bool, InspectionError> {
    let mut tables = tables(connection)?;
    tables.remove(OF_MIGRATIONS);
    if tables.is_empty() {
        return Ok(false);
    }
    let known = migrations::known();
    Ok(!migrations::applied(connection)?.iter().any(|version| known.contains(version)))
}

fn tables(connection: &mut AnyConnection) -> Result<BTreeSet<String>, InspectionError> {
    #[derive(QueryableByName)]
    struct Name {
        #[diesel(sql_type = Text)]
        name: String,
    }
    let names: Vec<Name> = match connection {
        AnyConnection::Sqlite(sqlite) => {
            sql_query("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')").load(sqlite)?
        }
        AnyConnection::Postgres(postgres) => sql_query(
            "SELECT relname::text AS name FROM pg_class
             WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')",
        )
        .load(postgres)?,
    };
    Ok(names.into_iter().map(|row| row.name).collect())
}

/// Returns the header of a file; fewer bytes if the file is shorter.
fn header_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut header = Vec::new();
    File::open(path)?.take(HEADER as u64).read_to_end(&mut header)?;
    Ok(header)
}

/// Opens a connection that leaves the file as it is.
fn read_only(path: &Path, header: &[u8]) -> Result<SqliteConnection, InspectionError> {
    let absolute = std::path::absolute(path).map_err(|error| unusable(path, error))?;
    let name = absolute.to_str().ok_or_else(|| unusable(path, "the path is not UTF-8"))?;
    let is_in_log_mode = header.get(READ_VERSION) == Some(&2);
    let has_log = ["-wal", "-shm"].iter().any(|suffix| beside(&absolute, suffix).exists());
    // A reader of a database in write-ahead log mode leaves its two files behind. Without them no other
    // process has the database open, and everything is in the one file.
    let immutable = if is_in_log_mode && !has_log { "&immutable=1" } else { "" };
    let uri = format!("file:{}?mode=ro{immutable}", escaped(name));
    let mut connection = SqliteConnection::establish(&uri).map_err(|error| unusable(path, error))?;
    connection.batch_execute("PRAGMA busy_timeout = 1000; PRAGMA query_only = ON;")?;
    Ok(connection)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Escapes a path for a SQLite URI.
fn escaped(path: &str) -> String {
    path.replace('%', "%25").replace('?', "%3f").replace('#', "%23")
}

fn unusable(path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> InspectionError {
    OpenError::File { path: path.to_owned(), source: source.into() }.into()
}
