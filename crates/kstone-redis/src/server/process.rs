//! Facts about the process, for INFO.

use kstone_core::env::{Random, SystemRandom};

/// What the process uses; zeros where the system does not say.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// Memory that is really there.
    pub(crate) resident_bytes: u64,
    /// Memory of the machine.
    pub(crate) system_bytes: u64,
    pub(crate) user_seconds: f64,
    pub(crate) system_seconds: f64,
    pub(crate) children_user_seconds: f64,
    pub(crate) children_system_seconds: f64,
}

/// The kernel's unit of processor time.
const TICKS_PER_SECOND: f64 = 100.0;
const PAGE_BYTES: u64 = 4096;

pub(crate) fn usage() -> Usage {
    let mut usage = Usage::default();
    if let Ok(text) = std::fs::read_to_string("/proc/self/stat") {
        // The name is in parentheses and may hold anything.
        let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
        let mut fields = fields.split_whitespace();
        let mut seconds = |skip| {
            let ticks: f64 = fields.nth(skip)?.parse().ok()?;
            Some(ticks / TICKS_PER_SECOND)
        };
        usage.user_seconds = seconds(11).unwrap_or_default();
        usage.system_seconds = seconds(0).unwrap_or_default();
        usage.children_user_seconds = seconds(0).unwrap_or_default();
        usage.children_system_seconds = seconds(0).unwrap_or_default();
    }
    if let Ok(text) = std::fs::read_to_string("/proc/self/statm") {
        let pages = text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
        usage.resident_bytes = pages.unwrap_or(0) * PAGE_BYTES;
    }
    if let Ok(text) = std::fs::read_to_string("/proc/meminfo") {
        let kib = text.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok());
        usage.system_bytes = kib.unwrap_or(0) * 1024;
    }
    usage
}

/// Forty hexadecimal digits.
pub(crate) fn run_id() -> String {
    let digits: String = (0..3).map(|_| format!("{:016x}", SystemRandom.next_u64())).collect();
    digits.chars().take(40).collect()
}
