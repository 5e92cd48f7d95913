//! A connection to either database.
//!
//! Diesel's own connection to several databases compiles everything that runs a query once for each query and each
//! database. This one passes on queries without their types, so that only the text and the parameters of a query are code
//! of its own (decision 63).

use diesel::{
    Connection, QueryResult,
    backend::Backend,
    connection::{
        CacheSize, DefaultLoadingMode, Instrumentation, LoadConnection, SimpleConnection, TransactionManager,
        TransactionManagerStatus,
    },
    expression::QueryMetadata,
    internal::derives::multiconnection::{AstPassHelper as _, ConnectionSealed, MultiConnectionHelper as _},
    migration::MigrationConnection,
    pg::{Pg, PgConnection},
    query_builder::{AstPass, Query, QueryBuilder as _, QueryFragment, QueryId},
    r2d2::R2D2Connection,
    result::{ConnectionError, ConnectionResult},
    sql_types::Untyped,
    sqlite::{Sqlite, SqliteConnection},
};

/// A connection to either database, on which the same queries run.
pub enum AnyConnection {
    /// To a SQLite file.
    Sqlite(SqliteConnection),
    /// To a PostgreSQL server.
    Postgres(PgConnection),
}

/// Runs the same expression on either connection.
macro_rules! either {
    ($any:expr, $connection:ident => $expression:expr) => {
        match $any {
            AnyConnection::Sqlite($connection) => $expression,
            AnyConnection::Postgres($connection) => $expression,
        }
    };
}

/// The connections from which Diesel derives [`MultiBackend`], its rows and its parameters. Nothing connects by it.
#[derive(diesel::MultiConnection)]
pub enum Backends {
    /// To SQLite.
    Sqlite(SqliteConnection),
    /// To PostgreSQL.
    Postgres(PgConnection),
}

type TextBuilder = <MultiBackend as Backend>::QueryBuilder;
type Parameters<'a> = <MultiBackend as Backend>::BindCollector<'a>;
type Cursor<'connection, 'query> = <Backends as LoadConnection>::Cursor<'connection, 'query>;

/// The part of a query that depends on its type.
trait Fragment {
    fn walk<'b>(&'b self, pass: AstPass<'_, 'b, MultiBackend>) -> QueryResult<()>;
}

impl<Q: QueryFragment<MultiBackend>> Fragment for Q {
    fn walk<'b>(&'b self, pass: AstPass<'_, 'b, MultiBackend>) -> QueryResult<()> {
        self.walk_ast(pass)
    }
}

/// A query without its type.
enum AnyQuery<'query> {
    Borrowed(&'query dyn Fragment),
    Owned(Box<dyn Fragment + 'query>),
}

impl<'query> AnyQuery<'query> {
    fn fragment(&self) -> &(dyn Fragment + 'query) {
        match self {
            Self::Borrowed(fragment) => *fragment,
            Self::Owned(fragment) => &**fragment,
        }
    }
}

impl QueryFragment<MultiBackend> for AnyQuery<'_> {
    fn walk_ast<'b>(&'b self, pass: AstPass<'_, 'b, MultiBackend>) -> QueryResult<()> {
        self.fragment().walk(pass)
    }
}

/// A query and its text for one of the databases.
struct Statement<'query> {
    query: AnyQuery<'query>,
    backend: MultiBackend,
    text: String,
    stays_prepared: bool,
}

impl<'query> Statement<'query> {
    fn of_sqlite(query: AnyQuery<'query>) -> QueryResult<Self> {
        Self::write(query, MultiBackend::Sqlite(Sqlite), TextBuilder::Sqlite(Default::default()))
    }

    fn of_postgres(query: AnyQuery<'query>) -> QueryResult<Self> {
        Self::write(query, MultiBackend::Postgres(Pg), TextBuilder::Postgres(Default::default()))
    }

    fn write(query: AnyQuery<'query>, backend: MultiBackend, mut text: TextBuilder) -> QueryResult<Self> {
        query.to_sql(&mut text, &backend)?;
        let stays_prepared = query.is_safe_to_cache_prepared(&backend)?;
        Ok(Self { query, backend, text: text.finish(), stays_prepared })
    }

    /// Writes all but the parameters.
    fn write_to<'b, DB: Backend>(&'b self, pass: &mut AstPass<'_, 'b, DB>) -> QueryResult<()> {
        pass.push_sql(&self.text);
        if !self.stays_prepared {
            pass.unsafe_to_cache_prepared();
        }
        if let Some((formatter, _)) = pass.debug_binds() {
            self.query.walk_ast(AstPass::collect_debug_binds_pass(formatter, &self.backend))?;
        }
        Ok(())
    }
}

impl QueryFragment<Sqlite> for Statement<'_> {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        self.write_to(&mut pass)?;
        if let Some((collector, lookup)) = pass.bind_collector() {
            let mut parameters = Parameters::Sqlite(Default::default());
            self.query.collect_binds(&mut parameters, SqliteConnection::to_any(lookup), &self.backend)?;
            if let Parameters::Sqlite(collected) = parameters {
                *collector = collected;
            }
        }
        Ok(())
    }
}

