//! The arguments of `kstone subject` and `kstone erase`: the data of one person.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `kstone subject`
#[derive(Debug, Args)]
pub struct Subject {
    /// What to do.
    #[command(subcommand)]
    pub command: SubjectCommand,
}

/// What can be asked about a person.
#[derive(Debug, Subcommand)]
pub enum SubjectCommand {
    /// Every key that holds data of a person, in every table, database of Redis and tenant
    #[command(after_help = "\
Examples:
  kstone subject list --subject student_id=12345 --data mydb
  kstone subject list --subject student_id=12345 --tenant university_abc --data mydb --json")]
    List(SubjectList),

    /// The same with values, as JSON: what a person may ask for
    #[command(after_help = "\
Of what others share, only the person's part is shown.

Examples:
  kstone subject export --subject student_id=12345 --data mydb > 12345.json")]
    Export(Who),

    /// Let data about a person be written again who was erased
    #[command(after_help = "\
Examples:
  kstone subject admit --subject student_id=12345 --data mydb")]
    Admit(Who),
}

/// `kstone subject list`
#[derive(Debug, Args)]
pub struct SubjectList {
    #[command(flatten)]
    pub who: Who,
    /// One line of JSON for each key
    #[arg(long)]
    pub json: bool,
}

/// Which person, and where.
#[derive(Debug, Args)]
pub struct Who {
    /// The person: a placeholder that names persons, and the id; or the id alone
    #[arg(long, value_name = "NAME=ID")]
    pub subject: String,
    /// Only in this tenant
    #[arg(long)]
    pub tenant: Option<String>,
    /// Folder of the database; a server that has it open is asked
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
}

/// `kstone erase`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Erase {
    /// Something other than to erase a person.
    #[command(subcommand)]
    pub command: Option<EraseCommand>,
    /// The person: a placeholder that names persons, and the id; or the id alone
    #[arg(long, value_name = "NAME=ID", required = true)]
    pub subject: Option<String>,
    /// Only in this tenant
    #[arg(long)]
    pub tenant: Option<String>,
    /// Folder of the database; a server that has it open is asked
    #[arg(long, value_name = "DIR", required = true)]
    pub data: Option<PathBuf>,
    /// Write the receipt to this file, not to standard output
    #[arg(long, value_name = "FILE")]
    pub receipt: Option<PathBuf>,
    /// Do not ask whether it is meant
    #[arg(long)]
    pub yes: bool,
}

/// What else there is to do about erasures.
#[derive(Debug, Subcommand)]
pub enum EraseCommand {
    /// The erasures that there were, and the key that signs their receipts
    #[command(after_help = "\
Examples:
  kstone erase list --data mydb")]
    List(ErasedIn),

    /// Go on with erasures that were interrupted; a server does this when it starts
    #[command(after_help = "\
Examples:
  kstone erase resume --data mydb")]
    Resume(ErasedIn),

    /// Print the receipt of an erasure once more
    #[command(after_help = "\
Examples:
  kstone erase receipt 1768386600000-00c0ffee00c0ffee --data mydb")]
    Receipt(ErasureReceipt),

    /// Look for texts in every file of a database and of its checkpoints, raw and decoded
    #[command(after_help = "\
What proves an erasure: compressed blocks are unpacked, keys put together, commits of the log read.
The database must not be open elsewhere. Exit code 1 if anything is found.

Examples:
  kstone erase search 12345 --data mydb")]
    Search(Search),

    /// Check that a receipt is what a database signed
    #[command(after_help = "\
Without --data or --key only the receipt itself is checked, not whose key it is signed with. Exit
code 1 if something is wrong.

Examples:
  kstone erase verify-receipt 12345.receipt.json --data mydb
  kstone erase verify-receipt 12345.receipt.json --key 8a88e3dd… --subject student_id=12345")]
    VerifyReceipt(VerifyReceipt),
}

/// Where erasures were.
#[derive(Debug, Args)]
pub struct ErasedIn {
    /// Folder of the database; a server that has it open is asked
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
}

/// `kstone erase receipt`
#[derive(Debug, Args)]
pub struct ErasureReceipt {
    /// The erasure
    pub id: String,
    #[command(flatten)]
    pub erased_in: ErasedIn,
}

/// `kstone erase search`
#[derive(Debug, Args)]
pub struct Search {
    /// What to look for, byte for byte
    #[arg(required = true)]
    pub texts: Vec<String>,
    /// Folder of the database
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
}

/// `kstone erase verify-receipt`
#[derive(Debug, Args)]
pub struct VerifyReceipt {
    /// The receipt; `-` reads it from standard input
    pub file: PathBuf,
    /// Folder of the database that must have signed it
    #[arg(long, value_name = "DIR", conflicts_with = "key")]
    pub data: Option<PathBuf>,
    /// The public key that must have signed it, in hex
    #[arg(long, value_name = "HEX")]
    pub key: Option<String>,
    /// The person whom it must be about
    #[arg(long, value_name = "NAME=ID")]
    pub subject: Option<String>,
    /// Their tenant, if they were erased in one alone
    #[arg(long)]
    pub tenant: Option<String>,
}
