//! Installs ingested files: gives them their sequence number and finds the level for each.

use crate::batch::WriteBatch;
use crate::engine::Inner;
use crate::engine::compact::Claim;
use crate::engine::install::{Added, Change};
use crate::engine::locks::StripeGuards;
use crate::entry::Seq;
use crate::error::Result;
use crate::sst::SstMeta;
use crate::stripes::StripeSet;
use crate::sync::Arc;
use crate::tree::levels::Levels;

impl Inner {
    /// Gives the files their sequence number and their places.
    pub(super) fn install_ingest(self: &Arc<Self>, metas: &[SstMeta]) -> Result<Seq> {
        let stripes: StripeSet = metas.iter().map(|meta| meta.stripe).collect();
        // What is in memory is older than the ingest, and memory is searched first: so it must be
        // in files before. Once without the locks, so that little is left for the second time.
        self.flush_all()?;
        // A compaction may join ranges that leave a gap today, so none may be under way while the
        // files look for a gap to go to.
        let _claims: Vec<_> =
            stripes.iter().map(|stripe| Claim::wait(self, stripe)).collect::<Result<_>>()?;
        let guards = StripeGuards::lock(self, &stripes);
        self.flush_all()?;
        // Before there is a number that others would have to wait for.
        let keeper = self.manifest.lock();
        let mut nop = WriteBatch::new();
        nop.push_nop();
        let ticket = self.log.append(nop.ops(), nop.count())?;
        let seq = ticket.last_seq;
        let result = self.log.wait_durable(seq).and_then(|()| {
            let changes = stripes.iter().map(|stripe| self.place(stripe, metas, seq)).collect();
            self.install_locked(keeper, changes)
        });
        self.next_expiry.forget();
        // The number is spent either way; if the files are not there, it names nothing.
        self.log.applied(ticket);
        drop(guards);
        self.log.wait_visible(seq)?;
        result.map(|()| seq)
    }

    fn place(&self, stripe: u8, metas: &[SstMeta], seq: Seq) -> Change {
        let levels = Arc::clone(&self.stripe(stripe).version().levels);
        let add = metas
            .iter()
            .filter(|meta| meta.stripe == stripe)
            .map(|meta| {
                let level = deepest_free_level(&levels, meta, metas);
                (level, Added::New(SstMeta { global_seq: Some(seq), ..meta.clone() }))
            })
            .collect();
        Change { stripe, add, remove: Vec::new(), flushed: None }
    }
}

/// The deepest level such that neither it nor any above overlaps the file; L0 if none is.
fn deepest_free_level(levels: &Levels, meta: &SstMeta, all: &[SstMeta]) -> u8 {
    let overlaps = |smallest: &[u8], largest: &[u8]| {
        meta.largest.as_slice() >= smallest && meta.smallest.as_slice() <= largest
    };
    let overlaps_sibling = all.iter().any(|other| {
        other.stripe == meta.stripe
            && other.file_id != meta.file_id
            && overlaps(&other.smallest, &other.largest)
    });
    if overlaps_sibling {
        return 0;
    }
    let is_free = |level: usize| {
        levels.level(level).iter().all(|f| !overlaps(&f.meta().smallest, &f.meta().largest))
    };
    let bottom = levels.depth().saturating_sub(1).max(1);
    (0..=bottom).take_while(|&level| is_free(level)).last().unwrap_or(0) as u8
}
