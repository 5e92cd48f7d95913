//! The JSON of pages.

use launchway_domain::page::{Page, PageRequest};
use serde::Serialize;
use utoipa::ToSchema;

use crate::fields::{AtLeast, Field, Fields, Properties, Refused, Take, out_of_range};

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

/// The requested page of a list, with the default and the largest size of its pages.
///
/// It stands for `page` and `page_size`, also spelled `pageSize`.
pub(crate) struct Paged<const DEFAULT: i64, const LARGEST: i64>(pub(crate) PageRequest);

impl<const DEFAULT: i64, const LARGEST: i64> Take for Paged<DEFAULT, LARGEST> {
    fn take(fields: &mut Fields, _name: &str) -> Result<Self, Refused> {
        let number = fields.optional::<AtLeast<1>>("page");
        let size = fields.optional::<AtLeast<1>>("page_size");
        let same = fields.optional::<AtLeast<1>>("pageSize");
        let number = number?.map_or(1, |number| number.0);
        let size = size?.or(same?).map_or(DEFAULT, |size| size.0);
        PageRequest::new(number, size, LARGEST)
            .map(Self)
            .or_else(|invalid| fields.refuse(invalid.field, out_of_range(invalid.reason.to_string())))
    }

    fn describe(properties: &mut Properties, _name: &str, _about: &str) {
        properties.add("page", "Page number, from 1", false, AtLeast::<1>::schema());
        let about = format!("Page size: default {DEFAULT}, at most {LARGEST}; also `pageSize`");
        properties.add("page_size", &about, false, AtLeast::<1>::schema());
        properties.also("pageSize");
    }
}
