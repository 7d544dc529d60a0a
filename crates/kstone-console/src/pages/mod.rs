//! The console: one file for each page.
//!
//! Pages are made here whole, as HTML; what is in them comes from the ports and from what is built on
//! them. One style sheet and one script are part of the program. The script only asks for parts of a
//! page again (`/live/…`) while somebody looks: without it everything works as it was sent.
//!
//! | module | what it is |
//! |---|---|
//! | `layout` | the frame of all pages |
//! | `error` | what is shown in place of a page |
//! | `overview`, `keyspaces`, `people`, `data` | the store |
//! | `mastery` | schools, classes, learners |
//! | `work`, `audit` | what all systems of the learning platform share |
//! | `charts` | pictures of numbers, as SVG |
//! | `figures`, `json`, `links` | numbers, values and addresses as text |

mod audit;
mod charts;
mod data;
mod error;
mod figures;
mod json;
mod keyspaces;
mod layout;
mod links;
mod mastery;
mod overview;
mod people;
mod work;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use kstone_base::rate_limits::LimitKind;
use kstone_mastery::engine::MasteryEngine;
use kstone_platform::Platform;
use maud::html;

use crate::console::{Console, ConsoleState};
use crate::request;
use crate::server_status::History;

use error::{PageError, PageResult};

/// What every page can ask.
#[derive(Debug, Clone)]
pub(crate) struct Pages {
    pub(crate) console: Arc<Console>,
    pub(crate) history: Arc<History>,
}

impl Pages {
    /// The learning platform, or how it is turned on.
    fn platform(&self) -> PageResult<&Platform> {
        let off = || {
            PageError::Off(
                "The learning platform is off",
                html! {
                    p { "It runs where its catalogues are in force: start the server with "
                        code { "kstone serve --keyspace shipped" } ", or with " code { "--demo" }
                        " for a school that is simulated." }
                },
            )
        };
        self.console.platform.as_deref().ok_or_else(off)
    }

    fn engine(&self) -> PageResult<&MasteryEngine> {
        Ok(&self.platform()?.mastery)
    }
}

/// The pages. Called where tasks can be spawned, it also begins to note what goes through the doors.
pub fn router(console: Arc<Console>) -> Router {
    let history = Arc::new(History::default());
    history.note(console.status.doors());
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        let status = Arc::clone(&console.status);
        runtime.spawn(History::keep(Arc::downgrade(&history), status));
    }
    Router::new()
        .route("/", get(overview::show))
        .route("/live/overview", get(overview::fragment))
        .route("/keyspaces", get(keyspaces::list))
        .route("/keyspaces/{pattern}", get(keyspaces::one))
        .route("/live/keyspaces", get(keyspaces::fragment))
        .route("/people", get(people::find))
        .route("/people/{id}", get(people::one).post(people::erase))
        .route("/people/{id}/export", get(people::export))
        .route("/erasures/{id}", get(people::erasure))
        .route("/erasures/{id}/receipt", get(people::receipt))
        .route("/live/erasures/{id}", get(people::erasure_fragment))
        .route("/data", get(data::show))
        .route("/data/tables/{table}", get(data::items::list))
        .route("/data/tables/{table}/item", get(data::items::one))
        .route("/data/keys", get(data::keys::list))
        .route("/data/key", get(data::keys::one))
        .route("/learn", get(mastery::show))
        .route("/learn/schools/{school}", get(mastery::school))
        .route("/learn/classes/{school}/{class}", get(mastery::class::show))
        .route("/live/learn/classes/{school}/{class}", get(mastery::class::fragment))
        .route("/learn/learners/{id}", get(mastery::learner::show))
        .route("/learn/learners/{id}/feedback", post(mastery::learner::say))
        .route("/work", get(work::show))
        .route("/work/dead/{queue}", get(work::dead).post(work::decide))
        .route("/live/work", get(work::fragment))
        .route("/audit", get(audit::show))
        .fallback(|| async { PageError::NotFound("There is no such page.".to_owned()) })
        .layer(from_fn_with_state(Arc::clone(&console), limit))
        // What belongs to every page is not counted with it.
        .route("/assets/console.css", get(|| asset("text/css", CSS)))
        .route("/assets/console.js", get(|| asset("text/javascript", JS)))
        .route("/assets/icon.svg", get(|| asset("image/svg+xml", ICON)))
        .with_state(Pages { console, history })
}

/// Refuses clients that ask for pages too often, by the limits that the API has.
async fn limit(console: ConsoleState, request: Request, next: Next) -> Response {
    let Some(platform) = console.platform.as_ref().filter(|_| console.options.has_rate_limits)
    else {
        return next.run(request).await;
    };
    let decision = platform.limits.admit(LimitKind::Page, &request::client(&request)).await;
    match decision.allowed {
        true => next.run(request).await,
        false => PageError::TooOften { wait_s: decision.reset_s.max(1) }.into_response(),
    }
}

const CSS: &str = include_str!("assets/console.css");
const JS: &str = include_str!("assets/console.js");
const ICON: &str = include_str!("assets/icon.svg");

/// A file that is part of the program. It is asked for again after an hour, so that a new version of
/// the program is seen soon.
async fn asset(content_type: &'static str, text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, content_type), (header::CACHE_CONTROL, "max-age=3600")], text)
}
