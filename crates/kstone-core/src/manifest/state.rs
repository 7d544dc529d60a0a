//! What the manifest describes ([`State`]) and how it changes ([`Edit`]).
//!
//! Pure: no files. [`State::apply`] is the only way a state changes, both when the engine installs
//! a flush or a compaction and when the manifest is read back, so what it refuses can neither be
//! written nor be believed.

use std::collections::{BTreeMap, HashSet};

use crate::entry::{SEQ_MAX, Seq};
use crate::key::STRIPES;
use crate::sst::{FileId, SstMeta};
use crate::sync::Arc;
use crate::table::TableId;

/// Levels of a stripe: L0 to L6. Six sorted levels, each ten times the one above it, hold more in
/// one stripe than a disk does, so a deeper one could only come from damage.
pub(crate) const LEVELS: usize = 7;

/// How many numbers a stripe keeps for the layers above.
pub(crate) const STRIPE_COUNTERS: usize = 4;

/// Far beyond what anybody reaches, and far from where counting on would overflow.
const FILE_ID_MAX: FileId = u64::MAX >> 1;
const LOG_POS_MAX: u64 = u64::MAX >> 1;

/// The database's tree at one moment.
///
/// The fields are for reading; only [`State::apply`] changes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) db_id: [u8; 16],
    /// The lowest id that no SST file has had.
    pub(crate) next_file_id: FileId,
    /// The highest sequence number that is known to be given out; the log may know higher ones.
    pub(crate) last_seq: Seq,
    /// The log position from which replay is needed.
    pub(crate) log_start: u64,
    /// The highest wall clock seen, in milliseconds since 1970: expiry never runs backwards.
    pub(crate) clock_ms: u64,
    /// The lowest id that no table has had.
    pub(crate) next_table: u32,
    pub(crate) tables: Tables,
    /// Always [`STRIPES`] of them.
    pub(crate) stripes: Vec<StripeState>,
    /// Folders of the checkpoints made from this database, in the order they were made.
    pub(crate) checkpoints: Vec<String>,
    /// Every live file's id: two stripes must not share one, since caches are keyed by it.
    file_ids: HashSet<FileId>,
}

/// Every table that was created and not yet forgotten, by id.
pub(crate) type Tables = BTreeMap<u32, TableState>;

/// One table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableState {
    pub(crate) created_seq: Seq,
    /// Records up to here are gone; the id is kept until compaction has removed them all.
    pub(crate) dropped_seq: Option<Seq>,
}

/// One stripe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StripeState {
    /// Everything of the stripe up to here is in its SST files.
    pub(crate) flushed_seq: Seq,
    /// Up to the last that has files, at most [`LEVELS`] of them. L0 is ordered newest first and its files may overlap; the files
    /// of every other level are ordered by key and share no key.
    pub(crate) levels: Vec<Vec<Arc<SstMeta>>>,
    pub(crate) counters: [u64; STRIPE_COUNTERS],
}

/// One atomic change of the [`State`]; one record of the manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Level and file. Applied after `remove`, so that a file can change its level.
    pub(crate) add: Vec<(u8, SstMeta)>,
    /// Stripe, level, file.
    pub(crate) remove: Vec<(u8, u8, FileId)>,
    pub(crate) flushed: Vec<(u8, Seq)>,
    /// Replaces the stripe's counters.
    pub(crate) counters: Vec<(u8, [u64; STRIPE_COUNTERS])>,
    // The next five are high-water marks: one that is lower than the state's changes nothing, so
    // that edits prepared side by side may be applied in either order.
    pub(crate) next_file_id: Option<FileId>,
    pub(crate) last_seq: Option<Seq>,
    pub(crate) log_start: Option<u64>,
    pub(crate) clock_ms: Option<u64>,
    /// Rarely needed: creating a table raises it. A snapshot carries it for the forgotten tables.
    pub(crate) next_table: Option<u32>,
    /// Applied in this order.
    pub(crate) tables: Vec<TableEdit>,
    /// Adding a known folder, or removing an unknown one, changes nothing.
    pub(crate) checkpoints_added: Vec<String>,
    pub(crate) checkpoints_removed: Vec<String>,
}

