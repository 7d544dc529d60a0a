//! What a page shows in place of what was asked for.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::frame::{Frame, page};
use crate::request;

/// Why there is no page.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// There is no such thing: which.
    NotFound(String),
    /// What was asked for makes no sense, or may not be: why.
    Refused(String),
    /// The store could not answer.
    Failed(String),
    /// Something that is needed is turned off: what, and how it is turned on.
    Off(&'static str, Markup),
}

pub(crate) type Shown<T = Markup> = Result<T, Trouble>;

impl From<kstone::Error> for Trouble {
    fn from(error: kstone::Error) -> Self {
        match error {
            kstone::Error::NotFound(_) => Trouble::NotFound(error.to_string()),
            kstone::Error::Validation(_) | kstone::Error::Refused(_) => {
                Trouble::Refused(error.to_string())
            }
            error => Trouble::Failed(error.to_string()),
        }
    }
}

impl From<kstone_redis::port::Error> for Trouble {
    fn from(error: kstone_redis::port::Error) -> Self {
        Trouble::Failed(error.to_string())
    }
}

impl From<kstone_keyspace::erasure::ErasureError> for Trouble {
    fn from(error: kstone_keyspace::erasure::ErasureError) -> Self {
        Trouble::Failed(error.to_string())
    }
}

impl From<kstone_learn::engine::Error> for Trouble {
    fn from(error: kstone_learn::engine::Error) -> Self {
        use kstone_learn::engine::Error;
        match error {
            Error::NotFound { .. } => Trouble::NotFound(error.to_string()),
            Error::Invalid(_)
            | Error::Refused { .. }
            | Error::TooEarly { .. }
            | Error::Conflict { .. } => Trouble::Refused(error.to_string()),
            error => Trouble::Failed(error.to_string()),
        }
    }
}

impl From<kstone_learn::work::Error> for Trouble {
    fn from(error: kstone_learn::work::Error) -> Self {
        Trouble::Failed(error.to_string())
    }
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        let (status, title, content) = match self {
            Trouble::NotFound(what) => (StatusCode::NOT_FOUND, "Not found", html! { p { (what) } }),
            Trouble::Refused(why) => {
                (StatusCode::BAD_REQUEST, "That does not work", html! { p { (why) } })
            }
            Trouble::Failed(why) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "The store did not answer",
                html! { p { (why) } p.faint { "Request " code { (request::id()) } } },
            ),
            Trouble::Off(title, how) => (StatusCode::SERVICE_UNAVAILABLE, title, how),
        };
        let content = html! {
            h1 { (title) }
            div.empty { (content) p { a href="/" { "Back to the overview" } } }
        };
        (status, page(&Frame::new(title, None), &content)).into_response()
    }
}
