//! How often and how long something is tried again: [`Patience`].

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// The first pause; each is twice as long as the one before, up to [`LONGEST`].
const FIRST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(200);

/// So many redirects are followed at once. Nodes that send a call around in a circle disagree, and
/// need time.
const REDIRECTS_AT_ONCE: u32 = 3;

/// How often and how long one call is tried again.
#[derive(Debug)]
pub(crate) struct Patience {
    until: Instant,
    pause: Duration,
    redirects: u32,
}

impl Patience {
    /// That lasts so long from now.
    pub fn of(limit: Duration) -> Patience {
        Patience { until: Instant::now() + limit, pause: FIRST, redirects: 0 }
    }

    /// Waits before the next attempt; `false` if there should be none.
    pub async fn after_refusal(&mut self) -> bool {
        if Instant::now() + self.pause > self.until {
            return false;
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST);
        true
    }

    /// The same after a redirect, which needs no wait unless there are many.
    pub async fn after_redirect(&mut self) -> bool {
        self.redirects += 1;
        self.redirects <= REDIRECTS_AT_ONCE || self.after_refusal().await
    }
}
