//! The short run of the fuzzer: valid files, damaged in a few thousand seeded ways, go through
//! every decoder. None may panic, and none may take memory out of proportion to its input.
//!
//! The long run is in `fuzz/`. Both use `kstone_core::fuzzing`.
#![allow(unsafe_code, reason = "counting what is allocated takes a GlobalAlloc")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use kstone_core::env::{Random, SeededRandom};
use kstone_core::fuzzing;

/// What a decoder may take beyond its input: the largest block there is, and small change.
/// (Zstandard's own tables are C's memory and are not counted; they do not depend on the input.)
const MEMORY_MAX: usize = 64 << 20;

/// Counts the bytes that this thread has allocated, and the most that it ever had.
struct Counting;

thread_local! {
    // Signed: a thread may free what another has allocated.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

impl Counting {
    fn add(bytes: usize) {
        LIVE.set(LIVE.get() + bytes as isize);
        PEAK.set(PEAK.get().max(LIVE.get()));
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::add(layout.size());
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Counting::add(layout.size());
        // SAFETY: the caller keeps the promises of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size() as isize);
        // SAFETY: the caller keeps the promises of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that `run` had allocated at one time, beyond what there was before.
fn peak_of(run: impl FnOnce()) -> usize {
    let before = LIVE.get();
    PEAK.set(before);
    run();
    PEAK.get().saturating_sub(before).unsigned_abs()
}

/// Says which input it was, if a panic passes by.
struct OnPanic<'a> {
    target: &'a str,
    case: u64,
    input: &'a [u8],
}

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{} panicked in case {}: {:02x?}", self.target, self.case, self.input);
        }
    }
}

/// Lengths and counts that decoders trip over.
const EXTREMES: [u64; 9] =
    [0, 1, 0x7f, 0x80, 0x7fff_ffff, 0xffff_fff8, 0xffff_ffff, u64::MAX >> 3, u64::MAX];

/// Damages `input` once to a few times, in one of the ways that disks and bugs do.
fn mutate(input: &mut Vec<u8>, others: &[&[u8]], random: &SeededRandom) {
    let below = |n: usize| (random.next_u64() % n.max(1) as u64) as usize;
    for _ in 0..=below(3) {
        let at = below(input.len());
        match below(8) {
            0 | 1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << below(8);
                }
            }
            2 => input.truncate(at),
            3 => {
                let extreme = EXTREMES[below(EXTREMES.len())].to_le_bytes();
                let width = [1, 4, 8][below(3)];
                // Fields are mostly aligned; the odd ones come by chance.
                let at = if below(2) == 0 { at & !3 } else { at };
                for (to, from) in input.iter_mut().skip(at).take(width).zip(extreme) {
                    *to = from;
                }
            }
            4 => {
                let end = (at + 1 + below(64)).min(input.len());
                input.get_mut(at..end).unwrap_or_default().fill(0);
            }
            5 => {
                let other = others[below(others.len())];
                let from = below(other.len());
                let piece = &other[from..(from + 1 + below(128)).min(other.len())];
                let end = if below(2) == 0 { at } else { (at + piece.len()).min(input.len()) };
                input.splice(at..end, piece.iter().copied());
            }
            6 => {
                let end = (at + 1 + below(32)).min(input.len());
                let piece: Vec<u8> = input.get(at..end).unwrap_or_default().to_vec();
                input.splice(at..at, piece);
            }
            _ => {
                let end = (at + 1 + below(16)).min(input.len());
                for byte in input.get_mut(at..end).unwrap_or_default() {
                    *byte = random.next_u64() as u8;
                }
            }
        }
    }
}

fn check(name: &str, cases: u64) {
    let (_, target) = fuzzing::TARGETS.iter().find(|(target, _)| *target == name).unwrap();
    let seeds = fuzzing::seeds();
    let seeds: Vec<&[u8]> =
        seeds.iter().filter(|(target, _)| *target == name).map(|(_, seed)| &**seed).collect();
    for case in 0..cases {
        let random = SeededRandom::new(case);
        let mut input = seeds[case as usize % seeds.len()].to_vec();
        mutate(&mut input, &seeds, &random);
        let _on_panic = OnPanic { target: name, case, input: &input };
        let peak = peak_of(|| target(&input));
        assert!(peak <= input.len() + MEMORY_MAX, "{name} took {peak} bytes in case {case}");
    }
}

