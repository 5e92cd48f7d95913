//! Direct access to the server's database.

use diesel::{
    Connection, PgConnection, QueryableByName, RunQueryDsl, SqliteConnection, connection::SimpleConnection,
    sql_query, sql_types::Text,
};

use super::TestServer;
use crate::postgres;

/// A user besides the administrator, with an organization of their own. Their password is the
/// administrator's.
pub struct OtherTenant {
    /// Their e-mail address.
    pub email: &'static str,
    /// The id of their organization.
    pub organization_id: &'static str,
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    value: String,
}

impl TestServer {
    /// Returns the column `value` of a query.
    pub fn query(&self, query: &str) -> Vec<String> {
        let query = sql_query(query);
        let rows: Vec<Row> = match &self.database {
            Some(database) => query.load(&mut PgConnection::establish(&database.url()).unwrap()),
            None => query.load(&mut self.sqlite()),
        }
        .unwrap();
        rows.into_iter().map(|row| row.value).collect()
    }

    /// Runs statements without the server's knowledge.
    pub fn execute(&self, statements: &str) {
        match &self.database {
            Some(database) => PgConnection::establish(&database.url()).unwrap().batch_execute(statements),
            None => self.sqlite().batch_execute(statements),
        }
        .unwrap();
    }

    /// Inserts a user with that role in an organization of their own into the database, besides the
    /// administrator.
    pub fn other_tenant(&self, role: &str) -> OtherTenant {
        const USER: &str = "01980000-0000-7000-8000-00000000000a";
        const ORGANIZATION: &str = "01980000-0000-7000-8000-00000000000b";
        const MEMBERSHIP: &str = "01980000-0000-7000-8000-00000000000c";
        let [user, organization, membership] = [USER, ORGANIZATION, MEMBERSHIP].map(|id| self.id(id));
        self.execute(&format!(
            "INSERT INTO users SELECT {user}, 'grace', 'grace@example.com', 'grace@example.com', avatar, \
                 'app_user', is_verified, two_factor_enabled, idp_user_id, created_at, updated_at, deleted_at \
                 FROM users;
             INSERT INTO passwords SELECT {user}, hash, changed_at FROM passwords;
             INSERT INTO organizations SELECT {organization}, 'Next door', 'next door', description, created_at, \
                 updated_at, deleted_at FROM organizations;
             INSERT INTO memberships SELECT {membership}, {organization}, {user}, '{role}', created_at, \
                 updated_at, deleted_at FROM memberships;"
        ));
        OtherTenant { email: "grace@example.com", organization_id: ORGANIZATION }
    }

    /// Makes the PostgreSQL database unreachable, and ends the connections to it.
    pub fn lose_database(&self) {
        let name = self.database_name();
        self.on_postgres_itself(&format!(
            "ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false;
             SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}';"
        ));
    }

    /// Makes the PostgreSQL database reachable again.
    pub fn regain_database(&self) {
        let name = self.database_name();
        self.on_postgres_itself(&format!("ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true;"));
    }

    /// Terminates the session that holds the server's lock on the PostgreSQL database, and takes the lock.
    /// It is held as long as the returned connection lives.
    pub fn steal_server_lock(&self) -> PgConnection {
        let url = self.database.as_ref().expect("a PostgreSQL database").url();
        let waiting = std::thread::spawn(move || {
            let mut connection = PgConnection::establish(&url).unwrap();
            connection
                .batch_execute("SELECT pg_advisory_lock(1818326382, hashtext(current_schema()))")
                .unwrap();
            connection
        });
        // Only a session that already waits is sure to get it before the server retries.
        let is_waiting = "SELECT 'yes' AS value FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        while self.query(is_waiting).is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        self.end_server_lock();
        waiting.join().unwrap()
    }

    /// Terminates the session that holds the server's lock on the PostgreSQL database.
    pub fn end_server_lock(&self) {
        self.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted
                 AND classid::bigint = 1818326382
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        );
    }

    fn sqlite(&self) -> SqliteConnection {
        let path = self.data_dir().join("launchway.db");
        let mut connection = SqliteConnection::establish(path.to_str().unwrap()).unwrap();
        connection.batch_execute("PRAGMA busy_timeout = 5000; PRAGMA foreign_keys = ON;").unwrap();
        connection
    }

    /// Formats an id as the database stores it.
    fn id(&self, id: &str) -> String {
        match &self.database {
            Some(_) => format!("'{id}'::uuid"),
            None => format!("X'{}'", id.replace('-', "")),
        }
    }

    fn database_name(&self) -> String {
        let url = self.database.as_ref().expect("a PostgreSQL database").url();
        url.split('?').next().and_then(|url| url.rsplit('/').next()).unwrap().to_owned()
    }

    fn on_postgres_itself(&self, statements: &str) {
        // One at a time: the first of them may not share a transaction with others.
        let mut connection = PgConnection::establish(&postgres::url()).unwrap();
        for statement in statements.split_inclusive(';') {
            connection.batch_execute(statement).unwrap();
        }
    }
}
