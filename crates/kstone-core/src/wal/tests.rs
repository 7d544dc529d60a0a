//! Recovery: torn tails, damage, recycled segments, and random crashes over and over. They go
//! through `commit::Log` without threads, which is how the log is always used.

use super::RecoveryStart;
use super::format::{CHUNK_HEADER_LEN, SEGMENT_HEADER_LEN};
use super::test_vfs::TestVfs;
use crate::commit::{Log, LogOptions, Recovered};
use crate::entry::Seq;
use crate::env::{Random, SeededRandom};
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(super) const DB_ID: [u8; 16] = *b"the test's db id";
pub(super) const DIR: &str = "/db";
const EMPTY: RecoveryStart = RecoveryStart { log_start: 0, last_seq: 0, expect_log: false };
const MIB: u64 = 1 << 20;
pub(super) const WHOLE: RecoveryStart = RecoveryStart { expect_log: true, ..EMPTY };

pub(super) type Commits = Vec<(Seq, Vec<u8>)>;

pub(super) fn open_sized(
    vfs: &Arc<TestVfs>,
    from: RecoveryStart,
    segment_bytes: u64,
) -> Result<(Log, Recovered, Commits)> {
    let options = LogOptions { segment_bytes, interval: Duration::from_secs(1) };
    let mut commits = Vec::new();
    let (log, recovered) =
        Log::open(&vfs.env(false), Path::new(DIR), DB_ID, options, from, &mut |commit| {
            commits.push((commit.first_seq, commit.ops.to_vec()));
            Ok(())
        })?;
    Ok((log, recovered, commits))
}

pub(super) fn open(vfs: &Arc<TestVfs>, from: RecoveryStart) -> Result<(Log, Recovered, Commits)> {
    open_sized(vfs, from, 4096)
}

fn commit(log: &Log, ops: &[u8]) -> Seq {
    let ticket = log.append(ops, 1).unwrap();
    let seq = ticket.last_seq;
    log.applied(ticket);
    seq
}

pub(super) fn commit_durably(log: &Log, ops: &[u8]) -> Seq {
    let seq = commit(log, ops);
    log.wait_durable(seq).unwrap();
    seq
}

fn segment(slot: u32) -> PathBuf {
    Path::new(DIR).join(super::segments::file_name(slot))
}

/// The file of the newest live segment.
pub(super) fn newest(log: &Log) -> PathBuf {
    log.live_segments().segments.last().unwrap().path.clone()
}

#[test]
fn what_was_committed_is_replayed_in_order() {
    let vfs = TestVfs::new();
    let (log, recovered, _) = open(&vfs, EMPTY).unwrap();
    assert_eq!((recovered.last_seq, recovered.end_pos), (0, 0));
    commit(&log, b"a");
    let ticket = log.append(b"three numbers", 3).unwrap();
    assert_eq!((ticket.first_seq, ticket.last_seq), (2, 4));
    log.applied(ticket);
    commit_durably(&log, b"");
    drop(log);
    let (log, recovered, commits) = open(&vfs, WHOLE).unwrap();
    assert_eq!(commits, [(1, b"a".to_vec()), (2, b"three numbers".to_vec()), (5, b"".to_vec())]);
    assert_eq!((recovered.last_seq, recovered.commits, recovered.clock_ms), (5, 3, 1_000));
    assert_eq!((log.visible(), log.durable()), (5, 5));
    assert_eq!(commit(&log, b"next"), 6);
}

#[test]
fn a_small_commit_written_alone_takes_little_more_than_its_operations() {
    let vfs = TestVfs::new();
    let (log, _, _) = open(&vfs, EMPTY).unwrap();
    let before = log.live_segments().segments[0].copy_len;
    // A put of 127 bytes of key and value.
    commit_durably(&log, &[0; 136]);
    assert_eq!(log.live_segments().segments[0].copy_len - before, 184);
}

