//! Which versions a flush or compaction must keep.
//!
//! Readers look at the database as of a sequence number: the registered snapshots, and whatever
//! the watermark is or will be. [`Boundaries`] holds those numbers. Two versions of a key between
//! the same two boundaries look the same to every reader except that the newer hides the older,
//! so the older can go. Nothing above the watermark may go: a snapshot may yet be taken there.

use crate::entry::{EntryRef, Kind, Seq};
use crate::key::internal;
use crate::table::TableId;
use crate::tables::Tables;

/// The sequence numbers at which a reader may be reading.
#[derive(Debug, Clone)]
pub(crate) struct Boundaries {
    /// Ascending; the last one is the watermark at the moment of asking.
    seqs: Vec<Seq>,
}

impl Boundaries {
    /// `snapshots` ascending, none above `visible`.
    pub(crate) fn new(mut snapshots: Vec<Seq>, visible: Seq) -> Self {
        snapshots.push(visible);
        snapshots.dedup();
        Boundaries { seqs: snapshots }
    }

    /// Names the interval between boundaries that `seq` lies in. Above the watermark every number
    /// is an interval of its own.
    fn interval(&self, seq: Seq) -> Seq {
        let at = self.seqs.partition_point(|&boundary| boundary < seq);
        self.seqs.get(at).copied().unwrap_or(seq)
    }

    /// The lowest number at which a snapshot reads.
    pub(crate) fn oldest(&self) -> Seq {
        self.seqs.first().copied().unwrap_or(0)
    }
}

/// What to do with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Keep,
    Drop,
}

/// Decides over the entries of a merge, given in entry order.
#[derive(Debug)]
pub(crate) struct Retain<'a> {
    boundaries: Boundaries,
    tables: &'a Tables,
    /// The last key seen and the interval of its last kept or elided version.
    last_key: Vec<u8>,
    last_interval: Option<Seq>,
    /// The partition whose marks these are, as a prefix of its keys; empty when there are none.
    partition: Vec<u8>,
    marks: Vec<Seq>,
    table: Option<(TableId, bool)>,
}

impl<'a> Retain<'a> {
    pub(crate) fn new(boundaries: Boundaries, tables: &'a Tables) -> Self {
        Retain {
            boundaries,
            tables,
            last_key: Vec::new(),
            last_interval: None,
            partition: Vec::new(),
            marks: Vec::new(),
            table: None,
        }
    }

