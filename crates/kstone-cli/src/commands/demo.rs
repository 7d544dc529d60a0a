//! `kstone demo`: a small data set, and every command shown on it.
//!
//! What is printed behind `$` is what runs: the line is parsed by the same parser and handed to
//! the same functions. Only the process stays the same, so that the counters of `stats` have
//! something to count.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Parser;
use kstone_core::{Durability, Engine, Key, WriteBatch};

use crate::Outcome;
use crate::args::{Cli, Command, Demo};
use crate::commands::{run_on, verify};
use crate::database::{self, TABLE};
use crate::output::{Output, counted};
use crate::time;

const USERS: u64 = 400;
const SENSORS: u64 = 60;
const READINGS_OF_A_SENSOR: u64 = 24;
const SESSIONS: u64 = 300;
/// 2024-01-15T10:00:00Z, as in the manual's examples.
const START_MS: u64 = 1_705_312_800_000;

pub fn run(args: &Demo, out: &mut Output) -> Result<Outcome> {
    let dir = match &args.dir {
        Some(dir) => own_folder(dir)?,
        None => new_folder()?,
    };
    let engine = database::open_or_create(&dir)?;
    out.line(out.faint(
        "# A small data set: users and their posts, sensor readings, sessions that expire.",
    ))?;
    let records = fill(&engine)?;
    out.line(format!("{} made in {}", counted(records, "record", "records"), dir.display()))?;

    let mut tour = Tour { dir: &dir, out };
    tour.say("A record has a partition key, and a value in JSON.")?;
    tour.show(&engine, &["get", "user#42"])?;
    tour.say("A sort key puts more records into the partition, in order.")?;
    tour.show(&engine, &["put", "user#42", "post#100", r#"{"title":"Hello from the demo"}"#])?;
    tour.say("The newest posts of a user: one partition, read backwards.")?;
    tour.show(&engine, &["query", "user#42", "--prefix", "post#", "--reverse", "--limit", "3"])?;
    tour.say("Ten o'clock, five minutes of one sensor: a range of sort keys.")?;
    tour.show(
        &engine,
        &["query", "sensor#07", "--from", "2024-01-15T10:00", "--to", "2024-01-15T10:04:59"],
    )?;
    tour.say("Records may expire; from that moment on they are not there.")?;
    tour.show(&engine, &["put", "session#new", "--ttl", "2h", r#"{"user":"user#42"}"#])?;
    tour.show(&engine, &["delete", "session#new"])?;
    tour.say("Everything, page by page; the cursor goes on where this page ends.")?;
    tour.show(&engine, &["scan", "--limit", "3"])?;
    tour.say("Partition keys by prefix, in order.")?;
    tour.show(&engine, &["scan", "--pk-prefix", "sensor#1", "--limit", "3"])?;
    // Closing the database would write it out too; done here, `stats` has files to show and reads
    // to count.
    engine.flush()?;
    for n in 0..2 * USERS {
        engine.get(TABLE, &Key::new(format!("user#{n}")))?;
    }
    tour.say("The hash of the partition key spreads records over 256 stripes.")?;
    tour.show(&engine, &["stats"])?;
    drop(engine);
    tour.say("Every block of every file, every commit in the log: read and checked.")?;
    tour.show_verify()?;

    let dir = quoted(&dir);
    out.line(out.bold(&format!("The data is in {dir} and stays there. Try:")))?;
    for hint in [
        format!("kstone query {dir} user#7 --prefix post#"),
        format!("kstone scan {dir} --segment 0/4 | wc -l"),
        format!("kstone stats {dir} --stripes"),
        format!("kstone compact {dir}"),
        format!("kstone checkpoint {dir} {dir}-copy"),
        "kstone --help".to_owned(),
    ] {
        out.line(format!("  {hint}"))?;
    }
    Ok(Outcome::Done)
}

fn own_folder(dir: &Path) -> Result<PathBuf> {
    if std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("{} is not empty; name a new folder, or none for a temporary one", dir.display());
    }
    Ok(dir.to_owned())
}

/// A folder that this call has made, so that two demos never meet.
fn new_folder() -> Result<PathBuf> {
    let base = std::env::temp_dir();
    for n in 1..10_000 {
        let dir = base.join(format!("kstone-demo-{n}"));
        match std::fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).context(format!("cannot make {}", dir.display())),
        }
    }
    bail!("{} is full of demos; remove some, or name a folder", base.display())
}

/// Some write more than others.
fn posts_of(user: u64) -> u64 {
    3 + user * 7 % 11
}

fn fill(engine: &Engine) -> Result<u64> {
    let mut filler = Filler { engine, batch: WriteBatch::new(), count: 0 };
    let names = ["Ada", "Grace", "Edsger", "Barbara", "Donald", "Hedy", "Alan", "Radia"];
    let topics = ["B-trees", "logs", "hashing", "recovery", "caches", "clocks", "queues"];
    let pick = |list: &[&'static str], n: u64| list[(n % list.len() as u64) as usize];
    for user in 1..=USERS {
        let pk = format!("user#{user}");
        let name = pick(&names, user * 7);
        let profile = format!(r#"{{"name":"{name}","karma":{}}}"#, user * 37 % 1000);
        filler.put(&Key::new(pk.clone()), &profile, None)?;
        for post in 1..=posts_of(user) {
            let title = format!(
                r#"{{"title":"On {}","likes":{}}}"#,
                pick(&topics, user + post),
                user * post % 97
            );
            filler.put(&Key::with_sk(pk.clone(), format!("post#{post:03}")), &title, None)?;
        }
    }
    for sensor in 0..SENSORS {
        for minute in 0..READINGS_OF_A_SENSOR {
            let moment = time::moment(START_MS + minute * 60_000).replace(".000Z", "Z");
            let celsius = 180 + (sensor * 13 + minute * minute * 7) % 60;
            let reading = format!(r#"{{"celsius":{}.{}}}"#, celsius / 10, celsius % 10);
            filler.put(&Key::with_sk(format!("sensor#{sensor:02}"), moment), &reading, None)?;
        }
    }
    let now_ms = engine.now_ms();
    for session in 0..SESSIONS {
        let value = format!(r#"{{"user":"user#{}"}}"#, session % USERS + 1);
        let expires_at_ms = now_ms + 600_000 + session * 1000;
        filler.put(&Key::new(format!("session#{session}")), &value, Some(expires_at_ms))?;
    }
    filler.commit()?;
    engine.sync()?;
    Ok(filler.count)
}

struct Filler<'a> {
    engine: &'a Engine,
    batch: WriteBatch,
    count: u64,
}

impl Filler<'_> {
    fn put(&mut self, key: &Key, value: &str, expires_at_ms: Option<u64>) -> Result<()> {
        match expires_at_ms {
            Some(at_ms) => self.batch.put_expiring(TABLE, key, value.as_bytes(), at_ms)?,
            None => self.batch.put(TABLE, key, value.as_bytes())?,
        }
        self.count += 1;
        if self.batch.len() >= 100 {
            self.commit()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.engine.write(&self.batch, Durability::Os)?.wait()?;
        self.batch.clear();
        Ok(())
    }
}

struct Tour<'a> {
    dir: &'a Path,
    out: &'a mut Output,
}

impl Tour<'_> {
    fn say(&mut self, text: &str) -> Result<()> {
        self.out.line("")?;
        self.out.line(self.out.faint(&format!("# {text}")))?;
        Ok(())
    }

    /// Prints the command and runs it on the open database.
    fn show(&mut self, engine: &Engine, words: &[&str]) -> Result<()> {
        let command = self.parse(words)?;
        run_on(engine, &command, self.out)?;
        Ok(self.out.flush()?)
    }

    /// `verify` wants the database closed.
    fn show_verify(&mut self) -> Result<()> {
        if let Command::Verify(args) = self.parse(&["verify"])? {
            verify::run(&args, self.out)?;
        }
        self.out.line("")?;
        Ok(())
    }

    /// The first word is the command; the folder comes behind it.
    fn parse(&mut self, words: &[&str]) -> Result<Command> {
        let (name, rest) = words.split_first().context("a command has a name")?;
        let shown: Vec<String> = rest.iter().map(|word| quoted(Path::new(word))).collect();
        let line = format!("kstone {name} {} {}", quoted(self.dir), shown.join(" "));
        let prompt = self.out.faint("$");
        self.out.line(format!("{prompt} {}", self.out.bold(line.trim_end())))?;
        let mut argv: Vec<OsString> = vec!["kstone".into(), name.into(), self.dir.into()];
        argv.extend(rest.iter().map(OsString::from));
        Ok(Cli::try_parse_from(argv)?.command)
    }
}

/// A word as a shell takes it.
fn quoted(word: &Path) -> String {
    let text = word.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-:#+@%,=".contains(c);
    if !text.is_empty() && !text.starts_with('#') && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
