//! `kstone subject` and `kstone erase`: lists, exports and erases the data of a person.

use std::fs;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;

use anyhow::{Context, Result, bail};
use kstone_core::env::Env;
use kstone_core::{Error as EngineError, find_bytes};
use kstone_keyspace::Subject;
use kstone_keyspace::erasure::SignedReceipt;
use serde_json::Value as Json;

use crate::Outcome;
use crate::args::person::{
    Erase, EraseCommand, ErasureReceipt, Search, Subject as SubjectArgs, SubjectCommand,
    SubjectList, VerifyReceipt, Who,
};
use crate::output::{Output, bytes, count, counted};
use crate::persons::{self, Call, Person, Persons};
use crate::{database, time};

pub fn subject(args: &SubjectArgs, out: &mut Output) -> Result<Outcome> {
    match &args.command {
        SubjectCommand::List(args) => list(args, out),
        SubjectCommand::Export(who) => {
            let export = ask(&who.data, &Call::Export(person(who)), out)?;
            print_json(&export, out)
        }
        SubjectCommand::Admit(who) => {
            let answer = ask(&who.data, &Call::Admit(person(who)), out)?;
            match answer.get("was_erased").and_then(Json::as_bool) {
                Some(true) => out.line("admitted: data about them may be written again")?,
                _ => out.line("they were not erased, in this tenant or in all of them")?,
            }
            Ok(Outcome::Done)
        }
    }
}

pub fn erase(args: &Erase, out: &mut Output) -> Result<Outcome> {
    match &args.command {
        Some(EraseCommand::List(place)) => erasures(&place.data, out),
        Some(EraseCommand::Resume(place)) => resume(&place.data, out),
        Some(EraseCommand::Receipt(ErasureReceipt { id, erased_in })) => {
            let receipt = ask(&erased_in.data, &Call::Receipt { id: id.clone() }, out)?;
            print_json(&receipt, out)
        }
        Some(EraseCommand::Search(args)) => search(args, out),
        Some(EraseCommand::VerifyReceipt(args)) => verify(args, out),
        None => {
            let (Some(subject), Some(dir)) = (&args.subject, &args.data) else {
                bail!("whom, and where? kstone erase --subject student_id=12345 --data DIR")
            };
            let person = Person { subject: subject.clone(), tenant: args.tenant.clone() };
            erase_person(person, dir, args, out)
        }
    }
}

fn person(who: &Who) -> Person {
    Person { subject: who.subject.clone(), tenant: who.tenant.clone() }
}

fn ask(dir: &Path, call: &Call, out: &mut Output) -> Result<Json> {
    Persons::open(dir, out)?.ask(call, out)
}

fn print_json(json: &Json, out: &mut Output) -> Result<Outcome> {
    out.line(serde_json::to_string_pretty(json)?)?;
    Ok(Outcome::Done)
}

fn list(args: &SubjectList, out: &mut Output) -> Result<Outcome> {
    let found = ask(&args.who.data, &Call::List(person(&args.who)), out)?;
    let found = found.as_array().map(Vec::as_slice).unwrap_or_default();
    for holding in found {
        if args.json {
            out.line(holding.to_string())?;
            continue;
        }
        let text = |name: &str| holding.get(name).and_then(Json::as_str).unwrap_or_default();
        let place = |name: &str| holding.pointer(&format!("/place/{name}"));
        let part = |name: &str| place(name).and_then(Json::as_str);
        let key = match part("store") {
            Some("redis") => {
                let db = place("db").and_then(Json::as_u64).unwrap_or_default();
                let member = part("member").map(|member| format!(", member {member}"));
                let key = part("key").unwrap_or_default();
                format!("redis {db}  {key}{}", member.unwrap_or_default())
            }
            _ => {
                let sk = part("sk").map(|sk| format!("  {sk}")).unwrap_or_default();
                let (table, pk) = (part("table").unwrap_or_default(), part("pk"));
                format!("table {table}  {}{sk}", pk.unwrap_or_default())
            }
        };
        let ends = holding.get("expires_at_ms").and_then(Json::as_u64);
        let ends = ends.map(|ms| format!("  until {}", time::moment(ms))).unwrap_or_default();
        let shared = match holding.get("is_shared").and_then(Json::as_bool) {
            Some(true) => "  shared",
            _ => "",
        };
        out.line(format!("{:<28}  {key}{ends}{shared}", text("pattern")))?;
    }
    if !args.json {
        out.note(&counted(found.len() as u64, "place", "places"));
    }
    Ok(if found.is_empty() { Outcome::No } else { Outcome::Done })
}