    /// The verdict on the next entry. `nothing_below` tells whether no older version of the
    /// entry's key (for a mark: of its partition) can be outside the merge.
    pub(crate) fn judge(
        &mut self,
        entry: &EntryRef<'_>,
        nothing_below: impl FnOnce(&EntryRef<'_>) -> bool,
    ) -> Verdict {
        if self.in_dropped_table(entry.key) {
            return Verdict::Drop;
        }
        let interval = self.boundaries.interval(entry.seq);
        if self.last_key == entry.key && self.last_interval.is_some() {
            if self.last_interval == Some(interval) {
                return Verdict::Drop; // hidden by a newer version from every reader
            }
        } else {
            self.last_key.clear();
            self.last_key.extend_from_slice(entry.key);
        }
        self.last_interval = Some(interval);
        if entry.kind == Kind::DropPartition {
            self.note_mark(entry);
        } else if self.dropped_with_partition(entry, interval) {
            return Verdict::Drop;
        }
        let hides = matches!(entry.kind, Kind::Delete | Kind::DropPartition);
        if hides && entry.seq <= self.boundaries.oldest() && nothing_below(entry) {
            return Verdict::Drop; // there is nothing left to hide
        }
        Verdict::Keep
    }

    fn in_dropped_table(&mut self, key: &[u8]) -> bool {
        let Some(table) = internal::table_of(key) else { return false };
        match self.table {
            Some((known, dropped)) if known == table => dropped,
            _ => {
                let oldest = self.boundaries.oldest();
                let dropped = self.tables.dropped_at(table).is_some_and(|seq| seq <= oldest);
                self.table = Some((table, dropped));
                dropped
            }
        }
    }

    fn note_mark(&mut self, entry: &EntryRef<'_>) {
        let Some(end) = internal::partition_len(entry.key) else { return };
        let prefix = entry.key.get(..end).unwrap_or_default();
        if self.partition != prefix {
            self.partition.clear();
            self.partition.extend_from_slice(prefix);
            self.marks.clear();
        }
        self.marks.push(entry.seq);
    }

    fn dropped_with_partition(&self, entry: &EntryRef<'_>, interval: Seq) -> bool {
        !self.marks.is_empty()
            && internal::is_in_partition(entry.key, &self.partition)
            && self
                .marks
                .iter()
                .any(|&mark| entry.seq < mark && self.boundaries.interval(mark) == interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    fn judged(
        snapshots: &[Seq],
        visible: Seq,
        bottom: bool,
        entries: &[(&Key, Seq, Kind)],
    ) -> Vec<Seq> {
        let tables = Tables::default();
        let mut retain = Retain::new(Boundaries::new(snapshots.to_vec(), visible), &tables);
        let mut kept = Vec::new();
        for &(key, seq, kind) in entries {
            let key = match kind {
                Kind::DropPartition => internal::partition_mark(TableId::DEFAULT, &key.pk),
                _ => internal::encode(TableId::DEFAULT, key),
            };
            let entry = EntryRef { key: &key, seq, kind, expires_at_ms: 0, value: b"" };
            if retain.judge(&entry, |_| bottom) == Verdict::Keep {
                kept.push(seq);
            }
        }
        kept
    }

    #[test]
    fn only_the_newest_version_stays_when_nobody_reads_the_past() {
        let k = Key::new("k");
        assert_eq!(judged(&[], 9, true, &[(&k, 9, Kind::Put), (&k, 5, Kind::Put)]), [9]);
    }

    #[test]
    fn a_snapshot_keeps_the_version_that_it_sees() {
        let k = Key::new("k");
        let versions =
            [(&k, 9, Kind::Put), (&k, 6, Kind::Put), (&k, 5, Kind::Put), (&k, 2, Kind::Put)];
        assert_eq!(judged(&[5, 7], 9, true, &versions), [9, 6, 5]);
    }

    #[test]
    fn nothing_above_the_watermark_is_dropped() {
        let k = Key::new("k");
        let versions =
            [(&k, 9, Kind::Put), (&k, 8, Kind::Put), (&k, 7, Kind::Put), (&k, 6, Kind::Put)];
        assert_eq!(judged(&[], 7, true, &versions), [9, 8, 7]);
    }

    #[test]
    fn a_tombstone_stays_while_it_hides_something() {
        let k = Key::new("k");
        let versions = [(&k, 9, Kind::Delete), (&k, 5, Kind::Put)];
        assert_eq!(judged(&[], 9, false, &versions), [9]);
        assert_eq!(judged(&[], 9, true, &versions), []);
        assert_eq!(judged(&[5], 9, true, &versions), [9, 5]);
    }

    #[test]
    fn dropping_a_partition_spares_one_whose_key_goes_on_with_a_zero_byte() {
        let (dropped, spared) = (Key::with_sk("p", "a"), Key::with_sk(&b"p\0q"[..], "a"));
        let entries =
            [(&dropped, 7, Kind::DropPartition), (&dropped, 5, Kind::Put), (&spared, 6, Kind::Put)];
        assert_eq!(judged(&[], 9, true, &entries), [6]);
    }

    #[test]
    fn a_dropped_partition_goes_and_later_writes_to_it_stay() {
        let (a, b) = (Key::with_sk("p", "a"), Key::with_sk("p", "b"));
        let other = Key::with_sk("p2", "a");
        let entries = [
            (&a, 7, Kind::DropPartition),
            (&a, 8, Kind::Put),
            (&a, 5, Kind::Put),
            (&b, 6, Kind::Put),
            (&other, 4, Kind::Put),
        ];
        assert_eq!(judged(&[], 9, true, &entries), [8, 4]);
        assert_eq!(judged(&[], 9, false, &entries), [7, 8, 4]);
        assert_eq!(judged(&[6], 9, true, &entries), [7, 8, 5, 6, 4]);
    }
}
