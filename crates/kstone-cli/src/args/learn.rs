//! The arguments of `kstone learn`: measuring models of learners.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `kstone learn`
#[derive(Debug, Args)]
pub struct Learn {
    /// What to do.
    #[command(subcommand)]
    pub command: LearnCommand,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub enum LearnCommand {
    /// How well Elo predicts answers, beside knowledge tracing and running accuracy
    #[command(after_help = "\
The table is comma-separated text with the columns of the ASSISTments data sets: user_id and correct;
skill_id or skill_name, problem_id and order_id if there are any; in any order, among any others.
A fifth of the learners is held back: the models learn from the others, and predict theirs.

Examples:
  kstone learn evaluate skill_builder_data.csv
  kstone learn simulate | kstone learn evaluate
  kstone learn evaluate answers.csv --json | jq .models.elo.auc")]
    Evaluate(Evaluate),

    /// Answers by simulated learners whose ability is known, as a table for `evaluate`
    #[command(after_help = "\
Examples:
  kstone learn simulate > answers.csv
  kstone learn simulate --learners 1000 --seed 7 | kstone learn evaluate")]
    Simulate(Simulate),
}

/// `kstone learn evaluate`
#[derive(Debug, Args)]
pub struct Evaluate {
    /// The table; `-`, or nothing, is standard input
    #[arg(default_value = "-", hide_default_value = true)]
    pub file: PathBuf,
    /// The report as JSON
    #[arg(long)]
    pub json: bool,
}

/// `kstone learn simulate`
#[derive(Debug, Args)]
pub struct Simulate {
    /// The same seed gives the same answers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// How many learners
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub learners: u32,
    /// How many answers each of them gives
    #[arg(long, value_name = "N", default_value_t = 150, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub answers: u32,
    /// How many skills
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub skills: u32,
}
