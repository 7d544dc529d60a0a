//! [`Metrics`]: the counts of all declared keys, as an API and as a stored item.

use std::collections::BTreeMap;

use kstone::{Item, Number, Value};

pub use super::expiring::Expiring;
use super::unknown::UnknownSeen;
use crate::docs::Usage;

/// Metrics of all declared keys.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Metrics {
    /// When this was.
    pub at_ms: u64,
    /// Each pattern in each place where it has, or had, keys.
    pub patterns: Vec<PatternMetrics>,
    /// By how many changes all of it together may be off: those that a crash took from the counts,
    /// or that came while everything was counted anew. 0 is exact; a recount makes it so.
    pub off_by_changes_max: u64,
    /// Writes to keys that no pattern declares, if they are counted.
    pub unknown: UnknownSeen,
}

/// Metrics of one pattern in one Redis database or table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PatternMetrics {
    /// The pattern: `mastery.daily_mastery`.
    pub pattern: String,
    /// The name under which it is counted with others: `daily_snapshots`.
    pub metric: String,
    /// The table, or the database of Redis: `table state`, `db 0`.
    pub place: String,
    /// Keys. One whose time is over counts until it is removed, at most for five minutes.
    pub keys: u64,
    /// Bytes of keys and values as they are stored, before compression.
    pub bytes: u64,
    /// Whether the bytes are estimated: of a collection the members' mean size is known, by those
    /// that were written.
    pub bytes_are_estimated: bool,
    /// Members of collections.
    pub members: u64,
    /// Keys that end within the next hour.
    pub expiring_next_hour: Expiring,
    /// Writes, since they were first counted.
    pub writes: u64,
    /// Writes per second, as an exponential mean over a minute.
    pub writes_per_second: f64,
}

impl Metrics {
    /// The metrics of a pattern, summed over all databases and tables.
    pub fn usage(&self, pattern: &str) -> Option<Usage> {
        let mut usage: Option<Usage> = None;
        for it in self.patterns.iter().filter(|it| it.pattern == pattern) {
            let sum = usage.get_or_insert_default();
            sum.keys += it.keys;
            sum.bytes += it.bytes;
            sum.expiring_next_hour += it.expiring_next_hour.likely;
            sum.writes_per_second += it.writes_per_second;
        }
        usage
    }

    /// How many keys there are under each metric's name, in order.
    pub fn keys_by_metric(&self) -> BTreeMap<&str, u64> {
        let mut keys = BTreeMap::new();
        for it in &self.patterns {
            *keys.entry(it.metric.as_str()).or_default() += it.keys;
        }
        keys
    }

    /// Whether the metrics look the same as others.
    pub(super) fn is_like(&self, other: &Metrics) -> bool {
        let is_like = |one: &PatternMetrics, other: &PatternMetrics| {
            let rate = |it: &PatternMetrics| (it.writes_per_second * 100.0).round();
            let rest =
                |it: &PatternMetrics| PatternMetrics { writes_per_second: 0.0, ..it.clone() };
            rate(one) == rate(other) && rest(one) == rest(other)
        };
        self.patterns.len() == other.patterns.len()
            && self.patterns.iter().zip(&other.patterns).all(|(a, b)| is_like(a, b))
            && (self.off_by_changes_max, &self.unknown)
                == (other.off_by_changes_max, &other.unknown)
    }

    /// As an item without key, which [`of_item`](Metrics::of_item) reads.
    pub fn item(&self) -> Item {
        self.row(Item::new())
    }

    /// The stored form of the metrics, with these key attributes. Patterns without keys are left
    /// out.
    pub(super) fn row(&self, key: Item) -> Item {
        let used = self.patterns.iter().filter(|it| it.keys > 0 || it.writes > 0);
        let examples = self.unknown.examples.iter().map(|it| Value::from(it.as_str()));
        key.with("at", self.at_ms)
            .with("off_by_changes_max", self.off_by_changes_max)
            .with("patterns", Value::L(used.map(|it| Value::M(it.item())).collect()))
            .with("unknown_writes", self.unknown.writes)
            .with("unknown_examples", Value::L(examples.collect()))
    }

    /// Reads the stored form.
    pub fn of_item(item: &Item) -> Metrics {
        let patterns = item.get("patterns").and_then(Value::as_list).unwrap_or_default();
        let examples = item.get("unknown_examples").and_then(Value::as_list).unwrap_or_default();
        Metrics {
            at_ms: number(item, "at"),
            patterns: patterns.iter().filter_map(Value::as_map).map(PatternMetrics::of).collect(),
            off_by_changes_max: number(item, "off_by_changes_max"),
            unknown: UnknownSeen {
                writes: number(item, "unknown_writes"),
                examples: examples.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            },
        }
    }
}

impl PatternMetrics {
    fn item(&self) -> Item {
        let Expiring { at_least, likely, at_most } = self.expiring_next_hour;
        let hundredths = (self.writes_per_second * 100.0).round() as u64;
        Item::new()
            .with("pattern", self.pattern.as_str())
            .with("metric", self.metric.as_str())
            .with("place", self.place.as_str())
            .with("keys", self.keys)
            .with("bytes", self.bytes)
            .with("bytes_are_estimated", self.bytes_are_estimated)
            .with("members", self.members)
            .with("expiring_at_least", at_least)
            .with("expiring", likely)
            .with("expiring_at_most", at_most)
            .with("writes", self.writes)
            .with("writes_per_100_s", hundredths)
    }

    fn of(item: &Item) -> PatternMetrics {
        let text =
            |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        PatternMetrics {
            pattern: text("pattern"),
            metric: text("metric"),
            place: text("place"),
            keys: number(item, "keys"),
            bytes: number(item, "bytes"),
            bytes_are_estimated: matches!(item.get("bytes_are_estimated"), Some(Value::Bool(true))),
            members: number(item, "members"),
            expiring_next_hour: Expiring {
                at_least: number(item, "expiring_at_least"),
                likely: number(item, "expiring"),
                at_most: number(item, "expiring_at_most"),
            },
            writes: number(item, "writes"),
            writes_per_second: number(item, "writes_per_100_s") as f64 / 100.0,
        }
    }
}

fn number(item: &Item, name: &str) -> u64 {
    item.get(name).and_then(Value::as_number).and_then(|it: Number| it.to_u64()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_reads_back() {
        let expiring_next_hour = Expiring { at_least: 1, likely: 2, at_most: 3 };
        let one = PatternMetrics {
            pattern: "mastery.daily_mastery".to_owned(),
            metric: "daily_snapshots".to_owned(),
            place: "table state".to_owned(),
            keys: 7,
            bytes: 700,
            bytes_are_estimated: true,
            members: 3,
            expiring_next_hour,
            writes: 9,
            writes_per_second: 1.25,
        };
        let examples = vec!["the key `x` of Redis".to_owned()];
        let metrics = Metrics {
            at_ms: 5,
            patterns: vec![one],
            off_by_changes_max: 2,
            unknown: UnknownSeen { writes: 4, examples },
        };
        assert_eq!(Metrics::of_item(&metrics.row(Item::new())), metrics);
        assert!(metrics.is_like(&metrics.clone()));
    }
}
