//! `kstone verify`: reads and checks everything in a database.

use anyhow::Result;
use kstone_core::env::Env;
use kstone_core::{VerifyReport, verify};
use serde_json::json;

use crate::Outcome;
use crate::args::Verify;
use crate::database;
use crate::output::{Output, counted};

pub fn run(args: &Verify, out: &mut Output) -> Result<Outcome> {
    let report = verify(&Env::system(), &args.dir)
        .map_err(|error| database::explain_engine(&args.dir, error))?;
    if args.json {
        out.line(as_json(&report).to_string())?;
    } else {
        out.line(format!(
            "read {} with {} and {}, and {} in the log",
            counted(report.files, "file", "files"),
            counted(report.blocks, "block", "blocks"),
            counted(report.entries, "entry", "entries"),
            counted(report.commits, "commit", "commits"),
        ))?;
        for path in &report.leftovers {
            out.line(format!("left over: {} (the next open removes it)", path.display()))?;
        }
        for fault in &report.faults {
            out.line(format!(
                "FAULT {} at offset {}: {}",
                fault.path.display(),
                fault.offset,
                fault.what
            ))?;
        }
        if report.is_sound() {
            out.line("sound: every checksum and every order is right")?;
        }
    }
    if report.is_sound() {
        return Ok(Outcome::Done);
    }
    out.complain(&format!(
        "{} is damaged: {}; restore what is named from a checkpoint or a backup",
        args.dir.display(),
        counted(report.faults.len() as u64, "fault", "faults"),
    ));
    Ok(Outcome::No)
}

fn as_json(report: &VerifyReport) -> serde_json::Value {
    let faults: Vec<_> = report
        .faults
        .iter()
        .map(|fault| {
            json!({
                "path": fault.path.to_string_lossy(),
                "offset": fault.offset,
                "what": fault.what,
            })
        })
        .collect();
    let leftovers: Vec<_> = report.leftovers.iter().map(|path| path.to_string_lossy()).collect();
    json!({
        "sound": report.is_sound(),
        "files": report.files,
        "blocks": report.blocks,
        "entries": report.entries,
        "commits": report.commits,
        "leftovers": leftovers,
        "faults": faults,
    })
}
