//! Temporary exemptions: keys and items whose rules do not apply while an erasure edits them.
//!
//! What is stored may be older than the rules, and may name others who were erased and are still to
//! be taken out. Were such an edit judged like any write, an erasure could never be finished. So
//! the eraser says which place is being edited, and nothing written there is refused meanwhile,
//! by any client; it is indexed and counted as always. Afterwards the eraser waits for writes
//! under way and looks once more.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use kstone_core::sync::Mutex;

use super::Governor;
use crate::index::Location;

/// The places, and how many guards each has.
#[derive(Debug, Default)]
pub(super) struct Exempt {
    /// How many guards there are, so that a write costs one look while there are none.
    count: AtomicUsize,
    places: Mutex<HashMap<Location, usize>>,
}

/// A guard: nothing written to a place is refused while it lives.
#[derive(Debug)]
pub(crate) struct ExemptPlace<'g> {
    exempt: &'g Exempt,
    place: Location,
}

impl Governor {
    /// Refuses nothing that is written to this place until the guard is dropped. Of a member, the
    /// whole collection is meant.
    pub(crate) fn exempt(&self, place: &Location) -> ExemptPlace<'_> {
        let place = match place {
            Location::Member { db, key, .. } => Location::Key { db: *db, key: key.clone() },
            place => place.clone(),
        };
        *self.exempt.places.lock().entry(place.clone()).or_default() += 1;
        self.exempt.count.fetch_add(1, Ordering::Release);
        ExemptPlace { exempt: &self.exempt, place }
    }
}

impl Exempt {
    /// Whether the place that `location` answers is exempt.
    pub(super) fn has(&self, location: impl FnOnce() -> Location) -> bool {
        self.count.load(Ordering::Acquire) > 0 && self.places.lock().contains_key(&location())
    }
}

impl Drop for ExemptPlace<'_> {
    fn drop(&mut self) {
        let mut places = self.exempt.places.lock();
        if let Some(guards) = places.get_mut(&self.place) {
            *guards -= 1;
            if *guards == 0 {
                places.remove(&self.place);
            }
        }
        self.exempt.count.fetch_sub(1, Ordering::Release);
    }
}
