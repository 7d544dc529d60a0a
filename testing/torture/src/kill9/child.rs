//! The process that is killed.

use std::io::Write;
use std::path::Path;

use kstone_core::env::{Random, SeededRandom};
use kstone_core::{Durability, Engine, Result};

use super::OPENING;
use super::work::{self, T, WRITERS};

/// Writes to the database until somebody kills it, and says what it was promised on its standard
/// output.
pub fn child(args: &[String]) -> Result<(), String> {
    let [dir, seed] = args else { return Err("expected a folder and a seed".to_owned()) };
    let seed: u64 = seed.parse().map_err(|_| "the seed is no number".to_owned())?;
    say(OPENING);
    let engine = Engine::open(Path::new(dir), work::options()).map_err(|e| e.to_string())?;
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let random = SeededRandom::new(seed.wrapping_add(writer));
                let engine = &engine;
                scope.spawn(move || write(engine, writer, &random))
            })
            .collect();
        let join = |writer: std::thread::ScopedJoinHandle<'_, Result<()>>| match writer.join() {
            Ok(result) => result.map_err(|e| e.to_string()),
            Err(_) => Err("a writer panicked".to_owned()),
        };
        writers.into_iter().try_for_each(join)
    })
}

/// One line in one write, so that lines of several threads do not mix. If nobody listens any more,
/// there is nothing left to do.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

fn write(engine: &Engine, writer: u64, random: &SeededRandom) -> Result<()> {
    let mut k = work::number(engine, &work::head_key(writer))?;
    loop {
        k += 1;
        let mut batch = work::batch(writer, k)?;
        let dice = random.next_u64() % 8;
        let durability = match dice {
            0..4 => Durability::Sync,
            4 => Durability::Interval,
            _ => Durability::Os,
        };
        let commit = if work::counts(k) {
            let total = work::total_key();
            let mut stripes = batch.stripes();
            stripes.insert(total.stripe());
            let locked = engine.lock_stripes(stripes)?;
            let count = locked.get(T, &total)?.map_or(0, |r| work::from_bytes(&r.value));
            batch.put(T, &total, &(count + 1).to_be_bytes())?;
            locked.commit(&batch, durability)?
        } else {
            engine.write(&batch, durability)?
        };
        say(&format!("commit {writer} {k} {} {}", commit.first_seq(), commit.seq()));
        if dice == 7 {
            // Not on disk, but no longer in this process.
            commit.wait_written()?;
            say(&format!("ack {writer} {k}"));
        } else {
            commit.wait()?;
            if durability == Durability::Sync {
                say(&format!("ack {writer} {k}"));
            }
        }
        match random.next_u64() % 600 {
            0 => engine.compact()?,
            1..4 => engine.flush()?,
            _ => {}
        }
    }
}
