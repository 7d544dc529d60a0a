//! What the demo's table holds: two ways of running the same workflow, side by side. Every run
//! extracts six albums from a photo, asks a person to check them, and estimates their prices.
//!
//! The same at every start: nothing is random and no clock is asked.

use kstone::table::{IndexProjection, IndexSpec, KeyAttribute, KeySchema, TableSpec};
use kstone::{Item, Number, Value};

use crate::time;

pub const TABLE: &str = "workflows";

/// Each input runs once in either way.
const PAIRS: u64 = 20;
const PAIRS_A_DAY: u64 = 2;
const KINDS: [&str; 2] = ["step-functions", "durable-functions"];
const ALBUMS_OF_A_RUN: u64 = 6;
/// 2025-01-15T10:30:00Z
const START_MS: u64 = 1_736_937_000_000;
const DAY_MS: u64 = 86_400_000;
const HOUR_MS: u64 = 3_600_000;

const ALBUMS: [(&str, &str, u32); 13] = [
    ("The Dark Side of the Moon", "Pink Floyd", 1973),
    ("Abbey Road", "The Beatles", 1969),
    ("Kind of Blue", "Miles Davis", 1959),
    ("Blue", "Joni Mitchell", 1971),
    ("Rumours", "Fleetwood Mac", 1977),
    ("Songs in the Key of Life", "Stevie Wonder", 1976),
    ("Autobahn", "Kraftwerk", 1974),
    ("Horses", "Patti Smith", 1975),
    ("Pastel Blues", "Nina Simone", 1965),
    ("Remain in Light", "Talking Heads", 1980),
    ("Blue Train", "John Coltrane", 1957),
    ("Exodus", "Bob Marley and the Wailers", 1977),
    ("Purple Rain", "Prince", 1984),
];

/// The table with its three indexes, two of them with keys of two attributes and two.
pub fn table() -> TableSpec {
    let string = |name: &str| KeyAttribute::string(name);
    let index = |name: &str, hash: Vec<KeyAttribute>, range: Vec<KeyAttribute>| IndexSpec {
        name: name.to_owned(),
        key: KeySchema { hash, range },
        projection: IndexProjection::All,
        throughput: None,
    };
    let by_status = || vec![string("status"), string("createdAt")];
    TableSpec {
        name: TABLE.to_owned(),
        key: KeySchema::hash_range(string("pk"), string("sk")),
        global: vec![
            index("GSI1", vec![string("workflowType"), string("entityType")], by_status()),
            index(
                "GSI2",
                vec![string("workflowType"), string("executionId")],
                vec![string("entityType"), KeyAttribute::number("sortValue")],
            ),
            index("GSI3", vec![string("entityType")], by_status()),
        ],
        ..TableSpec::default()
    }
}

/// All items, in no order that matters.
pub fn items() -> Vec<Item> {
    let runs: Vec<Run> = (1..=PAIRS * 2).map(Run::of).collect();
    let mut items = Vec::new();
    for run in &runs {
        items.push(run.execution());
        items.extend((1..=ALBUMS_OF_A_RUN).map(|index| run.album(index)));
        items.extend(run.task());
    }
    for day in 0..PAIRS / PAIRS_A_DAY {
        for kind in KINDS {
            let of_day = runs.iter().filter(|run| run.day == day && run.kind == kind);
            items.push(metrics(day, kind, of_day));
        }
    }
    items
}

/// One execution of the workflow, from which its items follow.
struct Run {
    id: String,
    number: u64,
    pair: u64,
    kind: &'static str,
    day: u64,
    start_ms: u64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Waiting,
    Completed,
    Failed,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Waiting => "waiting",
            State::Completed => "completed",
            State::Failed => "failed",
        }
    }
}

impl Run {
    fn of(number: u64) -> Run {
        let pair = number.div_ceil(2);
        let day = (pair - 1) / PAIRS_A_DAY;
        let is_first = number % 2 == 1;
        let state = match (pair, is_first) {
            (20, _) => State::Running,
            (18 | 19, _) => State::Waiting,
            (7, true) | (13, false) => State::Failed,
            _ => State::Completed,
        };
        Run {
            id: format!("exec-{number:03}"),
            number,
            pair,
            kind: if is_first { KINDS[0] } else { KINDS[1] },
            day,
            start_ms: START_MS + day * DAY_MS + (pair - 1) % PAIRS_A_DAY * HOUR_MS,
            state,
        }
    }

    fn has_ended(&self) -> bool {
        matches!(self.state, State::Completed | State::Failed)
    }

    fn duration_ms(&self) -> u64 {
        38_000 + self.pair * 977 % 9_000 + self.number % 2 * 1_500
    }

    /// In millionths of a dollar.
    fn cost_micros(&self) -> u64 {
        4_200 + self.number % 2 * 1_850 + self.pair * 53 % 400
    }

    fn updated_ms(&self) -> u64 {
        self.start_ms + if self.has_ended() { self.duration_ms() } else { 5_000 }
    }

    fn common(&self, pk: &str, sk: &str, entity: &str) -> Item {
        Item::new()
            .with("pk", pk)
            .with("sk", sk)
            .with("entityType", entity)
            .with("workflowType", self.kind)
            .with("executionId", self.id.as_str())
            .with("createdAt", moment(self.start_ms))
    }

