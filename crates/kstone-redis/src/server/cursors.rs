//! Positions of SCAN and ZSCAN, whose cursor is only a number: the key or member to continue after.
//!
//! The server keeps the positions by number; there are few, and the oldest are forgotten first. A
//! cursor whose number is not known any more, or is from before the server was started, makes the
//! scan start that part again: it shows some things twice, and misses none.

use std::collections::VecDeque;

use kstone_core::env::Random;
use kstone_core::sync::Mutex;

/// Most positions that are kept, and most bytes of them.
const POSITIONS_MAX: usize = 16 * 1024;
const BYTES_MAX: usize = 4 << 20;
/// The first number is below that, so that a cursor made of it stays exact as a floating-point
/// number, which is what some clients take it for.
const FIRST_MAX: u64 = 1 << 44;

/// See the module.
#[derive(Debug)]
pub(crate) struct Cursors {
    positions: Mutex<Positions>,
}

#[derive(Debug)]
struct Positions {
    /// The number of the oldest place.
    first: u64,
    kept: VecDeque<Box<[u8]>>,
    bytes: usize,
}

impl Cursors {
    /// Without places. The numbers begin anywhere, so that those from before a restart are not
    /// taken for new ones.
    pub(crate) fn new(random: &impl Random) -> Cursors {
        let first = random.next_u64() % FIRST_MAX + 1;
        Cursors { positions: Mutex::new(Positions { first, kept: VecDeque::new(), bytes: 0 }) }
    }

    /// Keeps a place; returns its number, which is never 0.
    pub(crate) fn keep(&self, position: &[u8]) -> u64 {
        let mut positions = self.positions.lock();
        positions.bytes += position.len();
        positions.kept.push_back(position.into());
        while positions.kept.len() > POSITIONS_MAX
            || (positions.bytes > BYTES_MAX && positions.kept.len() > 1)
        {
            let forgotten = positions.kept.pop_front().map_or(0, |position| position.len());
            positions.bytes -= forgotten;
            positions.first += 1;
        }
        positions.first + positions.kept.len() as u64 - 1
    }

    /// The place with this number, if it is still known.
    pub(crate) fn find(&self, number: u64) -> Option<Vec<u8>> {
        let positions = self.positions.lock();
        let at = usize::try_from(number.checked_sub(positions.first)?).ok()?;
        positions.kept.get(at).map(|position| position.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kstone_core::env::SeededRandom;

    #[test]
    fn a_position_is_found_until_too_many_came_after_it() {
        let cursors = Cursors::new(&SeededRandom::new(1));
        let first = cursors.keep(b"a");
        let second = cursors.keep(b"b");
        assert_ne!(first, 0);
        assert_eq!(cursors.find(first).as_deref(), Some(&b"a"[..]));
        assert_eq!(cursors.find(second).as_deref(), Some(&b"b"[..]));
        assert_eq!(cursors.find(second + 1), None);
        for _ in 1..POSITIONS_MAX {
            cursors.keep(b"c");
        }
        assert_eq!(cursors.find(first), None);
        assert_eq!(cursors.find(second).as_deref(), Some(&b"b"[..]));
    }

    #[test]
    fn long_places_do_not_take_more_memory() {
        let cursors = Cursors::new(&SeededRandom::new(1));
        let long = vec![0; BYTES_MAX / 4];
        let numbers: Vec<u64> = (0..6).map(|_| cursors.keep(&long)).collect();
        let known = numbers.iter().filter(|number| cursors.find(**number).is_some()).count();
        assert_eq!(known, 4);
        let last = cursors.keep(&vec![0; 2 * BYTES_MAX]);
        assert!(cursors.find(last).is_some());
        assert_eq!(cursors.find(last - 1), None);
    }
}
