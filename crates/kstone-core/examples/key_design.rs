//! Five ways to design keys: `cargo run --example key_design`.
//!
//! A partition key says what lies together, a sort key in which order. Each pattern here answers a
//! question with one query, without an index.

use kstone_core::key_design::{escaped, inverted_ms, padded, price_cents};
use kstone_core::{Durability, Engine, Key, Options, Result, TableId, WriteBatch};

const T: TableId = TableId::DEFAULT;

fn main() -> Result<()> {
    run()
}

/// All five patterns, on a database in memory.
pub fn run() -> Result<()> {
    let engine = Engine::memory(Options::default())?;
    hierarchical_keys(&engine)?;
    timestamps_in_sort_keys(&engine)?;
    composite_sort_keys(&engine)?;
    versions(&engine)?;
    aggregates(&engine)
}

/// A path in the partition key. Each record is a partition of its own, spread over the stripes;
/// "everything of one tenant" is a list of partition keys by prefix, in order.
fn hierarchical_keys(engine: &Engine) -> Result<()> {
    println!("1. hierarchical keys");
    // A tenant may call itself whatever it likes: escaped, it cannot reach into another one.
    let user = |tenant: &str, id: u32| format!("tenant#{}:user#{id}", escaped(tenant));
    put(engine, Key::new(user("acme", 123)), "Ada")?;
    put(engine, Key::new(user("acme", 124)), "Grace")?;
    put(engine, Key::new(user("beta", 456)), "Edsger")?;
    put(engine, Key::new(user("acme:user#123", 1)), "Mallory")?;
    put(engine, Key::new("country#US:state#CA:city#SF"), "fog")?;

    let of_acme: Vec<String> = engine
        .snapshot()
        .partition_keys(T, b"tenant#acme:")?
        .map(|pk| Ok(text(&pk?)))
        .collect::<Result<_>>()?;
    show(&of_acme);
    assert_eq!(of_acme, ["tenant#acme:user#123", "tenant#acme:user#124"]);
    Ok(())
}

/// A time in the sort key makes a partition a time series: forwards as ISO 8601, newest first as
/// inverted milliseconds.
fn timestamps_in_sort_keys(engine: &Engine) -> Result<()> {
    println!("2. timestamps in sort keys");
    for minute in 0..5 {
        let at = format!("2024-01-15T10:{minute:02}:00Z");
        put(engine, Key::with_sk("sensor#temperature", at), &format!("{}.5", 20 + minute))?;
    }
    let range = "2024-01-15T10:01"..="2024-01-15T10:03:00Z";
    let readings = sort_keys(engine.partition(T, "sensor#temperature").range(range).iter()?)?;
    show(&readings);
    assert_eq!(readings, ["2024-01-15T10:01:00Z", "2024-01-15T10:02:00Z", "2024-01-15T10:03:00Z"]);

    for (ms, title) in [(1_705_312_800_000, "first"), (1_705_312_860_000, "second")] {
        put(engine, Key::with_sk("user#123:posts", inverted_ms(ms)), title)?;
    }
    let newest = values(engine.partition(T, "user#123:posts").iter()?)?;
    show(&newest);
    assert_eq!(newest, ["second", "first"]);
    Ok(())
}

