//! Whether the clock can be believed, seen before anything is timed.
//!
//! On a virtual machine Linux's clock was seen to stand still on one of two cores between ticks (probably
//! because the cores counted time differently): what was timed there took nothing, or whole ticks of four
//! milliseconds. Figures of such a clock look like figures. It is found out without asking any other clock:
//! who reads one that goes does not get the same time a thousand times in a row.
//!
//! Called by `machine`; touches nothing.

use std::io;
use std::sync::Barrier;
use std::time::Instant;

/// By each thread: some dozens of milliseconds.
const READS: usize = 400_000;
/// So often: two threads may share a core, and a clock that was just chosen may go for a while.
const LOOKS: usize = 5;
/// More readings in a row that are all the same are of a clock that stands still. A clock of whole
/// microseconds gives some dozens.
const SAME_MAX: usize = 1000;

/// How long one reading takes at least, in nanoseconds, or what is wrong with the clock.
pub fn read_ns() -> io::Result<f64> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let start_line = Barrier::new(cores);
    let look = || {
        start_line.wait();
        let (mut first, mut last) = (None, None);
        let readings = std::iter::repeat_with(Instant::now).take(READS).inspect(|&reading| {
            first.get_or_insert(reading);
            last = Some(reading);
        });
        let same = longest_same(readings);
        let time = last.zip(first).map(|(last, first)| last - first).unwrap_or_default();
        (same, time.as_secs_f64() * 1e9 / READS as f64)
    };
    let look_on_all = |_| -> Vec<(usize, f64)> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..cores).map(|_| scope.spawn(look)).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        })
    };
    let seen: Vec<(usize, f64)> = (0..LOOKS).flat_map(look_on_all).collect();
    let same = seen.iter().map(|(same, _)| *same).max().unwrap_or(0);
    if same > SAME_MAX {
        return Err(io::Error::other(format!(
            "the clock stands still on at least one core: {same} readings in a row gave the same \
             time, so nothing that is measured here would be true. On Linux another one may help: \
             see current_clocksource and available_clocksource in \
             /sys/devices/system/clocksource/clocksource0"
        )));
    }
    Ok(seen.iter().map(|(_, ns)| *ns).fold(f64::INFINITY, f64::min))
}

/// The most readings in a row that are all the same.
fn longest_same<T: PartialEq>(readings: impl Iterator<Item = T>) -> usize {
    let (mut longest, mut count, mut latest) = (0, 0, None);
    for reading in readings {
        let reading = Some(reading);
        count = if reading == latest { count + 1 } else { 1 };
        latest = reading;
        longest = longest.max(count);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_time_that_a_clock_stands_still_is_counted_in_readings() {
        assert_eq!(longest_same([1, 2, 3].into_iter()), 1);
        assert_eq!(longest_same([1, 2, 2, 3, 4, 4, 4].into_iter()), 3);
        assert_eq!(longest_same([5, 5, 5, 5, 6, 6].into_iter()), 4);
        assert_eq!(longest_same(std::iter::empty::<u8>()), 0);
    }
}
