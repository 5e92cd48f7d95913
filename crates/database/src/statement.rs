//! Statements that are prepared once on each connection.
//!
//! Diesel prepares a statement again each time if it cannot know how many texts it has: every update, every
//! `ON CONFLICT DO UPDATE`, every literal and every list of values. A statement that is not prepared costs PostgreSQL
//! a second round trip, and both databases a new plan (decision 60).
//!
//! **Invariant:** the number of texts of a statement here is bounded: literals are `'static`, and only lists of one value
//! are prepared. Longer ones need a plan of their own: that of an earlier list may read a whole table.

use std::{cell::Cell, marker::PhantomData};

use diesel::{
    AppearsOnTable, Expression, QueryResult, RunQueryDsl, SelectableExpression,
    backend::Backend,
    expression::{AsExpression, TypedExpressionType, ValidGrouping, is_aggregate},
    internal::derives::multiconnection::AstPassHelper as _,
    query_builder::{AstPass, Query, QueryFragment, QueryId},
    sql_types::{Bool, SingleValue, SqlType},
};

/// A statement that stays prepared, though Diesel would prepare it each time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cached<Q>(Q);

/// Keeps statements prepared.
pub(crate) trait StatementCache: Sized {
    /// Returns the same statement, which stays prepared on its connection.
    fn cached(self) -> Cached<Self> {
        Cached(self)
    }
}

impl<Q> StatementCache for Q {}

impl<Q, DB> QueryFragment<DB> for Cached<Q>
where
    DB: Backend,
    Q: QueryFragment<DB>,
{
    fn walk_ast<'b>(&'b self, pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        let is_text = Cell::new(false);
        let mut pass = pass.cast_database::<DB>(
            |binds| binds,
            |text| {
                is_text.set(true);
                text
            },
            |backend| backend,
            |lookup| lookup,
        );
        if is_text.get() || pass.bind_collector().is_some() || pass.debug_binds().is_some() {
            return self.0.walk_ast(pass);
        }
        // Diesel asks whether the statement may be cached, or whether it is empty.
        pass.push_sql(" ");
        Ok(())
    }
}

impl<Q> QueryId for Cached<Q> {
    // The cache compares the texts of statements.
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Q: Query> Query for Cached<Q> {
    type SqlType = Q::SqlType;
}

impl<Q, C> RunQueryDsl<C> for Cached<Q> {}

/// A literal of SQL.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Literal<T> {
    text: &'static str,
    of_type: PhantomData<T>,
}

/// Returns a literal of SQL, which may be part of a prepared statement.
pub(crate) fn literal<T>(text: &'static str) -> Literal<T> {
    Literal { text, of_type: PhantomData }
}

impl<T, DB: Backend> QueryFragment<DB> for Literal<T> {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        pass.push_sql(self.text);
        Ok(())
    }
}

impl<T> QueryId for Literal<T> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<T: SqlType + TypedExpressionType> Expression for Literal<T> {
    type SqlType = T;
}

impl<T, Source> AppearsOnTable<Source> for Literal<T> where Self: Expression {}

impl<T, Source> SelectableExpression<Source> for Literal<T> where Self: Expression {}

impl<T, Grouping> ValidGrouping<Grouping> for Literal<T> {
    type IsAggregate = is_aggregate::Never;
}

/// A condition that a column has one of several values.
#[derive(Debug, Clone)]
pub(crate) struct OneOf<C, V> {
    column: C,
    values: Vec<V>,
}

/// Compares columns with lists.
pub(crate) trait ListComparison: Expression + Sized {
    /// Returns the condition that the column has one of `values`.
    fn one_of<I>(self, values: I) -> OneOf<Self, <I::Item as AsExpression<Self::SqlType>>::Expression>
    where
        I: IntoIterator,
        I::Item: AsExpression<Self::SqlType>,
        Self::SqlType: SqlType + TypedExpressionType + SingleValue,
    {
        OneOf { column: self, values: values.into_iter().map(AsExpression::as_expression).collect() }
    }
}

impl<C: Expression> ListComparison for C {}

impl<C, V, DB> QueryFragment<DB> for OneOf<C, V>
where
    DB: Backend,
    C: QueryFragment<DB>,
    V: QueryFragment<DB>,
{
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        if self.values.is_empty() {
            pass.push_sql("1=0");
            return Ok(());
        }
        if self.values.len() > 1 {
            pass.unsafe_to_cache_prepared();
        }
        self.column.walk_ast(pass.reborrow())?;
        pass.push_sql(" IN (");
        for (index, value) in self.values.iter().enumerate() {
            if index > 0 {
                pass.push_sql(", ");
            }
            value.walk_ast(pass.reborrow())?;
        }
        pass.push_sql(")");
        Ok(())
    }
}

impl<C, V> QueryId for OneOf<C, V> {
    type QueryId = ();

    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<C, V> Expression for OneOf<C, V> {
    type SqlType = Bool;
}

impl<C, V, Source> AppearsOnTable<Source> for OneOf<C, V> where C: AppearsOnTable<Source> {}

impl<C, V, Grouping> ValidGrouping<Grouping> for OneOf<C, V> {
    type IsAggregate = is_aggregate::No;
}

#[cfg(test)]
mod tests;