/// A change of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableEdit {
    /// The id must never have been used before.
    Created { id: u32, seq: Seq },
    /// The table's records up to `seq` are gone.
    Dropped { id: u32, seq: Seq },
    /// No file holds a record of the dropped table any more.
    Forgotten { id: u32 },
}

impl State {
    /// The state of a database that was created just now: no files, and the default table.
    pub(crate) fn new(db_id: [u8; 16]) -> State {
        let default_table = TableState { created_seq: 0, dropped_seq: None };
        State {
            next_file_id: 1,
            next_table: TableId::DEFAULT.0 + 1,
            tables: BTreeMap::from([(TableId::DEFAULT.0, default_table)]),
            ..State::blank(db_id)
        }
    }

    /// Nothing at all: what a snapshot is applied to.
    pub(super) fn blank(db_id: [u8; 16]) -> State {
        let stripe =
            StripeState { flushed_seq: 0, levels: Vec::new(), counters: [0; STRIPE_COUNTERS] };
        State {
            db_id,
            next_file_id: 0,
            last_seq: 0,
            log_start: 0,
            clock_ms: 0,
            next_table: 0,
            tables: BTreeMap::new(),
            stripes: vec![stripe; STRIPES],
            checkpoints: Vec::new(),
            file_ids: HashSet::new(),
        }
    }

    /// Whether the database ever had a log. The first edit, made once the log's first header is
    /// durable, sets the clock; a state without it was never open.
    pub(crate) fn has_log(&self) -> bool {
        self.clock_ms != 0
    }

    /// Every live file with its level, by stripe, then level, then the level's order.
    pub(crate) fn files(&self) -> impl Iterator<Item = (u8, &Arc<SstMeta>)> {
        let levels = self.stripes.iter().flat_map(|stripe| (0u8..).zip(&stripe.levels));
        levels.flat_map(|(level, files)| files.iter().map(move |file| (level, file)))
    }

    /// The edit that makes this state out of nothing.
    pub(super) fn snapshot(&self) -> Edit {
        let mut tables = Vec::with_capacity(self.tables.len());
        for (&id, table) in &self.tables {
            tables.push(TableEdit::Created { id, seq: table.created_seq });
            if let Some(seq) = table.dropped_seq {
                tables.push(TableEdit::Dropped { id, seq });
            }
        }
        let stripes = || (0u8..=u8::MAX).zip(&self.stripes);
        Edit {
            add: self.files().map(|(level, file)| (level, SstMeta::clone(file))).collect(),
            remove: Vec::new(),
            flushed: stripes()
                .filter(|(_, stripe)| stripe.flushed_seq != 0)
                .map(|(n, stripe)| (n, stripe.flushed_seq))
                .collect(),
            counters: stripes()
                .filter(|(_, stripe)| stripe.counters != [0; STRIPE_COUNTERS])
                .map(|(n, stripe)| (n, stripe.counters))
                .collect(),
            next_file_id: Some(self.next_file_id),
            last_seq: Some(self.last_seq),
            log_start: Some(self.log_start),
            clock_ms: Some(self.clock_ms),
            next_table: Some(self.next_table),
            tables,
            checkpoints_added: self.checkpoints.clone(),
            checkpoints_removed: Vec::new(),
        }
    }

