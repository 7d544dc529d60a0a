//! Searches every file of a database for given bytes: the proof that a purge left nothing.
//!
//! A search through the raw files would not find what is compressed, nor a key of which a block
//! holds only the part that its neighbour has not. So each file is searched twice: as it is, and, if
//! it is one of ours, in what it holds when it is decoded. It changes nothing.

use std::path::{Path, PathBuf};

use crate::engine::{lock_folder, refuse_other_folder};
use crate::env::{Env, OpenMode};
use crate::error::{Error, Result};
use crate::manifest::{Manifest, State};
use crate::sst::{self, BlockCache, FileHandles, SstReader};
use crate::sync::Arc;
use crate::wal;

/// How much of a file is looked at together.
const PART_BYTES: usize = 1 << 20;

/// A place where bytes were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteMatch {
    /// The file; the folder if it is in the log as a whole.
    pub path: PathBuf,
    /// Which of the byte strings, counted from 0.
    pub needle: usize,
    /// Where it was seen: `raw at byte 4096`, `a key`, `a value`.
    pub place: String,
}

/// Looks for each of `needles` in every file of the database in `dir`, which must not be open:
/// raw, and in every decoded block, key and commit. Answers each place once.
///
/// Files of other programs in the folder are searched too, but not the folders in it: checkpoints
/// are databases of their own.
pub fn find_bytes(
    env: &Env,
    dir: impl AsRef<Path>,
    needles: &[impl AsRef<[u8]>],
) -> Result<Vec<ByteMatch>> {
    let dir = dir.as_ref();
    refuse_other_folder(env, dir)?;
    let _lock = lock_folder(env, dir)?;
    let needles: Vec<&[u8]> = needles.iter().map(AsRef::as_ref).collect();
    let mut search = Search { env, needles, found: Vec::new() };
    let mut names = env.vfs.list(dir).map_err(|e| Error::io("list", dir, e))?;
    names.sort();
    for name in &names {
        search.raw(&dir.join(name))?;
    }
    let Some((_, state, _)) = Manifest::open(&env.vfs, dir)? else {
        return Err(Error::NotFound { path: dir.to_owned() });
    };
    for name in names.iter().filter(|name| sst::parse_file_name(name).is_some()) {
        search.file(dir, name, state.db_id)?;
    }
    search.log(dir, &state)?;
    Ok(search.found)
}

struct Search<'s> {
    env: &'s Env,
    needles: Vec<&'s [u8]>,
    found: Vec<ByteMatch>,
}

impl Search<'_> {
    fn note(&mut self, path: &Path, needle: usize, place: String) {
        let sighting = ByteMatch { path: path.to_owned(), needle, place };
        if !self.found.contains(&sighting) {
            self.found.push(sighting);
        }
    }

    fn look(&mut self, path: &Path, bytes: &[u8], place: &str) {
        for needle in 0..self.needles.len() {
            if position(bytes, self.needles.get(needle).copied().unwrap_or_default()).is_some() {
                self.note(path, needle, place.to_owned());
            }
        }
    }

    fn raw(&mut self, path: &Path) -> Result<()> {
        let failed = |error| Error::io("read", path, error);
        let file = self.env.vfs.open(path, OpenMode::Read).map_err(failed)?;
        let len = file.len().map_err(failed)?;
        let overlap = self.needles.iter().map(|needle| needle.len()).max().unwrap_or_default();
        let mut buf = vec![0; PART_BYTES + overlap];
        let mut offset = 0;
        while offset < len {
            let wanted = buf.len().min((len - offset) as usize);
            let part = buf.get_mut(..wanted).unwrap_or_default();
            let mut filled = 0;
            while filled < wanted {
                let rest = part.get_mut(filled..).unwrap_or_default();
                match file.read_at(rest, offset + filled as u64).map_err(failed)? {
                    0 => break,
                    more => filled += more,
                }
            }
            let part = part.get(..filled).unwrap_or_default();
            for needle in 0..self.needles.len() {
                let wanted = self.needles.get(needle).copied().unwrap_or_default();
                if let Some(at) = position(part, wanted) {
                    self.note(path, needle, format!("raw at byte {}", offset + at as u64));
                }
            }
            offset += PART_BYTES as u64;
        }
        Ok(())
    }

    /// Every key and value of a file, deleted and older versions too, and the keys in its index.
    fn file(&mut self, dir: &Path, name: &str, db_id: [u8; 16]) -> Result<()> {
        let path = dir.join(name);
        let vfs = &self.env.vfs;
        let (meta, _, _) = sst::open_standalone(&**vfs, &path, Some(db_id))?;
        self.look(&path, &meta.smallest, "a bound");
        self.look(&path, &meta.largest, "a bound");
        let handles = Arc::new(FileHandles::new(Arc::clone(vfs), dir.to_owned(), 4));
        let cache = Arc::new(BlockCache::new(1 << 20));
        let reader = Arc::new(SstReader::open(Arc::new(meta), handles, cache, db_id));
        reader.each_payload(&mut |payload| self.look(&path, payload, "a block"))?;
        let mut cursor = reader.cursor(false);
        cursor.seek_first()?;
        while let Some(entry) = cursor.entry() {
            self.look(&path, entry.key, "a key");
            self.look(&path, entry.value, "a value");
            cursor.next()?;
        }
        Ok(())
    }

    /// Whole commits, because in the segments they are cut into chunks.
    fn log(&mut self, dir: &Path, state: &State) -> Result<()> {
        let (log_start, last_seq) = (state.log_start, state.last_seq);
        let from = wal::RecoveryStart { log_start, last_seq, expect_log: state.has_log() };
        wal::inspect(&self.env.vfs, dir, state.db_id, from, &mut |commit| {
            self.look(dir, commit.ops, "a commit in the log");
            Ok(())
        })
    }
}

