//! Verification: reads every block of every file and the whole log, and reports each fault with
//! file and offset. It changes nothing.

use std::path::{Path, PathBuf};

use crate::batch::{Op, Ops};
use crate::engine::{lock_folder, refuse_other_folder};
use crate::entry::{EntryRef, Seq};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::expiry;
use crate::key::{internal, stripe_of};
use crate::manifest::{Manifest, State, StripeState};
use crate::sst::{self, BlockCache, FileHandles, SstMeta, SstReader};
use crate::sync::Arc;
use crate::table::TableId;
use crate::tree::cursor::Cursor;
use crate::tree::file::TreeFile;
use crate::tree::merge::Merge;
use crate::wal;

/// What [`verify`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// What is wrong; empty if nothing is.
    pub faults: Vec<Fault>,
    /// SST files read.
    pub files: u64,
    /// Blocks read.
    pub blocks: u64,
    /// Entries read from files.
    pub entries: u64,
    /// Commits read from the log.
    pub commits: u64,
    /// Files that the manifest does not name, left by an interrupted flush or compaction. The next
    /// open removes them; they are no fault.
    pub leftovers: Vec<PathBuf>,
}

/// Something wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The file.
    pub path: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// What was expected and what was found.
    pub what: String,
}

impl VerifyReport {
    /// Whether the database is sound.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    fn fault(&mut self, path: &Path, offset: u64, what: impl Into<String>) {
        self.faults.push(Fault { path: path.to_owned(), offset, what: what.into() });
    }

    fn fault_of(&mut self, dir: &Path, error: Error) {
        match error {
            Error::Corruption { path, offset, what, .. } => self.fault(&path, offset, what),
            Error::ForeignFile { ref path, .. } | Error::Version { ref path, .. } => {
                self.fault(path, 0, error.to_string());
            }
            Error::Io { ref path, .. } => self.fault(path, 0, error.to_string()),
            other => self.fault(dir, 0, other.to_string()),
        }
    }
}

/// Checks the database in `dir`, which must not be open. Faults are in the report; an error means
/// that it could not be checked at all.
pub fn verify(env: &Env, dir: impl AsRef<Path>) -> Result<VerifyReport> {
    let dir = dir.as_ref();
    refuse_other_folder(env, dir)?;
    let _lock = lock_folder(env, dir)?;
    let mut report = VerifyReport::default();
    let state = match Manifest::open(&env.vfs, dir) {
        Ok(Some((_, state, _))) => state,
        Ok(None) => return Err(Error::NotFound { path: dir.to_owned() }),
        Err(error @ (Error::Corruption { .. } | Error::ForeignFile { .. })) => {
            report.fault_of(dir, error);
            return Ok(report);
        }
        Err(error) => return Err(error),
    };
    check_files(env, dir, &state, &mut report)?;
    check_log(env, dir, &state, &mut report);
    Ok(report)
}

fn check_files(env: &Env, dir: &Path, state: &State, report: &mut VerifyReport) -> Result<()> {
    let names = env.vfs.list(dir).map_err(|e| Error::io("list", dir, e))?;
    let there: std::collections::HashSet<_> =
        names.iter().filter_map(|name| sst::parse_file_name(name)).collect();
    let handles = Arc::new(FileHandles::new(Arc::clone(&env.vfs), dir.to_owned(), 16));
    let cache = Arc::new(BlockCache::new(1 << 20));
    let mut named = std::collections::HashSet::new();
    for (_, meta) in state.files() {
        named.insert((meta.stripe, meta.file_id));
        let path = dir.join(sst::file_name(meta.stripe, meta.file_id));
        if !there.contains(&(meta.stripe, meta.file_id)) {
            report.fault(&path, 0, "the manifest names this file and it is missing");
            continue;
        }
        let reader = Arc::new(SstReader::open(
            Arc::clone(meta),
            Arc::clone(&handles),
            Arc::clone(&cache),
            state.db_id,
        ));
        let before = report.faults.len();
        match reader.verify(&mut |offset, what| report.fault(&path, offset, what)) {
            Ok(blocks) => report.blocks += blocks,
            Err(error) => report.fault_of(dir, error),
        }
        report.files += 1;
        if report.faults.len() == before {
            check_keys(&reader, meta, &path, report);
        }
    }
    if report.is_sound() {
        for stripe in &state.stripes {
            check_ages(env, dir, state, stripe, &handles, &cache, report)?;
        }
    }
    let mut leftovers: Vec<_> = there.difference(&named).copied().collect();
    leftovers.sort_unstable();
    report.leftovers =
        leftovers.into_iter().map(|(stripe, id)| dir.join(sst::file_name(stripe, id))).collect();
    Ok(())
}

