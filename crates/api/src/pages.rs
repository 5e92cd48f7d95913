//! The JSON of pages.

use launchway_domain::page::{Page, PageRequest};
use serde::Serialize;
use utoipa::ToSchema;

use crate::fields::{Fields, Refused};

/// The position of a page in a list.
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

/// The default and the largest page size of a list.
pub(crate) struct PageSizes {
    pub(crate) default: i64,
    pub(crate) largest: i64,
}

impl PageSizes {
    /// Reads `page` and `page_size`, also spelled `pageSize`, from a query.
    pub(crate) fn take(&self, fields: &mut Fields) -> Result<PageRequest, Refused> {
        let number = fields.optional("page");
        let size = fields.optional("page_size");
        let same = fields.optional("pageSize");
        let size = match (size, same) {
            (Ok(size), Ok(same)) => at_least_1(fields, "page_size", size.or(same).unwrap_or(self.default)),
            _ => Err(Refused),
        };
        let number = at_least_1(fields, "page", number?.unwrap_or(1));
        let (number, size) = (number?, size?);
        PageRequest::new(number, size, self.largest)
            .or_else(|(name, refused)| fields.refuse(format!("{name} {refused}")))
    }
}

fn at_least_1(fields: &mut Fields, name: &str, value: i64) -> Result<i64, Refused> {
    if value >= 1 { Ok(value) } else { fields.refuse(format!("{name} must be at least 1, got {value}")) }
}