    fn execution(&self) -> Item {
        let when_ended = |value: Value| if self.has_ended() { value } else { Value::Null };
        self.common(&self.id, "metadata", "execution")
            .with("status", self.state.name())
            .with("comparisonId", format!("input-{:03}", self.pair))
            .with("imageS3Key", self.image())
            .with("startTime", moment(self.start_ms))
            .with("endTime", when_ended(moment(self.updated_ms()).into()))
            .with("durationMs", when_ended(self.duration_ms().into()))
            .with("estimatedCost", when_ended(millionths(self.cost_micros()).into()))
            .with("updatedAt", moment(self.updated_ms()))
            .with("sortValue", 0)
    }

    fn album(&self, index: u64) -> Item {
        let (at, (name, artist, year)) = self.album_at(index);
        let mut item = self
            .common(&self.id, &format!("album-{index}"), "album")
            .with("albumIndex", index)
            .with("albumName", name)
            .with("artist", artist)
            .with("year", i64::from(year))
            .with("yearOriginal", i64::from(year))
            .with("yearValidated", self.state == State::Completed)
            .with("imageRegion", region(index))
            .with("updatedAt", moment(self.updated_ms()))
            .with("sortValue", index);
        if self.state == State::Completed {
            // Of the album alone, so that both ways of running agree.
            item.insert("priceEstimate", millionths((18 + at * 17 % 61) * 1_000_000 + 500_000));
            item.insert("priceConfidence", millionths((70 + at * 7 % 29) * 10_000));
            item.insert("priceSource", "discogs-api");
        }
        item
    }

    fn album_at(&self, index: u64) -> (u64, (&'static str, &'static str, u32)) {
        let at = (self.pair * 5 + index * 2 + 6) % ALBUMS.len() as u64;
        (at, ALBUMS.get(at as usize).copied().unwrap_or(("", "", 0)))
    }

    fn image(&self) -> String {
        format!("uploads/albums-{:03}.jpg", self.pair)
    }

    /// A person is asked once the albums are read from the photo.
    fn task(&self) -> Option<Item> {
        let status = match self.state {
            State::Running => return None,
            State::Waiting => "pending",
            State::Failed => "timeout",
            State::Completed => "completed",
        };
        let id = format!("task-{:03}", self.number);
        let albums = (1..=ALBUMS_OF_A_RUN).map(|index| {
            let (_, (name, artist, year)) = self.album_at(index);
            let album = Item::new().with("albumIndex", index).with("albumName", name);
            Value::M(album.with("artist", artist).with("year", i64::from(year)))
        });
        let completed = match status {
            "completed" => moment(self.updated_ms()).into(),
            _ => Value::Null,
        };
        Some(
            self.common(&id, "metadata", "task")
                .with("taskId", id.as_str())
                .with("status", status)
                .with("imageS3Key", self.image())
                .with("albums", albums.collect::<Vec<_>>())
                .with("expiresAt", moment(self.start_ms + HOUR_MS))
                .with("completedAt", completed)
                .with("sortValue", 0),
        )
    }
}

fn region(index: u64) -> Item {
    let (column, row) = ((index - 1) % 3, (index - 1) / 3);
    Item::new().with("x", column * 200).with("y", row * 200).with("width", 200).with("height", 200)
}

/// Sums and counts, from which averages follow.
fn metrics<'a>(day: u64, kind: &str, runs: impl Iterator<Item = &'a Run>) -> Item {
    let (mut count, mut successes, mut failures, mut duration_ms, mut cost) = (0, 0, 0, 0, 0);
    for run in runs {
        count += 1;
        if run.has_ended() {
            duration_ms += run.duration_ms();
            cost += run.cost_micros();
        }
        successes += i64::from(run.state == State::Completed);
        failures += i64::from(run.state == State::Failed);
    }
    let end = moment(START_MS + day * DAY_MS - START_MS % DAY_MS + DAY_MS - 1000);
    let date = end.split('T').next().unwrap_or_default().to_owned();
    Item::new()
        .with("pk", date.as_str())
        .with("sk", format!("metrics-{kind}"))
        .with("entityType", "metrics")
        .with("workflowType", kind)
        .with("status", "daily")
        .with("date", date)
        .with("executionCount", count)
        .with("successCount", successes)
        .with("failureCount", failures)
        .with("durationMsSum", duration_ms)
        .with("costSum", millionths(cost))
        .with("createdAt", end)
        .with("sortValue", 0)
}

fn moment(ms: u64) -> String {
    time::moment(ms).replace(".000Z", "Z")
}

/// Exactly `micros` / 1,000,000.
fn millionths(micros: u64) -> Number {
    format!("{micros}e-6").parse().unwrap_or_else(|_| Number::from(0u64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_item_has_its_own_key_and_the_same_value_at_every_start() {
        let all = items();
        let key = |item: &Item| {
            let part = |name: &str| item.get(name).unwrap().as_str().unwrap().to_owned();
            (part("pk"), part("sk"))
        };
        assert_eq!(all.iter().map(key).collect::<BTreeSet<_>>().len(), all.len());
        assert_eq!(all.len(), 40 + 240 + 38 + 20);
        assert_eq!(all, items());
    }

    #[test]
    fn both_ways_of_running_agree_on_prices_and_no_album_is_twice_in_a_run() {
        let (one, other) = (Run::of(1), Run::of(2));
        let mut names = BTreeSet::new();
        for index in 1..=ALBUMS_OF_A_RUN {
            let (one, other) = (one.album(index), other.album(index));
            assert_eq!(one.get("priceEstimate"), other.get("priceEstimate"));
            assert_eq!(one.get("albumName"), other.get("albumName"));
            names.insert(one.get("albumName").unwrap().as_str().unwrap().to_owned());
        }
        assert_eq!(names.len(), 6);
    }
}