/// Several attributes in one sort key: equal on the first, ordered by the next. Numbers are padded,
/// prices rounded to cents (19.99 is 1999, not 1998).
fn composite_sort_keys(engine: &Engine) -> Result<()> {
    println!("3. composite sort keys");
    for (status, at, id) in [
        ("pending", "2024-01-15T10:05:00Z", "order125"),
        ("pending", "2024-01-15T10:00:00Z", "order123"),
        ("shipped", "2024-01-15T09:00:00Z", "order120"),
    ] {
        put(engine, Key::with_sk("order#queue", format!("{status}#{at}#{id}")), id)?;
    }
    let pending = values(engine.partition(T, "order#queue").prefix("pending#").iter()?)?;
    show(&pending);
    assert_eq!(pending, ["order123", "order125"]);

    let product = |category: &str, price: f64, id: &str| -> Result<String> {
        Ok(format!("{}#{}#{id}", escaped(category), price_cents(price, 10)?))
    };
    for (category, price, id) in
        [("books", 19.99, "p1"), ("books", 5.0, "p2"), ("books", 100.0, "p3"), ("toys", 7.5, "p4")]
    {
        put(engine, Key::with_sk("products", product(category, price, id)?), id)?;
    }
    assert_eq!(product("books", 19.99, "p1")?, "books#0000001999#p1");
    // Books from 5 to 20: `~` sorts behind every id.
    let (low, high) = (product("books", 5.0, "")?, product("books", 20.0, "~")?);
    let cheap = values(engine.partition(T, "products").range(low..=high).iter()?)?;
    show(&cheap);
    assert_eq!(cheap, ["p2", "p1"]);

    for (priority, id) in [(10, "tidy"), (9, "fix"), (1, "stop the leak")] {
        let sk = format!("priority:{}#created:2024-01-15#{}", padded(priority), escaped(id));
        put(engine, Key::with_sk("tasks", sk), id)?;
    }
    let tasks = values(engine.partition(T, "tasks").iter()?)?;
    show(&tasks);
    assert_eq!(tasks, ["stop the leak", "fix", "tidy"]);
    Ok(())
}

/// A version in the sort key keeps them all; the latest is the first one backwards. Padded, because
/// `v10` would sort before `v9`.
fn versions(engine: &Engine) -> Result<()> {
    println!("4. versions, latest first");
    for version in 1..=12 {
        let key = Key::with_sk("doc#readme", format!("v{}", padded(version)));
        put(engine, key, &format!("content {version}"))?;
    }
    let latest = values(engine.partition(T, "doc#readme").prefix("v").reverse().iter()?.take(1))?;
    show(&latest);
    assert_eq!(latest, ["content 12"]);
    Ok(())
}

/// Sums beside what they sum up, in the same partition: the event and the sums change in one batch,
/// under one lock, so they never disagree.
fn aggregates(engine: &Engine) -> Result<()> {
    println!("5. aggregation keys");
    let pk = "stats#page:/home";
    for (day, user) in [("2024-01-15", 123), ("2024-01-15", 456), ("2024-01-16", 123)] {
        let view = Key::with_sk(pk, format!("{day}#user#{user}"));
        let daily = Key::with_sk(pk, format!("daily#{day}"));
        let month = day.get(..7).unwrap_or(day);
        let monthly = Key::with_sk(pk, format!("monthly#{month}"));

        let locked = engine.lock([&view])?;
        let mut batch = WriteBatch::new();
        batch.put(T, &view, b"1")?;
        for sum in [&daily, &monthly] {
            let so_far: u64 = match locked.get(T, sum)? {
                Some(record) => text(&record.value).parse().unwrap_or(0),
                None => 0,
            };
            batch.put(T, sum, (so_far + 1).to_string().as_bytes())?;
        }
        locked.commit(&batch, Durability::Sync)?.wait()?;
    }
    let daily = values(engine.partition(T, pk).prefix("daily#").iter()?)?;
    let monthly = values(engine.partition(T, pk).prefix("monthly#").iter()?)?;
    show(&daily);
    show(&monthly);
    assert_eq!((daily, monthly), (vec!["2".into(), "1".into()], vec![String::from("3")]));
    Ok(())
}

fn put(engine: &Engine, key: Key, value: &str) -> Result<()> {
    let mut batch = WriteBatch::new();
    batch.put(T, &key, value.as_bytes())?;
    engine.write(&batch, Durability::Sync)?.wait()
}

type Found = Result<kstone_core::KeyedRecord>;

fn values(found: impl Iterator<Item = Found>) -> Result<Vec<String>> {
    found.map(|record| Ok(text(&record?.record.value))).collect()
}

fn sort_keys(found: impl Iterator<Item = Found>) -> Result<Vec<String>> {
    found.map(|record| Ok(text(&record?.key.sk.unwrap_or_default()))).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn show(lines: &[String]) {
    for line in lines {
        println!("   {line}");
    }
}