/// Where `needle` is first found. Nothing is found nowhere.
fn position(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, needle).filter(|_| !needle.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Compression, Durability, Engine, Key, Options, PurgeSnapshots, PurgeTarget, TableId,
        WriteBatch,
    };

    fn write(engine: &Engine, fill: impl FnOnce(&mut WriteBatch)) {
        let mut batch = WriteBatch::new();
        fill(&mut batch);
        engine.write(&batch, Durability::Sync).unwrap().wait().unwrap();
    }

    fn options(compression: Compression) -> Options {
        Options { compression, bottom_compression: compression, ..Options::default() }
    }

    #[test]
    fn what_is_compressed_cut_up_or_in_the_log_is_found_too() {
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd { level: 3 }] {
            let env = Env { threads: None, ..Env::memory() };
            let engine = Engine::open_with(env.clone(), "db", options(compression)).unwrap();
            let filler = "abcdefgh".repeat(100);
            for n in 0..50 {
                let key = Key::with_sk("person", format!("neighbour-{n:03}"));
                write(&engine, |it| it.put(TableId::DEFAULT, &key, filler.as_bytes()).unwrap());
            }
            engine.flush().unwrap();
            let key = Key::new("in-the-log");
            write(&engine, |it| it.put(TableId::DEFAULT, &key, b"late-value").unwrap());
            std::mem::forget(engine.clone());
            let needles = ["neighbour-037", "habcdefghabc", "late-value", "is-nowhere"];
            let locked = find_bytes(&env, "db", &needles);
            assert!(matches!(locked, Err(Error::Locked { .. })), "{locked:?}");
            let env = copied(&env);
            let found = find_bytes(&env, "db", &needles).unwrap();
            let places = |needle| -> Vec<&str> {
                let of = found.iter().filter(|it| it.needle == needle);
                of.map(|it| it.place.as_str()).collect()
            };
            assert!(places(0).contains(&"a key"), "{compression:?} {found:?}");
            assert!(places(1).contains(&"a value"), "{compression:?} {found:?}");
            assert!(places(2).contains(&"a commit in the log"), "{compression:?} {found:?}");
            assert_eq!(places(3), Vec::<&str>::new());
        }
    }

    /// The same files in another file system, where nobody holds the lock.
    fn copied(env: &Env) -> Env {
        let other = Env { threads: None, ..Env::memory() };
        other.vfs.create_dir_all(Path::new("db")).unwrap();
        for name in env.vfs.list(Path::new("db")).unwrap() {
            let path = Path::new("db").join(name);
            let from = env.vfs.open(&path, OpenMode::Read).unwrap();
            let mut bytes = vec![0; from.len().unwrap() as usize];
            from.read_exact_at(&mut bytes, 0).unwrap();
            let to = other.vfs.open(&path, OpenMode::CreateNew).unwrap();
            to.write_at(&bytes, 0).unwrap();
        }
        other
    }

    #[test]
    fn a_purge_of_remains_reaches_what_was_deleted_and_overwritten_long_before() {
        let env = Env { threads: None, ..Env::memory() };
        let options = options(Compression::Zstd { level: 3 });
        let engine = Engine::open_with(env.clone(), "db", options).unwrap();
        let table = TableId::DEFAULT;
        let (deleted, changed) = (Key::new("deleted-key"), Key::new("changed-key"));
        write(&engine, |it| {
            it.put(table, &deleted, b"deleted-value").unwrap();
            it.put(table, &changed, b"first-value").unwrap();
        });
        engine.flush().unwrap();
        write(&engine, |it| {
            it.delete(table, &deleted).unwrap();
            it.put(table, &changed, b"second-value").unwrap();
        });
        engine.flush().unwrap();
        let needles = ["deleted-key", "deleted-value", "first-value", "second-value"];
        assert_eq!(find_all(&env, &needles), [true, true, true, true]);
        let purged = engine.purge(&[PurgeTarget::Remains], PurgeSnapshots::End).unwrap();
        assert_eq!(purged.stripes, 256);
        assert!(purged.read_bytes > 0);
        assert_eq!(find_all(&env, &needles), [false, false, false, true]);
        assert_eq!(engine.get(table, &changed).unwrap().unwrap().value, "second-value");
        let progress = engine.purge_progress();
        assert_eq!((progress.stripes_done, progress.stripes), (256, 256));
    }

    #[test]
    fn a_purged_key_between_two_others_is_in_no_block_index_either() {
        let env = Env { threads: None, ..Env::memory() };
        let engine = Engine::open_with(env.clone(), "db", options(Compression::None)).unwrap();
        let key = |n: u32| Key::with_sk("class", format!("learner-{n:03}:mastery"));
        // Each value fills a block, so that there is a separator between any two.
        let value = vec![b'v'; 8000];
        for n in 0..40 {
            write(&engine, |it| it.put(TableId::DEFAULT, &key(n), &value).unwrap());
        }
        for n in (1..40).step_by(2) {
            write(&engine, |it| it.delete(TableId::DEFAULT, &key(n)).unwrap());
        }
        engine.purge(&[PurgeTarget::Remains], PurgeSnapshots::End).unwrap();
        let names: Vec<String> = (0..40).map(|n| format!("learner-{n:03}")).collect();
        let found = find_all(&env, &names.iter().map(String::as_str).collect::<Vec<_>>());
        let expected: Vec<bool> = (0..40).map(|n| n % 2 == 0).collect();
        assert_eq!(found, expected);
    }

    fn find_all(env: &Env, needles: &[&str]) -> Vec<bool> {
        let found = find_bytes(&copied(env), "db", needles).unwrap();
        (0..needles.len()).map(|at| found.iter().any(|it| it.needle == at)).collect()
    }
}
