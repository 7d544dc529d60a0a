//! Long lists, a page at a time: `limit` and `cursor` in, `next` out.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kstone_base::page::PageRequest;
use serde::{Deserialize, Serialize};

use super::Result;
use super::problem::Problem;

/// The rows of a page, at most.
const LIMIT_MAX: u32 = 1000;
const LIMIT: u32 = 100;

/// Which part of a list is asked for.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct PageParams {
    /// How many rows, from 1 to 1000; default 100
    #[param(minimum = 1, maximum = 1000)]
    pub limit: Option<u32>,
    /// `next` of the page before
    pub cursor: Option<String>,
}

/// Some of many, and where to go on.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Page<T> {
    /// These.
    pub items: Vec<T>,
    /// What to send as `cursor` for the next page; not there if this was the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// A page with the cursor as the store knows it.
    pub fn new(items: Vec<T>, next: Option<String>) -> Page<T> {
        Page { items, next: next.map(shown_cursor) }
    }
}

impl<T> From<kstone_base::page::Page<T>> for Page<T> {
    fn from(page: kstone_base::page::Page<T>) -> Page<T> {
        Page::new(page.items, page.next)
    }
}

/// Where to go on, as clients send it back: nothing for them to take apart.
pub(super) fn shown_cursor(cursor: String) -> String {
    URL_SAFE_NO_PAD.encode(cursor)
}

/// What is asked for, if it can be.
pub(super) fn page_asked(limit: Option<u32>, cursor: Option<String>) -> Result<PageRequest> {
    let limit = limit.unwrap_or(LIMIT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(Problem::invalid("limit", format!("must be from 1 to {LIMIT_MAX}")));
    }
    let cursor = cursor.map(|text| {
        let decoded = URL_SAFE_NO_PAD.decode(&text).ok().and_then(|it| String::from_utf8(it).ok());
        decoded.filter(|it| !it.is_empty()).ok_or_else(|| {
            Problem::invalid("cursor", "must be what `next` of the page before says")
        })
    });
    Ok(PageRequest { limit, cursor: cursor.transpose()? })
}

impl PageParams {
    /// What is asked for, if it can be.
    pub fn asked(self) -> Result<PageRequest> {
        page_asked(self.limit, self.cursor)
    }
}
