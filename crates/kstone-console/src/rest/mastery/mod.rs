//! Mastery over REST: learners, their events, and what follows from them.

mod batches;
mod current;
mod events;
mod insight;
mod learners;
mod schools;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;

use crate::console::Console;

/// Every call with its description.
pub(super) fn routes() -> OpenApiRouter<Arc<Console>> {
    OpenApiRouter::new()
        .merge(events::routes())
        .merge(current::routes())
        .merge(insight::routes())
        .merge(batches::routes())
        .merge(learners::routes())
        .merge(schools::routes())
}
