//! Pagination: limit and cursor, the same for every list.

use serde::{Deserialize, Serialize};

/// One page of a list, and the cursor of the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Page<T> {
    /// These.
    pub items: Vec<T>,
    /// What to ask for the next page with; `None` if this was the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Which page of a list to return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// How many at most; from 1 to 1000.
    pub limit: u32,
    /// [`Page::next`] of the page before; `None` at the beginning.
    pub cursor: Option<String>,
}

impl Default for PageRequest {
    /// The first hundred.
    fn default() -> Self {
        PageRequest { limit: 100, cursor: None }
    }
}

impl PageRequest {
    /// The limit, clamped to what one page may have.
    pub fn limit(&self) -> u32 {
        self.limit.clamp(1, 1000)
    }
}
