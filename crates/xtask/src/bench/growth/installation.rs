//! A server whose tables have a given number of rows.

use std::{path::PathBuf, process::Command};

use anyhow::Result;

use crate::{
    bench::{Connection, Server, http, launch},
    workspace::{self, dist},
};

/// The largest number of log lines that `rows` gives one application.
pub(crate) const LINES_OF_ONE: u32 = 190_000;

/// The location of an installation, and the source of its applications.
pub(crate) struct Place {
    pub(crate) data: PathBuf,
    /// The URL of a PostgreSQL database; `None` for SQLite.
    pub(crate) database: Option<String>,
    /// The repository of the one application that is deployed.
    pub(crate) repository: PathBuf,
    /// The port of a code host that never answers.
    pub(crate) silent: u16,
}

impl Place {
    /// Starts a server with one deployment at a time, and local repositories.
    fn serve(&self) -> Result<Server> {
        let mut settings = vec![
            ("LAUNCHWAY_LOG", "warn".to_owned()),
            ("LAUNCHWAY_MAX_BUILDS", "1".to_owned()),
            ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", self.repository.display().to_string()),
            ("LAUNCHWAY_GIT_ALLOW", format!("127.0.0.1/32:{}", self.silent)),
        ];
        settings.extend(self.database.clone().map(|url| ("LAUNCHWAY_DATABASE_URL", url)));
        launch::serve(&self.data, &settings)
    }

    fn url(&self) -> String {
        let file = || format!("sqlite://{}", self.data.join("launchway.db").display());
        self.database.clone().unwrap_or_else(file)
    }
}

/// A running server with large tables.
pub(crate) struct Installation {
    pub(crate) server: Server,
    pub(crate) token: String,
    pub(crate) rows: u32,
    /// The application that the API created, and its deployment.
    pub(crate) application: String,
    pub(crate) deployment: String,
    /// The URL of a repository that is never fetched.
    pub(crate) repository: String,
    asked: u32,
}

impl Installation {
    /// Deploys one application, copies its rows, and restarts the server.
    pub(crate) fn prepare(place: Place, rows: u32) -> Result<Self> {
        let server = place.serve()?;
        let token = launch::register(&server)?;
        let body = launch::static_site("template", place.repository.display());
        let application = launch::create(&server, &token, &body)?;
        let deployed = launch::wait_until_deployed(server.port, &token, &application)?;
        let deployment = http::text_field(&deployed, "id")?;
        drop(server);
        workspace::output(Command::new(dist("examples/rows")).arg(place.url()).arg(rows.to_string()))?;
        let server = place.serve()?;
        let repository = format!("http://127.0.0.1:{}/silent.git", place.silent);
        Ok(Self { server, token, rows, application, deployment, repository, asked: 0 })
    }

    pub(crate) fn connect(&self) -> Result<Connection> {
        Connection::open(self.server.port, Some(&self.token))
    }

    /// Returns a number that was not returned before.
    pub(crate) fn next(&mut self) -> u32 {
        self.asked += 1;
        self.asked
    }
}