    /// Makes the change, or refuses it and leaves the state as it was.
    ///
    /// The error says which rule the edit breaks: in the engine that is a bug, on reading back it
    /// is damage.
    pub(crate) fn apply(&mut self, edit: &Edit) -> Result<(), String> {
        check_numbers(edit)?;
        let mut next_file_id = self.next_file_id.max(edit.next_file_id.unwrap_or(0));
        let mut last_seq = self.last_seq.max(edit.last_seq.unwrap_or(0));

        // Work on copies of the stripes that the edit touches, for all or nothing.
        let mut touched: BTreeMap<u8, StripeState> = BTreeMap::new();
        let mut removed = HashSet::new();
        for &(stripe, level, file_id) in &edit.remove {
            let files = level_mut(self.copy_of(&mut touched, stripe)?, level)?;
            let Some(at) = files.iter().position(|file| file.file_id == file_id) else {
                return Err(format!("file {file_id} is not in level {level} of stripe {stripe}"));
            };
            files.remove(at);
            removed.insert(file_id);
        }
        let mut added = HashSet::new();
        for (level, file) in &edit.add {
            check_file(file)?;
            let file_id = file.file_id;
            let is_live = self.file_ids.contains(&file_id) && !removed.contains(&file_id);
            if is_live || !added.insert(file_id) {
                return Err(format!("file {file_id} is there twice"));
            }
            let files = level_mut(self.copy_of(&mut touched, file.stripe)?, *level)?;
            files.push(Arc::new(file.clone()));
            // Whatever the edit says: a live file's id and sequence numbers are taken.
            next_file_id = next_file_id.max(file_id + 1);
            last_seq = last_seq.max(newest_seq(file));
        }
        for &(stripe, seq) in &edit.flushed {
            let state = self.copy_of(&mut touched, stripe)?;
            if seq < state.flushed_seq {
                let had = state.flushed_seq;
                return Err(format!("stripe {stripe} was flushed to {had}, now it says {seq}"));
            }
            state.flushed_seq = seq;
            last_seq = last_seq.max(seq);
        }
        for &(stripe, counters) in &edit.counters {
            self.copy_of(&mut touched, stripe)?.counters = counters;
        }
        for (stripe, state) in &mut touched {
            order_levels(*stripe, state)?;
        }
        let tables = self.edited_tables(&edit.tables)?;

        // Nothing can fail from here on.
        for (stripe, state) in touched {
            if let Some(slot) = self.stripes.get_mut(usize::from(stripe)) {
                *slot = state;
            }
        }
        for id in &removed {
            self.file_ids.remove(id);
        }
        self.file_ids.extend(added);
        if let Some((tables, next_table)) = tables {
            self.tables = tables;
            self.next_table = next_table;
        }
        self.next_file_id = next_file_id;
        self.last_seq = last_seq;
        self.log_start = self.log_start.max(edit.log_start.unwrap_or(0));
        self.clock_ms = self.clock_ms.max(edit.clock_ms.unwrap_or(0));
        self.next_table = self.next_table.max(edit.next_table.unwrap_or(0));
        self.checkpoints.retain(|folder| !edit.checkpoints_removed.contains(folder));
        for folder in &edit.checkpoints_added {
            if !self.checkpoints.contains(folder) {
                self.checkpoints.push(folder.clone());
            }
        }
        Ok(())
    }

    fn copy_of<'a>(
        &self,
        touched: &'a mut BTreeMap<u8, StripeState>,
        stripe: u8,
    ) -> Result<&'a mut StripeState, String> {
        use std::collections::btree_map::Entry;
        match touched.entry(stripe) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let state = self.stripes.get(usize::from(stripe));
                Ok(entry.insert(state.ok_or(format!("there is no stripe {stripe}"))?.clone()))
            }
        }
    }

    /// The tables and the next free id after `edits`; `None` when there are none.
    fn edited_tables(&self, edits: &[TableEdit]) -> Result<Option<(Tables, u32)>, String> {
        if edits.is_empty() {
            return Ok(None);
        }
        let mut tables = self.tables.clone();
        let mut next_table = self.next_table;
        for edit in edits {
            match *edit {
                TableEdit::Created { id, seq } => {
                    if id < next_table {
                        return Err(format!("table id {id} was used before"));
                    }
                    if id == TableId::EXPIRY.0 {
                        return Err(format!("table id {id} is reserved"));
                    }
                    tables.insert(id, TableState { created_seq: seq, dropped_seq: None });
                    next_table = id + 1;
                }
                TableEdit::Dropped { id, seq } => match tables.get_mut(&id) {
                    Some(table) if table.dropped_seq.is_none() => table.dropped_seq = Some(seq),
                    Some(_) => return Err(format!("table {id} is dropped already")),
                    None => return Err(format!("there is no table {id} to drop")),
                },
                TableEdit::Forgotten { id } => match tables.get(&id) {
                    Some(table) if table.dropped_seq.is_some() => {
                        tables.remove(&id);
                    }
                    Some(_) => return Err(format!("table {id} is forgotten but was not dropped")),
                    None => return Err(format!("there is no table {id} to forget")),
                },
            }
        }
        Ok(Some((tables, next_table)))
    }
}

