//! A database of its own for each test.

use std::{fs, path::Path, time::Duration};

use diesel::{Connection as _, SqliteConnection, connection::SimpleConnection as _};
use launchway_database::{Database, DatabaseOptions, DatabaseUrl};
use launchway_testkit::{migrations, postgres::FreshDatabase};
use tempfile::TempDir;

/// Makes each function a test on SQLite and one on PostgreSQL.
macro_rules! contract {
    ($($promise:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test]
            async fn $promise() {
                let fresh = crate::fresh::Fresh::on_sqlite().await;
                super::$promise((&fresh).into()).await;
            })*
        }

        mod on_postgres {
            $(#[tokio::test]
            async fn $promise() {
                let fresh = crate::fresh::Fresh::on_postgres().await;
                super::$promise((&fresh).into()).await;
            })*
        }
    };
}

/// A database with empty tables, removed on drop.
pub(crate) struct Fresh {
    pub(crate) database: Database,
    place: Place,
}

enum Place {
    Folder(TempDir),
    Server(FreshDatabase),
}

impl Fresh {
    pub(crate) async fn on_sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("launchway-template-{:016x}.db", migrations::fingerprint("sqlite"));
        let template = std::env::temp_dir().join(name);
        if !template.exists() {
            create_template(&template).await;
        }
        fs::copy(&template, folder.path().join(FILE)).unwrap();
        Self::new(Place::Folder(folder)).await
    }

    pub(crate) async fn on_postgres() -> Self {
        Self::new(Place::Server(FreshDatabase::migrated())).await
    }

    async fn new(place: Place) -> Self {
        let database = Database::open(place.options()).unwrap();
        database.migrate().await.unwrap();
        Self { database, place }
    }

    /// Opens the same database once more, as another process would.
    pub(crate) fn open_again(&self) -> Database {
        self.open_with(|_| ())
    }

    /// Opens the same database once more, with other options.
    pub(crate) fn open_with(&self, change: impl FnOnce(&mut DatabaseOptions)) -> Database {
        let mut options = self.place.options();
        change(&mut options);
        Database::open(options).unwrap()
    }

    /// Returns the URL of the database.
    pub(crate) fn url(&self) -> DatabaseUrl {
        self.place.options().url
    }

    /// Returns the folder of the SQLite file; `None` on PostgreSQL.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match &self.place {
            Place::Folder(folder) => Some(folder.path()),
            Place::Server(_) => None,
        }
    }
}

/// Creates a file with empty tables: a copy of it takes a tenth of the time of the migrations.
async fn create_template(path: &Path) {
    let fresh = Fresh::new(Place::Folder(tempfile::tempdir_in(path.parent().unwrap()).unwrap())).await;
    let folder = fresh.folder().unwrap();
    let copy = folder.join("copy.db");
    let mut connection = SqliteConnection::establish(&folder.join(FILE).display().to_string()).unwrap();
    connection.batch_execute(&format!("VACUUM INTO '{}'", copy.display())).unwrap();
    // Several tests may do this at once: each file is whole.
    fs::rename(copy, path).unwrap();
}

impl From<&Fresh> for Database {
    fn from(fresh: &Fresh) -> Self {
        fresh.database.clone()
    }
}

/// The name of the SQLite file.
pub(crate) const FILE: &str = "launchway.db";

impl Place {
    fn options(&self) -> DatabaseOptions {
        let url = match self {
            Self::Folder(folder) => DatabaseUrl::Sqlite(folder.path().join(FILE)),
            Self::Server(server) => server.url().parse().unwrap(),
        };
        // A busy machine makes tests slow, not wrong.
        let max_wait = Duration::from_secs(60);
        DatabaseOptions { connections: 4, max_wait, ..DatabaseOptions::new(url) }
    }
}
