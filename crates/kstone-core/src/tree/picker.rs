//! Which compaction a stripe needs most, if any. Pure: sizes in, a task out.
//!
//! Leveled. L0 is due by number of files, deeper levels by size. A stripe holds 1/256 of the data,
//! so its levels are small: up to `l1_bytes` a stripe (2 GiB in all by default) there is one level
//! below L0, and every compaction of it is a whole merge, which is the cheapest shape there is.

use std::sync::Arc;

use crate::manifest::LEVELS;
use crate::options::Tuning;
use crate::tree::file::TreeFile;
use crate::tree::levels::Levels;

/// A compaction to carry out.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    /// The files to merge, with their level; newest source first.
    pub(crate) inputs: Vec<(u8, Arc<TreeFile>)>,
    /// Where the result goes.
    pub(crate) output_level: u8,
    /// No input overlaps the output level: the files can move there as they are.
    pub(crate) is_move: bool,
}

/// How badly a stripe needs compaction: 1.0 and above is due.
pub(crate) fn score(levels: &Levels, tuning: &Tuning) -> f64 {
    scored(levels, tuning).map_or(0.0, |(score, _)| score)
}

fn scored(levels: &Levels, tuning: &Tuning) -> Option<(f64, usize)> {
    let l0 = levels.level(0).len() as f64 / tuning.l0_compact_files as f64;
    let mut best = (l0, 0);
    // The last level that the manifest knows has none below to push into.
    for level in 1..levels.depth().min(LEVELS - 1) {
        let score = levels.level_bytes(level) as f64 / level_bytes_max(level, tuning) as f64;
        if score > best.0 {
            best = (score, level);
        }
    }
    (best.0 > 0.0).then_some(best)
}

/// The size at which a level pushes down into the next.
fn level_bytes_max(level: usize, tuning: &Tuning) -> u64 {
    tuning.l1_bytes.saturating_mul(10u64.saturating_pow(level.saturating_sub(1) as u32)).max(1)
}

/// The size at which an output file of `level` is closed.
pub(crate) fn file_bytes_max(level: u8, tuning: &Tuning) -> u64 {
    tuning.file_bytes.saturating_mul(1 << u64::from(level.saturating_sub(1).min(4))).max(1)
}

/// The task that is most due; `None` when nothing is.
pub(crate) fn pick(levels: &Levels, tuning: &Tuning) -> Option<Task> {
    let (score, level) = scored(levels, tuning)?;
    if score < 1.0 {
        return None;
    }
    if level == 0 { l0(levels) } else { pick_level(levels, level) }
}

/// All of L0, with what it overlaps in L1; `None` if there is nothing in L0.
pub(crate) fn l0(levels: &Levels) -> Option<Task> {
    let mut inputs: Vec<_> = levels.level(0).iter().map(|f| (0, Arc::clone(f))).collect();
    if inputs.is_empty() {
        return None;
    }
    let low = inputs.iter().map(|(_, f)| f.meta().smallest.as_slice()).min().unwrap_or_default();
    let high = inputs.iter().map(|(_, f)| f.meta().largest.as_slice()).max().unwrap_or_default();
    let below = overlapping(levels.level(1), low, high);
    let is_move = inputs.len() == 1 && below.is_empty();
    inputs.extend(below.into_iter().map(|f| (1, f)));
    Some(Task { inputs, output_level: 1, is_move })
}

/// One file of the level, with what it overlaps in the next: the one that rewrites least for the
/// bytes that it moves.
fn pick_level(levels: &Levels, level: usize) -> Option<Task> {
    let next = levels.level(level + 1);
    let (file, below) = levels
        .level(level)
        .iter()
        .map(|file| {
            let below = overlapping(next, &file.meta().smallest, &file.meta().largest);
            (file, below)
        })
        .min_by(|(a, a_below), (b, b_below)| {
            let cost = |file: &TreeFile, below: &[Arc<TreeFile>]| {
                let rewritten: u64 = below.iter().map(|f| f.meta().file_bytes).sum();
                rewritten as f64 / file.meta().file_bytes.max(1) as f64
            };
            cost(a, a_below).total_cmp(&cost(b, b_below))
        })?;
    let is_move = below.is_empty();
    let mut inputs = vec![(level as u8, Arc::clone(file))];
    inputs.extend(below.into_iter().map(|f| (level as u8 + 1, f)));
    Some(Task { inputs, output_level: level as u8 + 1, is_move })
}

/// Every file of the stripe into its last level: what `compact` and `purge` ask for.
pub(crate) fn everything(levels: &Levels) -> Option<Task> {
    let mut inputs = Vec::new();
    for level in 0..levels.depth() {
        inputs.extend(levels.level(level).iter().map(|f| (level as u8, Arc::clone(f))));
    }
    if inputs.is_empty() {
        return None;
    }
    let output_level = levels.depth().saturating_sub(1).max(1) as u8;
    Some(Task { inputs, output_level, is_move: false })
}

fn overlapping(level: &[Arc<TreeFile>], low: &[u8], high: &[u8]) -> Vec<Arc<TreeFile>> {
    level
        .iter()
        .filter(|f| f.meta().largest.as_slice() >= low && f.meta().smallest.as_slice() <= high)
        .cloned()
        .collect()
}
