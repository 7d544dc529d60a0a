//! The same random requests to the door and to DynamoDB Local: same answers, or a difference that
//! is known and explained ([`differences`]).
//!
//! A case is a few dozen requests on fresh tables ([`schema`], [`requests`]); its seed repeats it.
//! Answers are compared by status, type of error, message and body ([`compare`]). What differs is
//! shrunk ([`shrink`]): fewer requests before it, fewer members in it.
//!
//! DynamoDB Local is not DynamoDB. Where the two are known to differ, DynamoDB is right, and the
//! difference is in the list.

pub mod compare;
pub mod differences;
pub mod expressions;
pub mod legacy;
pub mod requests;
pub mod schema;
pub mod shrink;
pub mod statements;
pub mod tables;

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use serde_json::{Value as Json, json};

use crate::dice::Dice;
use crate::http::{Answer, Connection};
use compare::Difference;

/// How many requests a case has.
const CASE_STEPS: usize = 60;
/// Pages of one request; more are a loop.
const PAGES_MAX: usize = 500;

/// Whether a request's further pages are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// Only what is asked.
    Never,
    /// Until there is no `LastEvaluatedKey`.
    Pages,
    /// The same for each of so many segments.
    Segments(usize),
}

/// A request.
#[derive(Debug, Clone)]
pub struct Step {
    /// The operation's name.
    pub operation: &'static str,
    /// What is sent.
    pub body: Json,
    /// What is sent of the body's text, if not all.
    pub cut: Option<usize>,
    /// Whether its pages are followed.
    pub follow: Paging,
}

impl Step {
    /// A request without further pages.
    pub fn new(operation: &'static str, body: Json) -> Self {
        Step { operation, body, cut: None, follow: Paging::Never }
    }

    /// Whether it may change something.
    pub fn writes(&self) -> bool {
        let reads = ["GetItem", "Query", "Scan", "Describe", "List", "BatchGet", "TransactGet"];
        !reads.iter().any(|read| self.operation.starts_with(read))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.body.to_string();
        write!(out, "{} {}", self.operation, &text[..self.cut.unwrap_or(text.len())])?;
        match self.follow {
            Paging::Segments(count) => write!(out, " (in {count} segments)"),
            _ => Ok(()),
        }
    }
}

/// What to do.
#[derive(Debug)]
pub struct Plan {
    /// How many requests to send at least.
    pub requests: usize,
    /// The first case's seed; each next case has the next.
    pub seed: u64,
    /// After how many different differences to stop.
    pub differences_max: usize,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Report {
    /// How many requests were sent to each.
    pub requests: usize,
    /// How often both did what was asked.
    pub successes: usize,
    /// How many known differences were met, by name.
    pub known: BTreeMap<&'static str, usize>,
    /// The differences that are not known.
    pub found: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for found in &self.found {
            writeln!(out, "{found}\n")?;
        }
        for (name, count) in &self.known {
            writeln!(out, "{count:6} × known: {name}")?;
        }
        let Report { requests, successes, found, .. } = self;
        write!(out, "{requests} requests, {successes} carried out by both; ")?;
        write!(out, "{} differences that are not known", found.len())
    }
}

/// The two that are compared.
#[derive(Debug)]
pub struct Pair {
    ours: Connection,
    theirs: Connection,
}

/// What the two answered.
#[derive(Debug)]
pub struct Answers {
    /// The door, by page.
    pub ours: Vec<Answer>,
    /// DynamoDB Local, by page.
    pub theirs: Vec<Answer>,
}

impl Pair {
    /// Connects to both.
    pub fn new(ours: SocketAddr, theirs: SocketAddr) -> Self {
        Pair { ours: Connection::new(ours), theirs: Connection::new(theirs) }
    }

    /// Puts both into the state that every case starts from.
    ///
    /// # Errors
    /// If a table cannot be made.
    pub fn reset(&mut self) -> Result<(), String> {
        for side in [&mut self.ours, &mut self.theirs] {
            for name in requests::table_names().chain([tables::MADE]) {
                send(side, "DeleteTable", json!({"TableName": name}).to_string().as_bytes())?;
            }
            for table in schema::TABLES {
                let body = table.create().to_string();
                let answer = send(side, "CreateTable", body.as_bytes())?;
                if answer.status != 200 {
                    let what = String::from_utf8_lossy(&answer.body);
                    return Err(format!("CreateTable {body} was answered {what}"));
                }
            }
        }
        Ok(())
    }

