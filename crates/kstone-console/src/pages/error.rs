//! Errors of pages, and the page that shows each.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::figures::counted;
use super::layout::{Layout, page};
use crate::request;

/// Why there is no page.
#[derive(Debug)]
pub(crate) enum PageError {
    /// There is no such thing: which.
    NotFound(String),
    /// What was asked for makes no sense, or may not be: why.
    Refused(String),
    /// The store could not answer.
    Failed(String),
    /// The client asked too often: when it may ask again.
    TooOften {
        /// In so many seconds.
        wait_s: u64,
    },
    /// Something that is needed is turned off: what, and how it is turned on.
    Off(&'static str, Markup),
}

pub(crate) type PageResult<T = Markup> = Result<T, PageError>;

impl From<kstone_ports::Error> for PageError {
    fn from(error: kstone_ports::Error) -> Self {
        match error {
            kstone_ports::Error::NotFound(_) => PageError::NotFound(error.to_string()),
            kstone_ports::Error::Invalid(_) | kstone_ports::Error::Refused(_) => {
                PageError::Refused(error.to_string())
            }
            error => PageError::Failed(error.to_string()),
        }
    }
}

impl From<kstone_keyspace::erasure::ErasureError> for PageError {
    fn from(error: kstone_keyspace::erasure::ErasureError) -> Self {
        PageError::Failed(error.to_string())
    }
}

impl From<kstone_base::Error> for PageError {
    fn from(error: kstone_base::Error) -> Self {
        use kstone_base::Error;
        match error {
            Error::NotFound { .. } => PageError::NotFound(error.to_string()),
            Error::Invalid(_)
            | Error::Refused { .. }
            | Error::TooEarly { .. }
            | Error::Conflict { .. } => PageError::Refused(error.to_string()),
            error => PageError::Failed(error.to_string()),
        }
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let retry_after = match self {
            PageError::TooOften { wait_s } => Some([(header::RETRY_AFTER, wait_s.to_string())]),
            _ => None,
        };
        let (status, title, content) = match self {
            PageError::NotFound(what) => {
                (StatusCode::NOT_FOUND, "Not found", html! { p { (what) } })
            }
            PageError::Refused(why) => {
                (StatusCode::BAD_REQUEST, "That does not work", html! { p { (why) } })
            }
            PageError::Failed(why) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "The store did not answer",
                html! { p { (why) } p.faint { "Request " code { (request::id()) } } },
            ),
            PageError::TooOften { wait_s } => (
                StatusCode::TOO_MANY_REQUESTS,
                "Too many requests",
                html! { p { "Too many pages were asked for from there in a minute. Wait "
                (counted(wait_s, "second", "seconds")) ", then load this page again." } },
            ),
            PageError::Off(title, how) => (StatusCode::SERVICE_UNAVAILABLE, title, how),
        };
        let content = html! {
            h1 { (title) }
            div.empty { (content) p { a href="/" { "Back to the overview" } } }
        };
        let shown = page(&Layout::new(title, None), &content);
        match retry_after {
            Some(headers) => (status, headers, shown).into_response(),
            None => (status, shown).into_response(),
        }
    }
}
