//! The console: one file for each page.

use std::sync::Arc;

use axum::Router;

use crate::console::Console;

/// The pages.
pub fn router(console: Arc<Console>) -> Router {
    Router::new().with_state(console)
}
