//! A version 1 log is read, and new commits go to segments of the current version.

use super::RecoveryStart;
use super::format::{ChunkSeed, SEGMENT_HEADER_LEN, SegmentHeader};
use super::segments::file_name;
use super::test_vfs::TestVfs;
use super::tests::{Commits, DB_ID, DIR, WHOLE, commit_durably, newest, open, open_sized};
use super::version1::{self, writer};
use crate::env::{OpenMode, SeededRandom, Vfs};
use crate::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes a log as version 1 would have, one segment for each list of commits, each commit synced
/// by itself. A `closed` log ends in the mark of a clean shutdown. Answers what it holds.
fn write_old_log(vfs: &Arc<TestVfs>, segments: &[&[&[u8]]], closed: bool) -> Commits {
    let seed = ChunkSeed::new(&DB_ID);
    let (mut pos, mut seq, mut model) = (0, 0, Commits::new());
    for (i, commits) in segments.iter().enumerate() {
        let header = SegmentHeader {
            version: version1::VERSION,
            db_id: DB_ID,
            generation: i as u64 + 1,
            start_pos: pos,
            durable_pos: pos,
        };
        let mut bytes = header.encode().to_vec();
        let mut chunk = |seq: u64, payload: &[u8], last_seq: u64| {
            let stamp = writer::Stamp {
                generation: header.generation,
                pos,
                durable_pos: pos,
                clock_ms: 900,
                first_seq: seq + 1,
                last_seq,
            };
            let chunk = writer::chunk(payload, stamp, seed);
            pos += chunk.len() as u64;
            bytes.extend(chunk);
        };
        for ops in *commits {
            chunk(seq, &writer::commit(seq + 1, 1, ops), seq + 1);
            seq += 1;
            model.push((seq, ops.to_vec()));
        }
        if closed && i + 1 == segments.len() {
            chunk(seq, &[], seq);
        }
        assert!(bytes.len() <= 512);
        bytes.resize(512, 0);
        let path = old_segment(i);
        vfs.open(&path, OpenMode::CreateNew).unwrap().write_at(&bytes, 0).unwrap();
        vfs.edit(&path, |_| ());
    }
    vfs.sync_dir(Path::new(DIR)).unwrap();
    model
}

fn old_segment(slot: usize) -> PathBuf {
    Path::new(DIR).join(file_name(slot as u32))
}

const SEGMENTS: &[&[&[u8]]] = &[&[b"one", b"two"], &[b"three", b"four", b"five"]];

#[test]
fn a_log_of_version_1_is_read_and_goes_on_in_version_2() {
    for closed in [false, true] {
        let vfs = TestVfs::new();
        let mut model = write_old_log(&vfs, SEGMENTS, closed);
        let (log, recovered, commits) = open_sized(&vfs, WHOLE, 512).unwrap();
        assert_eq!(commits, model);
        assert_eq!((recovered.last_seq, recovered.clock_ms), (5, 900));
        for ops in [&b"six"[..], b"seven"] {
            model.push((commit_durably(&log, ops), ops.to_vec()));
        }
        let versions: Vec<_> = vfs.paths().iter().map(|path| vfs.bytes(path)[8]).collect();
        assert_eq!(versions, [1, 1, 2]);
        drop(log);
        // Killed, with the log in both versions, and again.
        for _ in 0..2 {
            let (_, recovered, commits) = open_sized(&vfs, WHOLE, 512).unwrap();
            assert_eq!((commits, recovered.last_seq), (model.clone(), 7));
        }
    }
}

#[test]
fn files_of_version_1_are_used_again_and_their_old_chunks_never_replayed() {
    let vfs = TestVfs::new();
    write_old_log(&vfs, SEGMENTS, false);
    let (log, ..) = open_sized(&vfs, WHOLE, 512).unwrap();
    let log_start = log.log_start(5);
    log.release(log_start).unwrap();
    log.rotate().unwrap();
    commit_durably(&log, b"new");
    // The file's old chunks are behind the new one.
    let bytes = vfs.bytes(&newest(&log));
    assert_eq!(bytes[8], 2);
    assert!(bytes.windows(4).any(|bytes| bytes == version1::CHUNK_MAGIC));
    drop(log);
    let from = RecoveryStart { log_start, last_seq: 5, expect_log: true };
    let (_, recovered, commits) = open_sized(&vfs, from, 512).unwrap();
    assert_eq!(commits, [(6, b"new".to_vec())]);
    assert_eq!(recovered.torn_bytes, 0);
}

#[test]
fn a_tail_of_version_1_torn_at_any_byte_ends_the_log_before_it() {
    let vfs = TestVfs::new();
    let model = write_old_log(&vfs, &[&[b"first", b"the last one"]], false);
    let path = old_segment(0);
    let whole = vfs.bytes(&path);
    let tail = SEGMENT_HEADER_LEN + (72 + 16 + 5usize).next_multiple_of(8);
    let end = tail + 72 + 16 + 12;
    for cut in tail..=end {
        let vfs = vfs.crashed(&SeededRandom::new(0));
        vfs.edit(&path, |bytes| *bytes = whole[..cut].to_vec());
        let (log, _, commits) = open(&vfs, WHOLE).unwrap();
        let expected = if cut == end { 2 } else { 1 };
        assert_eq!(commits, model[..expected], "cut at {cut}");
        commit_durably(&log, b"after");
        drop(log);
        assert_eq!(open(&vfs, WHOLE).unwrap().2.len(), expected + 1, "cut at {cut}, opened again");
    }
}

/// Every byte of a log of version 1, damaged one at a time: before and after today's version went
/// on behind it.
#[test]
fn no_damaged_byte_of_version_1_loses_a_synced_commit_in_silence() {
    for goes_on in [false, true] {
        let vfs = TestVfs::new();
        let mut model = write_old_log(&vfs, SEGMENTS, true);
        if goes_on {
            let (log, ..) = open_sized(&vfs, WHOLE, 512).unwrap();
            model.push((commit_durably(&log, b"six"), b"six".to_vec()));
            log.close().unwrap();
        }
        for path in vfs.paths() {
            for at in 0..vfs.bytes(&path).len() {
                let image = vfs.crashed(&SeededRandom::new(0));
                image.edit(&path, |bytes| bytes[at] ^= 1 << (at % 8));
                match open_sized(&image, WHOLE, 512) {
                    Ok((.., commits)) => assert_eq!(commits, model, "{path:?} at {at}"),
                    Err(error) => assert!(
                        matches!(error, Error::Corruption { .. } | Error::Version { .. }),
                        "{path:?} at {at}: {error}"
                    ),
                }
            }
        }
    }
}