impl QueryFragment<Pg> for Statement<'_> {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        self.write_to(&mut pass)?;
        if let Some((collector, lookup)) = pass.bind_collector() {
            let mut parameters = Parameters::Postgres(Default::default());
            self.query.collect_binds(&mut parameters, PgConnection::to_any(lookup), &self.backend)?;
            if let Parameters::Postgres(collected) = parameters {
                *collector = collected;
            }
        }
        Ok(())
    }
}

impl QueryId for Statement<'_> {
    // The cache of a connection compares the texts of statements.
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl Query for Statement<'_> {
    // Rows are read by the types of the query that was passed on.
    type SqlType = Untyped;
}

impl AnyConnection {
    fn execute_query(&mut self, query: AnyQuery<'_>) -> QueryResult<usize> {
        match self {
            Self::Sqlite(sqlite) => sqlite.execute_returning_count(&Statement::of_sqlite(query)?),
            Self::Postgres(postgres) => postgres.execute_returning_count(&Statement::of_postgres(query)?),
        }
    }

    fn load_query<'connection, 'query>(
        &'connection mut self,
        query: AnyQuery<'query>,
    ) -> QueryResult<Cursor<'connection, 'query>> {
        Ok(match self {
            Self::Sqlite(sqlite) => Cursor::Sqlite(sqlite.load(Statement::of_sqlite(query)?)?),
            Self::Postgres(postgres) => {
                let rows =
                    LoadConnection::<DefaultLoadingMode>::load(postgres, Statement::of_postgres(query)?)?;
                Cursor::Postgres(rows)
            }
        })
    }
}

impl ConnectionSealed for AnyConnection {}

impl SimpleConnection for AnyConnection {
    fn batch_execute(&mut self, query: &str) -> QueryResult<()> {
        either!(self, connection => connection.batch_execute(query))
    }
}

impl Connection for AnyConnection {
    type Backend = MultiBackend;
    type TransactionManager = Self;

    fn establish(_url: &str) -> ConnectionResult<Self> {
        Err(ConnectionError::BadConnection("the URL does not say which database it is of".to_owned()))
    }

    fn execute_returning_count<Q>(&mut self, query: &Q) -> QueryResult<usize>
    where
        Q: QueryFragment<MultiBackend> + QueryId,
    {
        self.execute_query(AnyQuery::Borrowed(query))
    }

    fn transaction_state(&mut self) -> &mut Self {
        self
    }

    fn instrumentation(&mut self) -> &mut dyn Instrumentation {
        either!(self, connection => connection.instrumentation())
    }

    fn set_instrumentation(&mut self, instrumentation: impl Instrumentation) {
        either!(self, connection => connection.set_instrumentation(instrumentation));
    }

    fn set_prepared_statement_cache_size(&mut self, size: CacheSize) {
        either!(self, connection => connection.set_prepared_statement_cache_size(size));
    }
}

impl LoadConnection for AnyConnection {
    type Cursor<'connection, 'query> = Cursor<'connection, 'query>;
    type Row<'connection, 'query> = <Backends as LoadConnection>::Row<'connection, 'query>;

    fn load<'connection, 'query, Q>(
        &'connection mut self,
        query: Q,
    ) -> QueryResult<Cursor<'connection, 'query>>
    where
        Q: Query + QueryFragment<MultiBackend> + QueryId + 'query,
        MultiBackend: QueryMetadata<Q::SqlType>,
    {
        self.load_query(AnyQuery::Owned(Box::new(query)))
    }
}

/// The transaction manager of a connection.
type Manager<C> = <C as Connection>::TransactionManager;

impl TransactionManager<Self> for AnyConnection {
    type TransactionStateData = Self;

    fn begin_transaction(any: &mut Self) -> QueryResult<()> {
        match any {
            Self::Sqlite(sqlite) => Manager::<SqliteConnection>::begin_transaction(sqlite),
            Self::Postgres(postgres) => Manager::<PgConnection>::begin_transaction(postgres),
        }
    }

    fn rollback_transaction(any: &mut Self) -> QueryResult<()> {
        match any {
            Self::Sqlite(sqlite) => Manager::<SqliteConnection>::rollback_transaction(sqlite),
            Self::Postgres(postgres) => Manager::<PgConnection>::rollback_transaction(postgres),
        }
    }

    fn commit_transaction(any: &mut Self) -> QueryResult<()> {
        match any {
            Self::Sqlite(sqlite) => Manager::<SqliteConnection>::commit_transaction(sqlite),
            Self::Postgres(postgres) => Manager::<PgConnection>::commit_transaction(postgres),
        }
    }

    fn transaction_manager_status_mut(any: &mut Self) -> &mut TransactionManagerStatus {
        match any {
            Self::Sqlite(sqlite) => Manager::<SqliteConnection>::transaction_manager_status_mut(sqlite),
            Self::Postgres(postgres) => Manager::<PgConnection>::transaction_manager_status_mut(postgres),
        }
    }
}

impl MigrationConnection for AnyConnection {
    fn setup(&mut self) -> QueryResult<usize> {
        either!(self, connection => connection.setup())
    }
}

impl R2D2Connection for AnyConnection {
    fn ping(&mut self) -> QueryResult<()> {
        either!(self, connection => connection.ping())
    }

    fn is_broken(&mut self) -> bool {
        either!(self, connection => connection.is_broken())
    }
}
