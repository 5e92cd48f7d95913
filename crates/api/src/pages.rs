//! Pages on the wire.

use launchway_domain::page::{Page, PageRequest};
use serde::Serialize;
use utoipa::ToSchema;

use crate::fields::{Fields, Refused};

/// Where in a long list a page is.
#[derive(Serialize, ToSchema)]
pub(crate) struct Pagination {
    current_page: i64,
    page_size: i64,
    total_count: i64,
    total_pages: i64,
    has_next: bool,
    has_prev: bool,
}

impl<T> From<&Page<T>> for Pagination {
    fn from(page: &Page<T>) -> Self {
        Self {
            current_page: page.request.number(),
            page_size: page.request.size(),
            total_count: page.total,
            total_pages: page.total_pages(),
            has_next: page.has_next(),
            has_prev: page.has_previous(),
        }
    }
}

/// How long the pages of a list are.
pub(crate) struct PageSizes {
    pub(crate) default: i64,
    pub(crate) largest: i64,
}

impl PageSizes {
    /// Takes `page` and `page_size`, also spelled `pageSize`, from a query.
    pub(crate) fn take(&self, fields: &mut Fields) -> Result<PageRequest, Refused> {
        let number = fields.optional("page");
        let size = fields.optional("page_size");
        let same = fields.optional("pageSize");
        let (number, size, same): (Option<i64>, Option<i64>, Option<i64>) = (number?, size?, same?);
        PageRequest::new(number.unwrap_or(1), size.or(same).unwrap_or(self.default), self.largest)
            .or_else(|(name, refused)| fields.refuse(format!("{name} {refused}")))
    }
}