fn level_mut(stripe: &mut StripeState, level: u8) -> Result<&mut Vec<Arc<SstMeta>>, String> {
    let nth = usize::from(level);
    if nth < LEVELS && stripe.levels.len() <= nth {
        stripe.levels.resize_with(nth + 1, Vec::new);
    }
    stripe.levels.get_mut(nth).ok_or_else(|| format!("there is no level {level}"))
}

/// The sequence number by which the files of L0 are ordered.
fn newest_seq(file: &SstMeta) -> Seq {
    file.global_seq.unwrap_or(file.max_seq)
}

/// Refuses numbers that no database reaches. So counting on from one cannot overflow.
fn check_numbers(edit: &Edit) -> Result<(), String> {
    let files = edit.add.iter().map(|(_, file)| file);
    let flushed = edit.flushed.iter().map(|&(_, seq)| seq);
    let tables = edit.tables.iter().filter_map(|table| match *table {
        TableEdit::Created { seq, .. } | TableEdit::Dropped { seq, .. } => Some(seq),
        TableEdit::Forgotten { .. } => None,
    });
    let seqs = files.clone().map(newest_seq).chain(flushed).chain(tables).chain(edit.last_seq);
    if let Some(seq) = seqs.max().filter(|&seq| seq > SEQ_MAX) {
        return Err(format!("there is no sequence number {seq}"));
    }
    let file_ids = files.map(|file| file.file_id).chain(edit.next_file_id);
    if let Some(id) = file_ids.max().filter(|&id| id > FILE_ID_MAX) {
        return Err(format!("file ids are used up: {id}"));
    }
    match edit.log_start {
        Some(pos) if pos > LOG_POS_MAX => Err(format!("there is no log position {pos}")),
        _ => Ok(()),
    }
}

fn check_file(file: &SstMeta) -> Result<(), String> {
    if file.smallest > file.largest {
        return Err(format!("file {} ends in front of its start", file.file_id));
    }
    if file.min_seq > file.max_seq {
        return Err(format!(
            "file {} has sequence numbers from {} to {}",
            file.file_id, file.min_seq, file.max_seq
        ));
    }
    Ok(())
}

/// Brings each level into its order and refuses sorted levels whose files share a key.
fn order_levels(stripe: u8, state: &mut StripeState) -> Result<(), String> {
    while state.levels.last().is_some_and(Vec::is_empty) {
        state.levels.pop();
    }
    for (level, files) in state.levels.iter_mut().enumerate() {
        if level == 0 {
            // Ids grow, so among equals the higher one was made later.
            files.sort_by_key(|file| std::cmp::Reverse((newest_seq(file), file.file_id)));
            continue;
        }
        files.sort_by(|a, b| a.smallest.cmp(&b.smallest));
        for pair in files.windows(2) {
            if let [a, b] = pair
                && a.largest >= b.smallest
            {
                return Err(format!(
                    "files {} and {} overlap in level {level} of stripe {stripe}",
                    a.file_id, b.file_id
                ));
            }
        }
    }
    Ok(())
}
