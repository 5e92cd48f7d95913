//! A server whose tables have so many rows.

use std::{path::PathBuf, process::Command};

use crate::{
    bench::{http, http::Connection, launch, server::Server},
    failure::{Failure, Outcome},
    workspace::{self, release},
};

/// How many log lines `rows` gives one application at most.
pub(crate) const LINES_OF_ONE: u32 = 190_000;

/// Where an installation is, and what its applications are made of.
pub(crate) struct Place {
    pub(crate) data: PathBuf,
    /// The URL of a PostgreSQL database; none for SQLite.
    pub(crate) database: Option<String>,
    /// Of the one application that is deployed.
    pub(crate) repository: PathBuf,
    /// Where a code host listens that never answers.
    pub(crate) silent: u16,
}

impl Place {
    /// One deployment at a time, and repositories of this machine.
    fn serve(&self) -> Outcome<Server> {
        let mut settings = vec![
            ("LAUNCHWAY_LOG", "warn".to_owned()),
            ("LAUNCHWAY_MAX_BUILDS", "1".to_owned()),
            ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", self.repository.display().to_string()),
            ("LAUNCHWAY_GIT_ALLOW", format!("127.0.0.1/32:{}", self.silent)),
        ];
        settings.extend(self.database.clone().map(|url| ("LAUNCHWAY_DATABASE_URL", url)));
        launch::serve_with(&self.data, &settings)
    }

    fn url(&self) -> String {
        let file = || format!("sqlite://{}", self.data.join("launchway.db").display());
        self.database.clone().unwrap_or_else(file)
    }
}

/// A running server with long tables.
pub(crate) struct Installation {
    pub(crate) server: Server,
    pub(crate) token: String,
    pub(crate) rows: u32,
    /// The application that the API made, and its deployment.
    pub(crate) application: String,
    pub(crate) deployment: String,
    /// The address of a repository that is never fetched.
    pub(crate) repository: String,
    asked: u32,
}

impl Installation {
    /// Deploys one application, copies its rows, and starts the server anew.
    pub(crate) fn prepare(place: Place, rows: u32) -> Outcome<Self> {
        let server = place.serve()?;
        let token = launch::register(&server)?;
        let wish = launch::static_site("template", &place.repository.display().to_string());
        let application = launch::create(&server, &token, &wish)?;
        let deployed = launch::wait_until_deployed(server.port, &token, &application)?;
        let deployment = http::text_field(&deployed, "id").unwrap_or_default().to_owned();
        drop(server);
        workspace::output(Command::new(release("examples/rows")).arg(place.url()).arg(rows.to_string()))?;
        let server = place.serve()?;
        let repository = format!("http://127.0.0.1:{}/silent.git", place.silent);
        Ok(Self { server, token, rows, application, deployment, repository, asked: 0 })
    }

    pub(crate) fn connect(&self) -> Outcome<Connection> {
        Connection::open(self.server.port, &self.token)
            .map_err(|error| Failure::because("cannot connect to the server", error))
    }

    /// A number that was not given before.
    pub(crate) fn next(&mut self) -> u32 {
        self.asked += 1;
        self.asked
    }
}
