//! `kstone learn …`: measures models of learners on tables of answers.

use std::fs::File;
use std::io::{self, BufWriter, Read};

use anyhow::{Context, Result};
use kstone_mastery::evaluate::{evaluate, read_answers};
use kstone_mastery::simulate::{AnswerSet, write_answers};

use crate::Outcome;
use crate::args::learn as args;
use crate::output::Output;

pub fn run(args: &args::Learn, out: &mut Output) -> Result<Outcome> {
    match &args.command {
        args::LearnCommand::Evaluate(args) => measure(args, out),
        args::LearnCommand::Simulate(args) => simulate(args),
    }
}

fn measure(args: &args::Evaluate, out: &mut Output) -> Result<Outcome> {
    let (table, name): (Box<dyn Read>, _) = match args.file.as_os_str() == "-" {
        true => (Box::new(io::stdin().lock()), "standard input".to_owned()),
        false => {
            let name = args.file.display().to_string();
            let file = File::open(&args.file).with_context(|| format!("cannot open {name}"))?;
            (Box::new(file), name)
        }
    };
    let answers = read_answers(table).with_context(|| name.clone())?;
    let report = evaluate(&answers).context(name)?;
    match args.json {
        true => out.line(serde_json::to_string(&report)?)?,
        false => out.line(report.to_string().trim_end())?,
    }
    Ok(Outcome::Done)
}

fn simulate(args: &args::Simulate) -> Result<Outcome> {
    let set = AnswerSet {
        seed: args.seed,
        learners: args.learners,
        skills: args.skills,
        answers_per_learner: args.answers,
        ..AnswerSet::default()
    };
    write_answers(&set, &mut BufWriter::new(io::stdout().lock()))?;
    Ok(Outcome::Done)
}