/// Of two versions of a key in different files, the newer one is where readers look first: L0
/// newest first, then level by level.
fn check_ages(
    env: &Env,
    dir: &Path,
    state: &State,
    stripe: &StripeState,
    handles: &Arc<FileHandles>,
    cache: &Arc<BlockCache>,
    report: &mut VerifyReport,
) -> Result<()> {
    let mut sources = Vec::new();
    let mut ranks: Vec<(usize, PathBuf)> = Vec::new();
    for (level, meta) in
        stripe.levels.iter().enumerate().flat_map(|(n, l)| l.iter().map(move |m| (n, m)))
    {
        let path = dir.join(sst::file_name(meta.stripe, meta.file_id));
        let reader =
            SstReader::open(Arc::clone(meta), Arc::clone(handles), Arc::clone(cache), state.db_id);
        let (vfs, handles) = (Arc::clone(&env.vfs), Arc::clone(handles));
        let file = Arc::new(TreeFile::new(reader, vfs, handles, path.clone()));
        sources.push(Cursor::file(&file, false));
        // Files of one deeper level share no key, so they share a rank.
        ranks.push((if level == 0 { ranks.len() } else { usize::MAX / 2 + level }, path));
    }
    let mut merge = Merge::new(sources);
    merge.seek(&[], Seq::MAX)?;
    let (mut last_key, mut last_rank) = (Vec::new(), 0);
    while let Some(entry) = merge.entry() {
        let Some((rank, path)) = merge.source().and_then(|at| ranks.get(at)) else { break };
        if entry.key != last_key.as_slice() {
            last_key.clear();
            last_key.extend_from_slice(entry.key);
        } else if *rank < last_rank {
            let what = format!("key {:02x?} is older here than in a deeper level", entry.key);
            report.fault(path, 0, what);
        }
        last_rank = *rank;
        merge.next()?;
    }
    Ok(())
}

/// Every key decodes, and belongs to the stripe of its file.
fn check_keys(reader: &Arc<SstReader>, meta: &SstMeta, path: &Path, report: &mut VerifyReport) {
    let mut cursor = reader.cursor(false);
    let mut result = cursor.seek_first();
    while result.is_ok() {
        let Some(entry) = cursor.entry() else { return };
        report.entries += 1;
        if stripe_of_stored(&entry) != Some(meta.stripe) {
            let what = format!("key {:02x?} does not belong to stripe {}", entry.key, meta.stripe);
            report.fault(path, 0, what);
        }
        result = cursor.next();
    }
    if let Err(error) = result {
        report.fault_of(path, error);
    }
}

fn stripe_of_stored(entry: &EntryRef<'_>) -> Option<u8> {
    let stored = match internal::table_of(entry.key)? {
        TableId::EXPIRY => expiry::parse_index_key(entry.key)?.1,
        _ => entry.key,
    };
    internal::decode(stored)?;
    internal::pk_of(stored).map(|pk| stripe_of(&pk))
}

fn check_log(env: &Env, dir: &Path, state: &State, report: &mut VerifyReport) {
    let (log_start, last_seq) = (state.log_start, state.last_seq);
    let from = wal::RecoveryStart { log_start, last_seq, expect_log: state.has_log() };
    let mut commits = 0;
    let mut bad = Vec::new();
    let result = wal::inspect(&env.vfs, dir, state.db_id, from, &mut |commit| {
        commits += 1;
        if let Err(what) = check_commit(commit.first_seq, commit.seq_count, commit.ops) {
            bad.push(what);
        }
        Ok(())
    });
    report.commits = commits;
    for what in bad {
        report.fault(dir, 0, what);
    }
    if let Err(error) = result {
        report.fault_of(dir, error);
    }
}

fn check_commit(first_seq: u64, seq_count: u32, ops: &[u8]) -> Result<(), String> {
    let mut decoder = Ops::new(ops, first_seq);
    let mut count = 0;
    loop {
        match decoder.next() {
            Ok(None) => break,
            Ok(Some((seq, Op::Entry { stripe, entry }))) => {
                count += 1;
                if stripe_of_stored(&entry) != Some(stripe) {
                    return Err(format!("commit {first_seq}: record {seq} is in the wrong stripe"));
                }
            }
            Ok(Some(_)) => count += 1,
            Err(at) => return Err(format!("commit {first_seq} does not decode at byte {at}")),
        }
    }
    if count == seq_count {
        Ok(())
    } else {
        Err(format!("commit {first_seq} has {count} records and claims {seq_count}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Edit;
    use crate::{Durability, Engine, Key, Options, WriteBatch};

    #[test]
    fn a_newer_version_below_an_older_one_is_a_fault() {
        let env = Env { threads: None, ..Env::memory() };
        let key = Key::new("user#1");
        let engine = Engine::open_with(env.clone(), "db", Options::default()).unwrap();
        for value in ["old", "new"] {
            let mut batch = WriteBatch::new();
            batch.put(TableId::DEFAULT, &key, value.as_bytes()).unwrap();
            engine.write(&batch, Durability::Sync).unwrap().wait().unwrap();
            engine.flush().unwrap();
        }
        drop(engine);
        assert_eq!(verify(&env, "db").unwrap().faults, []);

        let (mut manifest, state, _) = Manifest::open(&env.vfs, Path::new("db")).unwrap().unwrap();
        let newest = (*state.stripes[usize::from(key.stripe())].levels[0][0]).clone();
        let remove = vec![(newest.stripe, 0, newest.file_id)];
        manifest.append(&Edit { remove, add: vec![(1, newest)], ..Edit::default() }).unwrap();
        let faults = verify(&env, "db").unwrap().faults;
        assert!(faults.len() == 1 && faults[0].what.contains("older here"), "{faults:?}");
    }
}
