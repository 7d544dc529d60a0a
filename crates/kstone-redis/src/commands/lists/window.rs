//! The stretch of a list that is read often, kept in memory ([`crate::server::hot_keys`]): the
//! newest entries of a timeline, the next jobs of a queue.
//!
//! It knows elements by their positions, so that a push or a pop at an end of the list costs a push
//! or a pop at an end of the stretch, or nothing.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;

use crate::server::hot_keys::Resident;

/// How much memory the stretch of one list may take: more than anybody reads at once and often.
pub(super) const BYTES_MAX: usize = 1 << 20;
/// What an element takes beside its own bytes.
const OVERHEAD: usize = 72;

/// See the module.
#[derive(Debug)]
pub(super) struct Window {
    /// The place of the first element that is kept.
    first: u64,
    elements: VecDeque<Bytes>,
    bytes: usize,
}

/// How much memory an element takes.
pub(super) fn cost(element: &[u8]) -> usize {
    element.len() + OVERHEAD
}

impl Resident for Window {
    fn bytes(&self) -> usize {
        self.bytes + size_of::<Window>()
    }
}

impl Window {
    /// The elements from this place on.
    pub(super) fn new(first: u64, elements: VecDeque<Bytes>) -> Window {
        let bytes = elements.iter().map(|element| cost(element)).sum();
        Window { first, elements, bytes }
    }

    /// Whether no element is left.
    pub(super) fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    fn end(&self) -> u64 {
        self.first.wrapping_add(self.elements.len() as u64)
    }

    /// The elements at these places, if all of them are here.
    pub(super) fn get(
        &self,
        places: &Range<u64>,
    ) -> Option<impl DoubleEndedIterator<Item = &Bytes>> {
        if places.start < self.first || places.end > self.end() || places.start > places.end {
            return None;
        }
        let start = (places.start - self.first) as usize;
        let end = (places.end - self.first) as usize;
        Some(self.elements.range(start..end))
    }

    /// An element was written at a place: a new one at an end of the list, or another one.
    pub(super) fn put(&mut self, place: u64, element: &Bytes) {
        if self.elements.is_empty() {
            return;
        }
        if place.wrapping_add(1) == self.first {
            self.first = place;
            self.elements.push_front(element.clone());
            self.bytes += cost(element);
            while self.bytes > BYTES_MAX && self.elements.len() > 1 {
                self.pop_back();
            }
        } else if place == self.end() {
            self.elements.push_back(element.clone());
            self.bytes += cost(element);
            while self.bytes > BYTES_MAX && self.elements.len() > 1 {
                self.pop_front();
            }
        } else if let Some(at) = place.checked_sub(self.first)
            && let Some(have) = self.elements.get_mut(at as usize)
        {
            self.bytes = self.bytes - cost(have) + cost(element);
            *have = element.clone();
        }
    }

    /// The element at a place was removed.
    pub(super) fn delete(&mut self, place: u64) {
        if place == self.first {
            self.pop_front();
        } else if place.wrapping_add(1) == self.end() {
            self.pop_back();
        } else if place > self.first && place < self.end() {
            // What is behind it may be gone as well.
            while self.end() > place {
                self.pop_back();
            }
        }
    }

    fn pop_front(&mut self) {
        if let Some(element) = self.elements.pop_front() {
            self.first = self.first.wrapping_add(1);
            self.bytes -= cost(&element);
        }
    }

    fn pop_back(&mut self) {
        if let Some(element) = self.elements.pop_back() {
            self.bytes -= cost(&element);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(first: u64, texts: &[&'static str]) -> Window {
        Window::new(first, texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect())
    }

    fn shown(window: &Window, places: Range<u64>) -> Option<Vec<&[u8]>> {
        window.get(&places).map(|elements| elements.map(|element| &element[..]).collect())
    }

    #[test]
    fn it_follows_the_ends_that_it_touches_and_no_others() {
        let mut window = window(10, &["a", "b", "c"]);
        window.put(9, &Bytes::from_static(b"z"));
        window.put(13, &Bytes::from_static(b"d"));
        window.put(20, &Bytes::from_static(b"far"));
        window.put(11, &Bytes::from_static(b"B"));
        assert_eq!(shown(&window, 9..14), Some(vec![&b"z"[..], b"a", b"B", b"c", b"d"]));
        assert_eq!(shown(&window, 9..15), None);
        window.delete(9);
        window.delete(13);
        window.delete(30);
        assert_eq!(shown(&window, 10..13), Some(vec![&b"a"[..], b"B", b"c"]));
        assert_eq!(shown(&window, 9..13), None);
    }

    #[test]
    fn what_is_removed_in_the_middle_takes_the_rest_with_it() {
        let mut window = window(10, &["a", "b", "c"]);
        window.delete(11);
        assert_eq!(shown(&window, 10..11), Some(vec![&b"a"[..]]));
        assert_eq!(shown(&window, 10..12), None);
    }

    #[test]
    fn it_stays_within_its_bounds_on_the_side_that_grows() {
        let mut window = window(1000, &["a"]);
        let long = Bytes::from(vec![0; 100_000]);
        for place in (0..1000).rev().take(50) {
            window.put(place, &long);
        }
        assert!(window.bytes() <= BYTES_MAX + size_of::<Window>());
        assert!(window.get(&(950..951)).is_some());
        assert!(window.get(&(1000..1001)).is_none());
    }
}