#[test]
fn files_double_from_a_small_one_on_until_they_have_the_usual_size() {
    let vfs = TestVfs::new();
    let (log, _, _) = open_sized(&vfs, EMPTY, 5 * MIB).unwrap();
    let len_of_newest = || vfs.bytes(&newest(&log)).len() as u64;
    let mut lens = vec![len_of_newest()];
    for _ in 0..4 {
        log.rotate().unwrap();
        lens.push(len_of_newest());
    }
    assert_eq!(lens, [MIB, 2 * MIB, 4 * MIB, 5 * MIB, 5 * MIB]);
}

#[test]
fn a_commit_that_a_small_file_does_not_take_gets_one_that_does() {
    let vfs = TestVfs::new();
    let (log, _, _) = open_sized(&vfs, EMPTY, 32 * MIB).unwrap();
    let ops = vec![7; 3 * MIB as usize];
    commit_durably(&log, &ops);
    let len = vfs.bytes(&newest(&log)).len() as u64;
    assert!((3 * MIB..=4 * MIB).contains(&len), "{len}");
    drop(log);
    let (_, _, commits) = open_sized(&vfs, WHOLE, 32 * MIB).unwrap();
    assert_eq!(commits, [(1, ops)]);
}

#[test]
fn a_tail_torn_at_any_byte_ends_the_log_before_it() {
    let vfs = TestVfs::new();
    let (log, _, _) = open(&vfs, EMPTY).unwrap();
    commit_durably(&log, b"first");
    let tail = log.live_segments().segments[0].copy_len as usize;
    for ops in [&b"second"[..], b"the third one", b"4"] {
        let seq = commit(&log, ops);
        log.wait_written(seq).unwrap();
    }
    let path = newest(&log);
    let whole = vfs.bytes(&path);
    let chunk = |ops: usize| (CHUNK_HEADER_LEN + 2 + ops).next_multiple_of(8);
    // Padding belongs to no chunk: one is complete with its last payload byte.
    let second = tail + CHUNK_HEADER_LEN + 2 + 6;
    let third = tail + chunk(6) + CHUNK_HEADER_LEN + 2 + 13;
    let fourth = tail + chunk(6) + chunk(13) + CHUNK_HEADER_LEN + 2 + 1;
    for cut in tail..=fourth {
        let expected = 1 + [second, third, fourth].iter().filter(|end| cut >= **end).count();
        // Cut off, and cut to zeros: a file that lost its end, and one that was preallocated.
        for zeroed in [false, true] {
            let vfs = vfs.crashed(&SeededRandom::new(0));
            vfs.edit(&path, |bytes| {
                *bytes = whole[..cut].to_vec();
                if zeroed {
                    bytes.resize(whole.len(), 0);
                }
            });
            let (log, recovered, commits) = open(&vfs, WHOLE).unwrap();
            assert_eq!(commits.len(), expected, "cut at {cut}");
            assert_eq!(commit_durably(&log, b"after"), recovered.last_seq + 1);
            let (_, _, commits) = open(&vfs, WHOLE).unwrap();
            assert_eq!(commits.len(), expected + 1, "cut at {cut}, opened again");
        }
    }
}