    /// Sends a request to both.
    ///
    /// # Errors
    /// If one does not answer.
    pub fn ask(&mut self, step: &Step) -> Result<Answers, String> {
        Ok(Answers { ours: pages(&mut self.ours, step)?, theirs: pages(&mut self.theirs, step)? })
    }
}

fn send(side: &mut Connection, operation: &str, body: &[u8]) -> Result<Answer, String> {
    let target = format!("DynamoDB_20120810.{operation}");
    // A server may close a connection that it finds idle: then, and only then, once more.
    side.post(&target, body)
        .or_else(|_| side.post(&target, body))
        .map_err(|error| format!("{operation} {}: {error}", String::from_utf8_lossy(body)))
}

/// All pages that the step asks for.
fn pages(side: &mut Connection, step: &Step) -> Result<Vec<Answer>, String> {
    let segments = match step.follow {
        Paging::Segments(count) => count,
        _ => 1,
    };
    let mut answers = Vec::new();
    for segment in 0..segments {
        let mut body = step.body.clone();
        if let Paging::Segments(count) = step.follow {
            body["Segment"] = json!(segment);
            body["TotalSegments"] = json!(count);
        }
        loop {
            let text = body.to_string();
            let text = &text[..step.cut.unwrap_or(text.len())];
            let answer = send(side, step.operation, text.as_bytes())?;
            let parsed: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
            answers.push(answer);
            if step.follow == Paging::Never || parsed["LastEvaluatedKey"].is_null() {
                break;
            }
            if answers.len() > PAGES_MAX {
                return Err(format!("{step} has more than {PAGES_MAX} pages"));
            }
            body["ExclusiveStartKey"] = parsed["LastEvaluatedKey"].clone();
        }
    }
    Ok(answers)
}

/// Carries out the plan.
///
/// # Errors
/// If a server does not answer.
pub fn run(plan: &Plan, pair: &mut Pair) -> Result<Report, String> {
    let mut report = Report::default();
    let mut signatures: Vec<String> = Vec::new();
    let mut seed = plan.seed;
    while report.requests < plan.requests && report.found.len() < plan.differences_max {
        let steps = requests::steps(&Dice::new(seed), CASE_STEPS);
        pair.reset()?;
        for (at, step) in steps.iter().enumerate() {
            let answers = pair.ask(step)?;
            report.requests += 1;
            report.successes += usize::from(compare::both_succeeded(&answers));
            let Some(difference) = compare::compare(step, &answers) else {
                if differences::diverges(step, &answers) {
                    break;
                }
                continue;
            };
            match differences::known(step, &difference) {
                Some(name) => *report.known.entry(name).or_default() += 1,
                None if signatures.contains(&difference.signature) => {}
                None if shrink::has_two_mistakes(pair, step, &difference)? => {
                    *report.known.entry(differences::TWO_MISTAKES).or_default() += 1;
                    break;
                }
                None => {
                    signatures.push(difference.signature.clone());
                    let case = steps[..=at].to_vec();
                    report.found.push(describe(seed, shrink::shrink(pair, case, difference)?));
                    println!("{}\n", report.found[report.found.len() - 1]);
                    // Shrinking has replaced the tables.
                    break;
                }
            }
            if step.writes() && !compare::both_failed(&answers) {
                // From here on the two may differ for no other reason.
                break;
            }
        }
        seed += 1;
    }
    Ok(report)
}

fn describe(seed: u64, (steps, difference): (Vec<Step>, Difference)) -> String {
    let mut text = format!("difference in the case of seed {seed}\n");
    for step in steps {
        text.push_str(&format!("  {step}\n"));
    }
    let Difference { ours, theirs, .. } = difference;
    text + &format!("    kstone:         {ours}\n    DynamoDB Local: {theirs}")
}