fn erase_person(person: Person, dir: &Path, args: &Erase, out: &mut Output) -> Result<Outcome> {
    let persons = Persons::open(dir, out)?;
    if !args.yes && io::stdin().is_terminal() {
        let found = persons.ask(&Call::List(person.clone()), out)?;
        let places = found.as_array().map_or(0, |found| found.len() as u64);
        out.note(&format!(
            "{} of {} will be erased from {} and its checkpoints. Nothing brings them back.\nType \
             the person again to go on:",
            counted(places, "place", "places"),
            person.subject,
            dir.display(),
        ));
        let mut typed = String::new();
        io::stdin().read_line(&mut typed)?;
        if typed.trim() != person.subject {
            out.complain("nothing was erased");
            return Ok(Outcome::No);
        }
    }
    let receipt: SignedReceipt = serde_json::from_value(persons.ask(&Call::Erase(person), out)?)?;
    tell(&receipt, out);
    match &args.receipt {
        Some(file) => {
            fs::write(file, receipt.to_json() + "\n").with_context(|| {
                let again = format!("kstone erase receipt {}", receipt.receipt.erasure);
                format!("cannot write {}; to have the receipt again: {again}", file.display())
            })?;
            out.note(&format!("receipt in {}", file.display()));
        }
        None => out.line(receipt.to_json())?,
    }
    Ok(Outcome::Done)
}

/// What an erasure did, in a few lines.
fn tell(signed: &SignedReceipt, out: &mut Output) {
    let receipt = &signed.receipt;
    let sum = |count: fn(&kstone_keyspace::erasure::PatternCount) -> u64| -> u64 {
        receipt.patterns.values().map(count).sum()
    };
    let purge = &receipt.purge;
    let seconds = (purge.took_ms as f64 / 1000.0).max(0.001);
    out.note(&format!(
        "erased {} of {} and taken out of {}; {} rewritten in {seconds:.1} s ({}/s)",
        counted(sum(|it| it.deleted), "key", "keys"),
        counted(receipt.patterns.len() as u64, "pattern", "patterns"),
        counted(sum(|it| it.changed), "shared one", "shared ones"),
        bytes(purge.read_bytes),
        bytes((purge.read_bytes as f64 / seconds) as u64),
    ));
    if purge.checkpoints > 0 {
        out.note(&format!("cleared {}", counted(purge.checkpoints, "checkpoint", "checkpoints")));
    }
    for path in &purge.missing_checkpoints {
        out.complain(&format!(
            "the checkpoint {path} is not where it was made: if it was moved and not deleted, the \
             person is still in it"
        ));
    }
}

fn resume(dir: &Path, out: &mut Output) -> Result<Outcome> {
    let receipts = ask(dir, &Call::Resume, out)?;
    let receipts: Vec<SignedReceipt> = serde_json::from_value(receipts)?;
    for receipt in &receipts {
        tell(receipt, out);
        out.line(receipt.to_json())?;
    }
    if receipts.is_empty() {
        out.note("no erasure was interrupted");
    }
    Ok(Outcome::Done)
}