#[test]
fn a_bit_flip_in_a_synced_chunk_is_refused_and_located() {
    let vfs = TestVfs::new();
    let (log, _, _) = open(&vfs, EMPTY).unwrap();
    let mut starts = Vec::new();
    for i in 0..4u8 {
        starts.push(log.live_segments().segments[0].copy_len);
        commit_durably(&log, &[i; 20]);
    }
    let path = newest(&log);
    let whole = vfs.bytes(&path);
    // Each chunk says that the one before it was durable; nothing does so for the last.
    for (bad, start) in starts.iter().enumerate().take(3) {
        for byte in [0, 3, 5, 20, 39, 40, 50] {
            vfs.edit(&path, |bytes| {
                *bytes = whole.clone();
                bytes[*start as usize + byte] ^= 4;
            });
            match open(&vfs, WHOLE) {
                Err(Error::Corruption { path: at, offset, what, .. }) => {
                    assert_eq!((at, offset), (path.clone(), *start), "chunk {bad}");
                    assert!(what.contains("later chunk"), "{what}");
                }
                other => panic!("chunk {bad}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_clean_close_vouches_for_the_last_chunk_too() {
    let vfs = TestVfs::new();
    let (log, _, _) = open(&vfs, EMPTY).unwrap();
    let start = log.live_segments().segments[0].copy_len as usize;
    commit_durably(&log, b"last words");
    let path = newest(&log);
    log.close().unwrap();
    log.close().unwrap();
    assert!(matches!(log.append(b"more", 1), Err(Error::Closed)));
    let (_, recovered, _) = open(&vfs.crashed(&SeededRandom::new(1)), WHOLE).unwrap();
    assert_eq!((recovered.last_seq, recovered.commits), (1, 1));
    vfs.edit(&path, |bytes| bytes[start + 45] ^= 1);
    assert!(matches!(open(&vfs, WHOLE), Err(Error::Corruption { .. })));
}

#[test]
fn a_log_that_ends_before_what_the_manifest_knows_is_refused() {
    let vfs = TestVfs::new();
    let (log, _, _) = open(&vfs, EMPTY).unwrap();
    commit_durably(&log, b"one");
    let before_last = log.live_segments().segments[0].copy_len as usize;
    commit_durably(&log, b"two");
    vfs.edit(&newest(&log), |bytes| bytes[before_last..].fill(0));
    let known = RecoveryStart { last_seq: 2, ..WHOLE };
    assert!(matches!(open(&vfs, known), Err(Error::Corruption { .. })));
}

#[test]
fn commits_go_over_several_segments_and_a_lost_one_is_noticed() {
    let vfs = TestVfs::new();
    let (log, _, _) = open_sized(&vfs, EMPTY, 512).unwrap();
    for i in 0..20u8 {
        commit_durably(&log, &[i; 100]);
    }
    let segments = log.live_segments().segments;
    assert!(segments.len() >= 7, "{segments:?}");
    assert!(segments.windows(2).all(|w| w[0].end_pos == w[1].start_pos));
    drop(log);
    let image = vfs.crashed(&SeededRandom::new(0));
    assert_eq!(open_sized(&image, WHOLE, 512).unwrap().2.len(), 20);

    for lost in [0, 3] {
        let image = vfs.crashed(&SeededRandom::new(0));
        image.edit(&segments[lost].path, |bytes| bytes[..SEGMENT_HEADER_LEN].fill(0));
        let error = open_sized(&image, WHOLE, 512).unwrap_err();
        assert!(matches!(error, Error::Corruption { .. }), "{error}");
    }
    // The newest one holds nothing that another file vouches for, except by its generation.
    let image = vfs.crashed(&SeededRandom::new(0));
    let last = segments.last().unwrap();
    image.edit(&last.path, |bytes| bytes[30] ^= 1);
    match open_sized(&image, WHOLE, 512) {
        Err(Error::Corruption { path, offset: 0, .. }) => assert_eq!(path, last.path),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_commit_larger_than_a_segment_gets_one_of_its_own_that_is_not_kept() {
    let vfs = TestVfs::new();
    let (log, _, _) = open_sized(&vfs, EMPTY, 1024).unwrap();
    commit_durably(&log, b"small");
    commit_durably(&log, &[7; 10_000]);
    let seq = commit_durably(&log, b"small again");
    assert_eq!(log.segment_count(), 3);
    let image = vfs.crashed(&SeededRandom::new(0));
    let (_, _, commits) = open_sized(&image, WHOLE, 1024).unwrap();
    assert_eq!(commits.iter().map(|c| c.1.len()).collect::<Vec<_>>(), [5, 10_000, 11]);
    log.rotate().unwrap();
    log.release(log.log_start(seq)).unwrap();
    assert_eq!(log.segment_count(), 1);
    assert!(vfs.paths().iter().all(|path| vfs.bytes(path).len() == 1024));
}

#[test]
fn a_recycled_segments_old_chunks_are_never_replayed() {
    let vfs = TestVfs::new();
    let (log, _, _) = open_sized(&vfs, EMPTY, 1024).unwrap();
    for _ in 0..8 {
        commit_durably(&log, b"old");
    }
    log.rotate().unwrap();
    let log_start = log.log_start(8);
    log.release(log_start).unwrap();
    // Goes into the file of the first segment, whose old chunks follow the new one.
    log.rotate().unwrap();
    commit_durably(&log, b"new");
    assert_eq!(newest(&log), segment(0));
    drop(log);
    let from = RecoveryStart { log_start, last_seq: 8, expect_log: true };
    let (_, recovered, commits) = open_sized(&vfs, from, 1024).unwrap();
    assert_eq!(commits, [(9, b"new".to_vec())]);
    assert_eq!(recovered.torn_bytes, 0);
}

#[test]
fn a_log_that_was_long_makes_no_new_files_when_it_is_so_again_and_gives_them_up_when_it_is_not() {
    let vfs = TestVfs::new();
    let (log, _, _) = open_sized(&vfs, EMPTY, 1024).unwrap();
    let grow_and_release = |count: usize| {
        let mut seq = 0;
        while log.segment_count() < count {
            seq = commit_durably(&log, b"x");
            log.rotate().unwrap();
        }
        log.release(log.log_start(seq)).unwrap();
        assert_eq!(log.segment_count(), 1);
        vfs.paths().len()
    };
    let files = grow_and_release(10);
    for _ in 0..5 {
        assert_eq!(grow_and_release(10), files);
    }
    let few = std::iter::repeat_with(|| grow_and_release(2)).take(10).last();
    assert!(few < Some(files), "{few:?} of {files} files are left");
    assert!(few >= Some(files - 5), "{few:?} of {files} files are left");

    assert_eq!(grow_and_release(100), grow_and_release(10), "there is a bound");
    assert!(vfs.paths().len() > files);
    log.keep_few_idle().unwrap();
    assert!(Some(vfs.paths().len()) <= few, "nobody writes any more");
}

#[test]
fn a_segment_sealed_after_the_manifest_was_written_is_kept() {
    let vfs = TestVfs::new();
    let (log, _, _) = open(&vfs, EMPTY).unwrap();
    let seq = commit_durably(&log, b"flushed");
    commit_durably(&log, b"not flushed");
    let log_start = log.log_start(seq);
    log.rotate().unwrap();
    log.release(log_start).unwrap();
    let from = RecoveryStart { log_start, last_seq: seq, expect_log: true };
    assert_eq!(open(&vfs, from).unwrap().2.len(), 2);
}

#[test]
fn segments_held_for_a_copy_are_not_reused() {
    let vfs = TestVfs::new();
    let (log, _, _) = open(&vfs, EMPTY).unwrap();
    let seq = commit_durably(&log, b"copied");
    log.rotate().unwrap();
    let held = log.live_segments();
    log.release(log.log_start(seq)).unwrap();
    assert_eq!(log.segment_count(), 2);
    assert_eq!(held.segments.len(), 2);
    drop(held);
    log.release(log.log_start(seq)).unwrap();
    assert_eq!(log.segment_count(), 1);
}

#[test]
fn crashes_in_a_row_leave_void_segments_whose_chunks_are_never_replayed() {
    let vfs = TestVfs::new();
    let (log, _, _) = open(&vfs, EMPTY).unwrap();
    commit_durably(&log, b"kept");
    drop(log);
    for round in 0..6 {
        let (log, recovered, commits) = open(&vfs, WHOLE).unwrap();
        assert_eq!((commits.len(), recovered.last_seq), (1, 1), "round {round}");
        // Handed over but never synced; of the two chunks only the second reaches the disk.
        commit(&log, b"lost");
        log.wait_written(2).unwrap();
        commit(&log, b"lost as well");
        log.wait_written(3).unwrap();
        vfs.edit(&newest(&log), |bytes| bytes[SEGMENT_HEADER_LEN..][..40].fill(0));
    }
    assert!(vfs.paths().len() <= 5, "{:?}", vfs.paths());
    // By now the file in use was a void segment that started at the same position. A chunk as long
    // as the lost one makes the stale second chunk follow it, with the position expected there.
    let (log, _, _) = open(&vfs, WHOLE).unwrap();
    commit_durably(&log, b"once");
    let stale = log.live_segments().segments.last().unwrap().copy_len as usize;
    assert_eq!(vfs.bytes(&newest(&log))[stale..][..2], *b"K2");
    drop(log);
    let (_, recovered, commits) = open(&vfs, WHOLE).unwrap();
    assert_eq!(commits, [(1, b"kept".to_vec()), (2, b"once".to_vec())]);
    assert_eq!(recovered.torn_bytes, 0);
}

#[test]
fn a_missing_log_is_noticed_when_one_is_expected() {
    let vfs = TestVfs::new();
    assert!(matches!(open(&vfs, WHOLE), Err(Error::Corruption { .. })));
    assert!(open(&vfs, EMPTY).is_ok());
}

#[test]
fn a_foreign_file_and_a_newer_version_are_refused() {
    let vfs = TestVfs::new();
    let (log, _, _) = open(&vfs, EMPTY).unwrap();
    let path = newest(&log);
    drop(log);
    let options = LogOptions { segment_bytes: 4096, interval: Duration::ZERO };
    let other =
        Log::open(&vfs.env(false), Path::new(DIR), [9; 16], options, WHOLE, &mut |_| Ok(()));
    assert!(matches!(other, Err(Error::ForeignFile { .. })));
    vfs.edit(&path, |bytes| bytes[8] = 3);
    assert!(matches!(open(&vfs, WHOLE), Err(Error::Version { found: 3, supported: 2, .. })));
}

#[test]
fn scrubbing_leaves_no_byte_of_a_released_segment() {
    let vfs = TestVfs::new();
    let secret = b"a secret that must go";
    let holds_secret = |path: &PathBuf| vfs.bytes(path).windows(secret.len()).any(|w| w == secret);
    let (log, _, _) = open_sized(&vfs, EMPTY, 1024).unwrap();
    let mut seq = 0;
    for _ in 0..30 {
        seq = commit_durably(&log, secret);
    }
    log.release(log.log_start(seq)).unwrap();
    log.scrub().unwrap();
    log.release(log.log_start(seq)).unwrap();
    log.scrub().unwrap();
    assert!(!vfs.paths().iter().any(holds_secret));
    commit_durably(&log, b"life goes on");
}

/// How the log stands when it is closed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Closing {
    /// More than a mebibyte was written to the segment, and nothing of it is needed.
    Ballast,
    /// As much, and all of it is needed.
    Needed,
    /// A little.
    Short,
    /// Nothing but what a recovery read.
    Empty,
    /// So much that there is no room for a mark.
    Brimful,
}

impl Closing {
    const ALL: [Closing; 5] =
        [Closing::Ballast, Closing::Needed, Closing::Short, Closing::Empty, Closing::Brimful];

    /// The log right before it is closed, where a recovery has to begin, and what it has to find.
    fn make(self) -> (Arc<TestVfs>, Log, RecoveryStart, Commits) {
        let vfs = TestVfs::new();
        let segment_bytes = if self == Closing::Brimful { 1024 } else { 2 * MIB };
        let (mut log, ..) = open_sized(&vfs, EMPTY, segment_bytes).unwrap();
        let mut commits = Commits::new();
        let mut add = |log: &Log, ops: &[u8]| {
            commits.push((commit_durably(log, ops), ops.to_vec()));
        };
        match self {
            Closing::Ballast | Closing::Needed => {
                // The first segment is a small one.
                add(&log, &[0; 900 << 10]);
                add(&log, &[1; 1200 << 10]);
                add(&log, &[2; 100 << 10]);
            }
            Closing::Short => add(&log, b"a little"),
            Closing::Empty => {
                add(&log, b"a little");
                drop(log);
                log = open_sized(&vfs, WHOLE, segment_bytes).unwrap().0;
            }
            Closing::Brimful => add(&log, &[0; 1024 - 64 - 40 - 3 - 5]),
        }
        let mut from = WHOLE;
        if self == Closing::Ballast {
            let last_seq = log.durable();
            from = RecoveryStart { log_start: log.log_start(last_seq), last_seq, expect_log: true };
            log.release(from.log_start).unwrap();
            commits.clear();
        }
        (vfs, log, from, commits)
    }
}

fn bytes_on_disk(vfs: &TestVfs) -> u64 {
    vfs.paths().iter().map(|path| vfs.bytes(path).len() as u64).sum()
}

#[test]
fn a_closed_log_leaves_what_is_needed_and_no_more() {
    for closing in Closing::ALL {
        let (vfs, log, from, commits) = closing.make();
        let last_seq = log.durable();
        log.close().unwrap();
        let left = bytes_on_disk(&vfs);
        let most = match closing {
            Closing::Ballast => SEGMENT_HEADER_LEN as u64,
            Closing::Needed => 2 * MIB + (1301 << 10),
            Closing::Short => 256,
            Closing::Empty => MIB + 64,
            Closing::Brimful => 1024 + 64,
        };
        assert!(left <= most, "{closing:?}: {left}");
        let (log, recovered, found) = open_sized(&vfs, from, 2 * MIB).unwrap();
        assert!(found == commits && recovered.last_seq == last_seq, "{closing:?}");
        assert_eq!(vfs.bytes(&newest(&log)).len() as u64, MIB, "{closing:?}");
        // It goes on in segments of the usual size, and closes again.
        for _ in 0..3 {
            commit_durably(&log, &[3; 700 << 10]);
        }
        assert_eq!(vfs.bytes(&newest(&log)).len() as u64, 2 * MIB, "{closing:?}");
        log.close().unwrap();
        let (_, recovered, found) = open_sized(&vfs, from, 2 * MIB).unwrap();
        assert_eq!((recovered.last_seq, found.len()), (last_seq + 3, commits.len() + 3));
    }
}

/// The power goes off, or the process is killed, before each operation of closing.
#[test]
fn a_crash_in_any_step_of_closing_leaves_a_log_that_opens_with_all_it_had() {
    for closing in Closing::ALL {
        for steps in 0.. {
            let (vfs, log, from, commits) = closing.make();
            let last_seq = log.durable();
            vfs.power_off_after(steps);
            let closed = log.close();
            drop(log);
            if vfs.has_power_left() {
                closed.unwrap();
                assert!(steps > 1, "{closing:?}: {steps} steps");
                break;
            }
            vfs.power_off_after(-1);
            let crashed = (0..2).map(|seed| vfs.crashed(&SeededRandom::new(seed)));
            for image in crashed.chain([Arc::clone(&vfs)]) {
                let (log, recovered, found) = open_sized(&image, from, 2 * MIB)
                    .unwrap_or_else(|error| panic!("{closing:?}, step {steps}: {error}"));
                assert_eq!(recovered.last_seq, last_seq, "{closing:?}, step {steps}");
                assert!(found == commits, "{closing:?}, step {steps}");
                let next = commit_durably(&log, b"next");
                drop(log);
                let (.., found) = open_sized(&image, from, 2 * MIB).unwrap();
                assert_eq!(found.last(), Some(&(next, b"next".to_vec())), "{closing:?}");
            }
        }
    }
}

/// Every byte of a closed log, damaged one at a time: nothing is lost in silence. Of a log that
/// was not closed, the last chunk may be: nothing on disk tells its damage from a torn write.
#[test]
fn no_damaged_byte_loses_a_synced_commit_in_silence() {
    for close in [false, true] {
        let vfs = TestVfs::new();
        let (log, _, _) = open_sized(&vfs, EMPTY, 512).unwrap();
        let mut model = Commits::new();
        for i in 0..9u8 {
            let ops = vec![i; 60 + 5 * i as usize];
            model.push((commit_durably(&log, &ops), ops));
        }
        if close {
            log.close().unwrap();
        }
        drop(log);
        let kept_min = if close { 9 } else { 8 };
        for path in vfs.paths() {
            for at in 0..vfs.bytes(&path).len() {
                let image = vfs.crashed(&SeededRandom::new(0));
                image.edit(&path, |bytes| bytes[at] ^= 1 << (at % 8));
                match open_sized(&image, WHOLE, 512) {
                    Ok((_, _, commits)) => {
                        assert!(commits.len() >= kept_min, "{path:?} at {at}: {}", commits.len());
                        assert_eq!(commits[..], model[..commits.len()], "{path:?} at {at}");
                    }
                    Err(error) => assert!(
                        matches!(
                            error,
                            Error::Corruption { .. }
                                | Error::Version { .. }
                                | Error::ForeignFile { .. }
                        ),
                        "{error}"
                    ),
                }
            }
        }
    }
}

/// The engine in small: commits, syncs, rotations and releases, with the power going off at any
/// operation, again and again. What was acknowledged is there, what is there is a prefix.
#[test]
fn after_any_crash_the_log_is_a_prefix_that_holds_all_that_was_acknowledged() {
    for seed in 0..3000 {
        let random = SeededRandom::new(seed);
        let below = |n: u64| random.next_u64() % n;
        let mut vfs = TestVfs::new();
        let mut from = EMPTY;
        let mut model: Commits = Vec::new();
        let mut acknowledged = 0;
        for _ in 0..8 {
            // Sometimes the power goes off while recovering.
            vfs.power_off_after(below(60) as i64);
            match open_sized(&vfs, from, 1024) {
                Ok((log, recovered, commits)) => {
                    check_replay(seed, &model, &commits, from, recovered, acknowledged);
                    model.truncate(recovered.last_seq as usize);
                    // What was replayed is on disk by now and may have been seen by readers.
                    acknowledged = recovered.last_seq;
                    from.expect_log = true;
                    run_until_power_off(&log, &below, &mut model, &mut acknowledged, &mut from);
                }
                Err(error) => assert!(matches!(error, Error::Io { .. }), "seed {seed}: {error}"),
            }
            // Or only the process dies, and what it wrote is still in the page cache.
            if below(3) > 0 {
                vfs = vfs.crashed(&random);
            }
        }
        vfs.power_off_after(-1);
        let (_, recovered, commits) =
            open_sized(&vfs, from, 1024).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        check_replay(seed, &model, &commits, from, recovered, acknowledged);
    }
}

fn run_until_power_off(
    log: &Log,
    below: &dyn Fn(u64) -> u64,
    model: &mut Commits,
    acknowledged: &mut Seq,
    from: &mut RecoveryStart,
) {
    for _ in 0..60 {
        match below(12) {
            0 if log.rotate().is_err() => return,
            1 => {
                let upto = log.durable();
                let log_start = log.log_start(upto);
                *from = RecoveryStart { log_start, last_seq: upto, expect_log: true };
                let _ = log.release(log_start);
            }
            2..5 => {
                let Ok(seq) = log.sync() else { return };
                *acknowledged = seq;
            }
            5 if log.wait_written(log.appended()).is_err() => return,
            6 if log.scrub().is_err() => return,
            _ => {
                let len = if below(10) == 0 { 2000 } else { below(200) };
                let ops = vec![below(256) as u8; len as usize];
                let Ok(ticket) = log.append(&ops, 1) else { return };
                model.push((ticket.first_seq, ops));
                log.applied(ticket);
            }
        }
    }
}

fn check_replay(
    seed: u64,
    model: &Commits,
    commits: &Commits,
    from: RecoveryStart,
    recovered: Recovered,
    acknowledged: Seq,
) {
    let last = recovered.last_seq as usize;
    assert!(recovered.last_seq >= acknowledged, "seed {seed}: {recovered:?} {acknowledged}");
    assert!(last <= model.len(), "seed {seed}");
    let first = commits.first().map_or(last + 1, |commit| commit.0 as usize);
    assert!(first as u64 <= from.last_seq + 1, "seed {seed}: a hole after {from:?}");
    assert_eq!(commits[..], model[first - 1..last], "seed {seed}");
}
