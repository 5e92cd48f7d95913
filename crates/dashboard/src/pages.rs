//! Pages of lists.

use launchway_application::Error;
use launchway_domain::page::{Page, PageRequest};

use crate::error::encoded;

/// A choice of a filter or of a field.
pub(crate) struct Choice {
    pub(crate) name: &'static str,
    pub(crate) is_selected: bool,
}

impl Choice {
    pub(crate) fn named(name: &'static str, selected: &str) -> Self {
        Self { name, is_selected: name == selected }
    }
}

/// The links below a list.
#[derive(Default)]
pub(crate) struct Pager {
    pub(crate) current: i64,
    pub(crate) last: i64,
    /// The other parameters.
    pub(crate) query: String,
    pub(crate) previous: Option<String>,
    pub(crate) next: Option<String>,
}

impl Pager {
    /// Returns the links of a page, whose other parameters are `query`.
    pub(crate) fn of<T>(page: &Page<T>, query: &[(&str, &str)]) -> Self {
        let current = page.request.number();
        let others = query.iter().filter(|(_, value)| !value.is_empty());
        let others: String = others.map(|(name, value)| format!("&{name}={}", encoded(value))).collect();
        let link = |number: i64| format!("?page={number}{others}");
        Self {
            current,
            last: page.total_pages().max(1),
            previous: page.has_previous().then(|| link(current - 1)),
            next: page.has_next().then(|| link(current + 1)),
            query: others.trim_start_matches('&').to_owned(),
        }
    }
}

/// Returns the requested page, of `size` items; the first one if none is named.
pub(crate) fn requested(number: Option<&str>, size: i64) -> Result<PageRequest, Error> {
    let number = number.filter(|number| !number.is_empty()).unwrap_or("1");
    let number = number.parse().map_err(|_invalid| Error::Invalid("page must be a number".to_owned()))?;
    PageRequest::new(number, size, size).map_err(|invalid| Error::Invalid(invalid.to_string()))
}
