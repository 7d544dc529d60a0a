//! A cache of parsed expressions, by their text.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::expr::ast::{Condition, Projection, Update};
use crate::expr::parse;

/// What a text of the usual length counts for.
const USUAL_TEXT_BYTES: usize = 128;

/// What every text counts for besides its length: its place in the cache and the top of its tree.
const ENTRY_BYTES: usize = 64;

/// Longer texts are not remembered. Programs that repeat a text have a short one; long ones are
/// made for one request, and one of them would push dozens of useful ones out.
const TEXT_BYTES_MAX: usize = 1024;

/// Remembers the trees of expressions by their text, the least useful forgotten first. A program
/// sends few texts and many values, so most requests find theirs. Errors are not remembered:
/// wrong texts would push right ones out.
///
/// What is bounded is the bytes of the texts, and with them those of the trees: a tree takes at
/// most some thirty times the bytes of its text.
#[derive(Debug)]
pub struct ExpressionCache {
    conditions: Trees<Condition>,
    updates: Trees<Update>,
    projections: Trees<Projection>,
}

type Trees<T> = Cache<String, Arc<T>, ByText>;

#[derive(Debug, Clone, Copy)]
struct ByText;

impl<T> Weighter<String, Arc<T>> for ByText {
    fn weight(&self, text: &String, _: &Arc<T>) -> u64 {
        (text.len() + ENTRY_BYTES) as u64
    }
}

impl ExpressionCache {
    /// Remembers `capacity` texts of the usual length of each of the three grammars: fewer long
    /// ones, more short ones.
    pub fn new(capacity: usize) -> Self {
        let bytes = capacity as u64 * (USUAL_TEXT_BYTES + ENTRY_BYTES) as u64;
        ExpressionCache {
            conditions: Cache::with_weighter(capacity, bytes, ByText),
            updates: Cache::with_weighter(capacity, bytes, ByText),
            projections: Cache::with_weighter(capacity, bytes, ByText),
        }
    }

    pub(super) fn condition(&self, text: &str, bytes_max: usize) -> Result<Arc<Condition>, String> {
        find_or_parse(&self.conditions, text, bytes_max, parse::condition)
    }

    pub(super) fn update(&self, text: &str, bytes_max: usize) -> Result<Arc<Update>, String> {
        find_or_parse(&self.updates, text, bytes_max, parse::update)
    }

    pub(super) fn projection(
        &self,
        text: &str,
        bytes_max: usize,
    ) -> Result<Arc<Projection>, String> {
        find_or_parse(&self.projections, text, bytes_max, parse::projection)
    }
}

fn find_or_parse<T>(
    cache: &Trees<T>,
    text: &str,
    bytes_max: usize,
    parse: fn(&str, usize) -> Result<T, String>,
) -> Result<Arc<T>, String> {
    if text.len() > TEXT_BYTES_MAX {
        return parse(text, bytes_max).map(Arc::new);
    }
    if let Some(tree) = cache.get(text) {
        return Ok(tree);
    }
    let tree = Arc::new(parse(text, bytes_max)?);
    cache.insert(text.to_owned(), Arc::clone(&tree));
    Ok(tree)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expr::token::EXPRESSION_BYTES_MAX;

    fn projection(cache: &ExpressionCache, text: &str) -> Arc<Projection> {
        cache.projection(text, EXPRESSION_BYTES_MAX).unwrap()
    }

    #[test]
    fn a_text_that_came_before_is_not_parsed_again() {
        let cache = ExpressionCache::new(16);
        let first = projection(&cache, "a, b");
        assert!(Arc::ptr_eq(&first, &projection(&cache, "a, b")));
    }

    #[test]
    fn the_bytes_of_remembered_texts_stay_below_the_capacity() {
        let cache = ExpressionCache::new(16);
        for n in 0..200 {
            projection(&cache, &format!("a{n:0>1000}"));
        }
        assert!(cache.projections.weight() <= 16 * 192, "{}", cache.projections.weight());
        let long = format!("a{}", "b".repeat(TEXT_BYTES_MAX));
        let first = projection(&cache, &long);
        assert!(!Arc::ptr_eq(&first, &projection(&cache, &long)), "too long to be remembered");
    }
}