#[test]
fn a_damaged_log_is_refused_or_recovered() {
    check("wal", 1500);
}

#[test]
fn a_damaged_manifest_is_refused_or_recovered() {
    check("manifest", 1500);
}

#[test]
fn a_damaged_sst_is_refused() {
    check("sst", 20_000);
}

#[test]
fn a_damaged_current_is_refused() {
    check("current", 1500);
}

#[test]
fn damaged_parts_of_files_are_refused() {
    for part in [
        "manifest_record",
        "sst_frame",
        "sst_block",
        "sst_index",
        "sst_filter",
        "sst_directory",
        "sst_properties",
        "batch",
        "key",
        "scan_cursor",
    ] {
        check(part, 5000);
    }
}

/// Writes extremes over every number that the headers of a log can hold, one at a time.
#[test]
fn a_log_with_an_extreme_number_is_refused_or_recovered() {
    let seeds = fuzzing::seeds();
    let (_, seed) = seeds.iter().find(|(target, _)| *target == "wal").unwrap();
    // Segment header, chunk header, commit header.
    for at in (8..64 + 72 + 16).step_by(4) {
        for extreme in EXTREMES {
            for width in [4, 8] {
                let mut input = seed.clone();
                input[at..at + width].copy_from_slice(&extreme.to_le_bytes()[..width]);
                let _on_panic = OnPanic { target: "wal", case: at as u64, input: &input };
                fuzzing::wal(&input);
            }
        }
    }
}

/// A manifest whose only record is a snapshot with one extreme number.
#[test]
fn a_manifest_with_an_extreme_number_is_refused_or_recovered() {
    let seeds = fuzzing::seeds();
    let (_, seed) = seeds.iter().find(|(target, _)| *target == "manifest").unwrap();
    let varint = |mut value: u64| {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    };
    // next_file_id, last_seq, log_start, clock, next_table; then a stripe's mark and a table.
    for extreme_tag in [5, 6, 7, 8, 9, 3, 10] {
        for extreme in EXTREMES {
            let mut payload = Vec::new();
            for tag in [5, 6, 7, 8, 9, 3, 10] {
                let number = varint(if tag == extreme_tag { extreme } else { 0 });
                let body = match tag {
                    3 => [vec![0], number].concat(),
                    10 => [number, vec![0]].concat(),
                    _ => number,
                };
                payload.extend([tag, body.len() as u8]);
                payload.extend(body);
            }
            let mut input = seed[..44].to_vec();
            input.extend((payload.len() as u32).to_le_bytes());
            input.extend([0xff; 12]);
            input.extend(payload);
            let _on_panic =
                OnPanic { target: "manifest", case: u64::from(extreme_tag), input: &input };
            fuzzing::manifest(&input);
        }
    }
}

#[test]
fn no_decoder_is_forgotten_here() {
    let source = include_str!("decoders.rs");
    for (name, _) in fuzzing::TARGETS {
        assert!(source.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[test]
fn the_allocator_notices_what_a_decoder_takes() {
    let peak = peak_of(|| drop(std::hint::black_box(vec![1u8; MEMORY_MAX + 1])));
    assert!(peak > MEMORY_MAX, "{peak}");
}

#[test]
fn a_block_that_claims_to_be_huge_is_refused_before_it_is_allocated() {
    // LZ4 and Zstandard, uncompressed length of nearly 64 MiB and of nearly 4 GiB.
    for kind in [1, 2] {
        for len in [64 << 20, u32::MAX] {
            let mut frame = vec![0; 100];
            frame.push(kind);
            frame.extend_from_slice(&len.to_le_bytes());
            frame.extend_from_slice(&[0; 8]);
            let peak = peak_of(|| fuzzing::sst_frame(&frame));
            assert!(peak < 1 << 20, "{peak}");
        }
    }
}