fn erasures(dir: &Path, out: &mut Output) -> Result<Outcome> {
    let answer = ask(dir, &Call::Erasures, out)?;
    let erasures = answer.get("erasures").and_then(Json::as_array);
    for erasure in erasures.into_iter().flatten() {
        let text = |name: &str| erasure.get(name).and_then(Json::as_str).unwrap_or_default();
        let time = |name: &str| erasure.get(name).and_then(Json::as_u64).map(time::moment);
        let finished = time("finished_ms").unwrap_or_default();
        let began = time("began_ms").unwrap_or_default();
        out.line(format!("{}  {:<8}  {began}  {finished}", text("id"), text("state")))?;
    }
    let key = answer.get("public_key").and_then(Json::as_str).unwrap_or_default();
    out.note(&format!("receipts are signed with the key {key}"));
    Ok(Outcome::Done)
}

fn search(args: &Search, out: &mut Output) -> Result<Outcome> {
    let checkpoints = database::open(&args.data)?.engine().checkpoints();
    let mut found = 0;
    for dir in std::iter::once(&args.data).chain(&checkpoints) {
        let sightings = match find_bytes(&Env::system(), dir, &args.texts) {
            Err(EngineError::NotFound { .. }) if *dir != args.data => {
                out.complain(&format!("the checkpoint {} is not there", dir.display()));
                continue;
            }
            sightings => sightings.map_err(|error| database::explain_engine(dir, error))?,
        };
        for sighting in &sightings {
            let text = args.texts.get(sighting.needle).map_or("", String::as_str);
            out.line(format!("{}  {}  {text}", sighting.path.display(), sighting.place))?;
        }
        found += sightings.len();
    }
    if found > 0 {
        return Ok(Outcome::No);
    }
    let folders = counted(checkpoints.len() as u64, "checkpoint", "checkpoints");
    out.line(format!("nothing found, in any file, also not in {folders}"))?;
    Ok(Outcome::Done)
}

fn verify(args: &VerifyReceipt, out: &mut Output) -> Result<Outcome> {
    let text = match args.file.as_os_str() == "-" {
        true => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text)?;
            text
        }
        false => fs::read_to_string(&args.file)
            .with_context(|| format!("cannot read {}", args.file.display()))?,
    };
    let signed = match SignedReceipt::from_json(&text) {
        Ok(signed) => signed,
        Err(error) => {
            out.complain(&error.to_string());
            return Ok(Outcome::No);
        }
    };
    let expected = match (&args.key, &args.data) {
        (Some(key), _) => Some(key.clone()),
        (None, Some(dir)) => match persons::public_key(dir)? {
            Some(key) => Some(key),
            None => bail!("{} has signed nothing yet", dir.display()),
        },
        (None, None) => None,
    };
    if let Some(Err(error)) = expected.as_ref().map(|key| signed.check_key(key)) {
        out.complain(&error.to_string());
        return Ok(Outcome::No);
    }
    if let Some(subject) = &args.subject {
        let id = subject.split_once('=').map_or(subject.as_str(), |(_, id)| id);
        if !signed.receipt.concerns(&Subject::canonical(id, args.tenant.as_deref())) {
            out.complain("the receipt is about somebody else");
            return Ok(Outcome::No);
        }
    }
    let receipt = &signed.receipt;
    let by = if expected.is_some() { "the expected key" } else { "key" };
    out.line(format!("genuine: signed by {by} {}", signed.public_key))?;
    out.line(format!("database  {}", receipt.database))?;
    out.line(format!("erasure   {}", receipt.erasure))?;
    let (began, finished) = (time::moment(receipt.began_ms), time::moment(receipt.finished_ms));
    out.line(format!("time      {began} to {finished}"))?;
    let (first, last) = (count(receipt.first_seq), count(receipt.last_seq));
    out.line(format!("sequence  {first} to {last}"))?;
    for (pattern, it) in &receipt.patterns {
        let (deleted, changed) = (count(it.deleted), count(it.changed));
        out.line(format!("{pattern:<28}  {deleted} deleted, {changed} changed"))?;
    }
    for path in &receipt.purge.missing_checkpoints {
        out.line(format!("NOT cleared: the checkpoint {path} was not found"))?;
    }
    Ok(Outcome::Done)
}
