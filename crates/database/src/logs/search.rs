//! Searches in logs.

use std::ops::RangeInclusive;

use diesel::prelude::*;
use launchway_domain::{
    logs::{LogFilter, LogLine},
    page::PageRequest,
};

use super::{NumberRange, matching, newest_first, searched_text};
use crate::{
    columns::DbId,
    connection::{AnyConnection, MultiBackend},
    error::QueryError,
    schema::application_logs,
    search::{
        counts::CountCache,
        index::{Kind, Owner},
        page::{Matches, Search},
    },
    statement::ListComparison as _,
};

/// Returns a page of the lines of `whole` that contain a term and pass the filter, and the number of all of them.
pub(super) fn page_of(
    connection: &mut AnyConnection,
    whole: &NumberRange,
    (filter, term): (&LogFilter, &str),
    page: PageRequest,
    cache: &CountCache,
) -> Result<(Vec<LogLine>, i64), QueryError> {
    let numbers = numbers(connection, whole)?;
    let is_term_only = *filter == LogFilter { search: Some(term.to_owned()), ..LogFilter::default() };
    let owner = Owner { kind: Kind::Log, id: whole.application.0 };
    let matching = MatchingLines { application: whole.application, deployment: whole.deployment, filter };
    let asked = (format!("{filter:?}"), term, is_term_only);
    Search::new(&matching, owner, asked, cache).page(connection, &numbers, page)
}

/// Returns the numbers from the first to the last line of a range, by which the index knows them. Between lines of a
/// deployment there may be those of others.
fn numbers(connection: &mut AnyConnection, whole: &NumberRange) -> Result<RangeInclusive<i64>, QueryError> {
    if whole.deployment.is_none() || whole.numbers.is_empty() {
        return Ok(whole.numbers.clone());
    }
    let number = application_logs::number;
    let first: Option<i64> = whole
        .lines()
        .order(application_logs::deployment_number.asc())
        .select(number)
        .first(connection)
        .optional()?;
    let last: Option<i64> = whole
        .lines()
        .order(application_logs::deployment_number.desc())
        .select(number)
        .first(connection)
        .optional()?;
    Ok(first.unwrap_or(1)..=last.unwrap_or(0))
}

/// The lines of a log that pass a filter.
struct MatchingLines<'a> {
    application: DbId,
    deployment: Option<DbId>,
    filter: &'a LogFilter,
}

type Lines = application_logs::BoxedQuery<'static, MultiBackend>;

impl MatchingLines<'_> {
    fn lines(&self) -> Lines {
        let lines = application_logs::table
            .filter(application_logs::application_id.eq(self.application))
            .into_boxed();
        match self.deployment {
            None => lines,
            Some(deployment) => lines.filter(application_logs::deployment_id.eq(deployment)),
        }
    }

    fn numbered(&self, connection: &AnyConnection, numbers: &RangeInclusive<i64>) -> Lines {
        let lines = self.lines().filter(application_logs::number.between(*numbers.start(), *numbers.end()));
        matching(connection, lines, self.filter)
    }
}

impl Matches for MatchingLines<'_> {
    type Row = LogLine;

    fn count(&self, connection: &mut AnyConnection, numbers: RangeInclusive<i64>) -> Result<i64, QueryError> {
        Ok(self.numbered(connection, &numbers).count().get_result(connection)?)
    }

    fn among(&self, connection: &mut AnyConnection, numbers: &[i64]) -> Result<Vec<i64>, QueryError> {
        let lines = self.lines().filter(application_logs::number.one_of(numbers.to_vec()));
        Ok(matching(connection, lines, self.filter).select(application_logs::number).load(connection)?)
    }

    fn rows(&self, connection: &mut AnyConnection, numbers: &[i64]) -> Result<Vec<LogLine>, QueryError> {
        let lines = self.lines().filter(application_logs::number.one_of(numbers.to_vec()));
        newest_first(connection, (self.application, None), lines)
    }

    fn newest(
        &self,
        connection: &mut AnyConnection,
        numbers: RangeInclusive<i64>,
        limit: i64,
        offset: i64,
    ) -> Result<Vec<LogLine>, QueryError> {
        let lines = self.numbered(connection, &numbers).limit(limit).offset(offset);
        newest_first(connection, (self.application, None), lines)
    }
}

/// Returns the numbers and the searched texts of lines.
pub(crate) fn texts(
    connection: &mut AnyConnection,
    application: DbId,
    numbers: RangeInclusive<i64>,
) -> Result<Vec<(i64, String)>, QueryError> {
    let text = searched_text(connection);
    Ok(application_logs::table
        .filter(application_logs::application_id.eq(application))
        .filter(application_logs::number.between(*numbers.start(), *numbers.end()))
        .select((application_logs::number, text))
        .load(connection)?)
}
