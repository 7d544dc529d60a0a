//! The command line: all commands, arguments and their help.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub mod keyspace;
pub mod learn;
pub mod person;
mod serve;

pub use serve::Serve;

const ABOUT: &str = "\
KeystoneDB: a durable database in a folder, served over the DynamoDB, Redis and Dapr protocols.

An item is a JSON object under a partition key (PK) and a sort key (SK). Items of one
partition lie together, in the order of their sort keys. What `put` has answered survives a
power cut.

A tour:
  kstone put mydb user#1 '{\"name\":\"Ada\"}'               an item with a partition key
  kstone put mydb user#1 post#001 '{\"title\":\"Hello\"}'   one more in its partition, sorted
  kstone get mydb user#1 post#001                       read it back
  kstone query mydb user#1 --prefix post# --reverse     the posts, latest first
  kstone stats mydb                                     what is in it, with a picture

Or with a server, a school of learners and a table with indexes: kstone serve --demo";

const TEMPLATE: &str = "\
{about-with-newline}
Usage: kstone <COMMAND> WHERE …     WHERE is the folder of the database, or a server's URL;
                                    stats, verify, compact and checkpoint take a folder only

A server:
  serve       Serve a database to DynamoDB, Redis and Dapr clients, until it is stopped

Items:
  put         Store an item (makes the database if there is none)
  get         Print an item
  delete      Remove an item
  load        Store many items from JSON lines

Many at a time, as JSON lines:
  query       The items of one partition, in order, with prefix and bounds
  scan        All items, page by page or in parallel segments; or partition keys
  tables      The tables, with their keys and indexes

Declared keys (kstone help keyspace):
  keyspace    Check, explain, document and count the keys that catalogues declare
  subject     What there is of a person: list it, export it
  erase       Erase a person from everything, with a signed receipt

Models of learners, measured (kstone help learn):
  learn       How well Elo predicts answers in a table; simulated learners to try it on

Looking after a folder:
  stats       What the database holds, with a picture of the 256 stripes
  verify      Read everything, check everything, report each fault
  compact     Merge the files: smallest on disk, quickest to read
  checkpoint  A consistent copy in another folder, in no time

  help        Help on a command: kstone help put

Options:
{options}

Every database has a table without a name, whose keys are plain bytes; the commands use it
unless --table names another. A server shows the named ones.

Exit codes: 0 done · 1 no (not found, damaged, failed) · 2 not understood.
Output for programs is JSON; on a terminal it is laid out for people.
";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "kstone", version, about = ABOUT, help_template = TEMPLATE)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands, one file each in `commands`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a database to DynamoDB's and Redis's clients, until it is stopped
    #[command(after_help = "\
Prints a line for each door and one when it is ready. SIGTERM and SIGINT (Ctrl-C) end it when the
requests under way are answered; a second one ends it at once. GET /healthz tells whether it is up.

While it runs, the folder is its own: ask it by its URL. In a configuration file the flags are
keys of the same name:
  data = \"mydb\"
  dynamodb = \"127.0.0.1:8000\"
  dynamodb-durability = \"sync\"
  redis = \"127.0.0.1:6379\"
  redis-durability = \"interval\"
  memory-budget = \"1GiB\"
  keyspace = [\"shipped\", \"orders.toml\"]
  access-key = [\"ID:SECRET\"]

Examples:
  kstone serve --demo                                  a school to play with, and what to ask it
  kstone serve --data mydb
  kstone serve --memory --dynamodb 127.0.0.1:8001 --redis off
  KSTONE_ACCESS_KEY=me:secret kstone serve --data mydb --dynamodb 0.0.0.0:8000")]
    Serve(Serve),

    /// Store an item (makes the database if there is none)
    #[command(
        override_usage = "kstone put [OPTIONS] WHERE PK [SK] ITEM\n       kstone put WHERE --table TABLE ITEM",
        after_help = "\
The item comes last and is a JSON object. It is on disk when the command returns. In a named table
the key is part of the item.

Examples:
  kstone put mydb user#1 '{\"name\":\"Ada\"}'
  kstone put mydb user#1 post#001 '{\"title\":\"Hello\"}'
  kstone put mydb session#9 --ttl 2h '{\"user\":\"user#1\"}'
  kstone put mydb offer#7 --expires-at 2030-01-01T00:00:00Z '{\"price\":19.99}'
  cat profile.json | kstone put mydb user#1 profile -
  kstone put http://127.0.0.1:8000 --table workflows '{\"pk\":\"exec-999\",\"sk\":\"metadata\"}'"
    )]
    Put(Put),

    /// Print an item
    #[command(after_help = "\
Indented on a terminal, compact otherwise. Exit code 1 if there is no such item.

Examples:
  kstone get mydb user#1
  kstone get mydb user#1 post#001
  kstone get mydb user#1 --record          with key, version and expiry
  kstone get http://127.0.0.1:8000 --table workflows exec-001 metadata")]
    Get(Get),

    /// Remove an item
    #[command(after_help = "\
Says whether the item was there; removing nothing is no error.

Examples:
  kstone delete mydb user#1 post#001
  kstone delete mydb user#1
  kstone delete mydb --table workflows exec-001 album-1")]
    Delete(Delete),

    /// Store many items from JSON lines
    #[command(after_help = "\
One item on each line, in the form that query and scan print; with --table, just the item:
  {\"pk\":\"user#1\",\"sk\":\"post#001\",\"value\":{\"title\":\"Hello\"}}
Without \"sk\" the item has none. \"ttl\":\"5m\" or \"expires_at\":\"2030-01-01T00:00:00Z\" lets it
expire. Bytes that are not text: \"pk_hex\", \"sk_hex\". \"version\" is ignored.
Items are stored in order; at a bad line it stops, and keeps the items before it.

Examples:
  kstone load mydb records.jsonl
  kstone scan mydb | kstone load copy
  kstone scan mydb --table workflows | kstone load http://127.0.0.1:8000 --table workflows")]
    Load(Load),

    /// The items of one partition, in order, with prefix and bounds
    #[command(
        override_usage = "kstone query [OPTIONS] WHERE PK\n       kstone query [OPTIONS] WHERE TABLE --pk PK",
        after_help = "\
Prints one item on each line. When --limit leaves some over, the cursor to go on with is printed
on standard error (and written to the file of --cursor-out, which stays empty when there is no
more).

A key of several attributes takes several --pk, and --sk for those of the sort key that are known;
--prefix, --from and --to are about the next one.

Examples:
  kstone query mydb user#1
  kstone query mydb user#1 --prefix post# --reverse --limit 10
  kstone query mydb sensor#7 --from 2024-01-15T10 --to 2024-01-15T11
  kstone query http://127.0.0.1:8000 workflows --pk exec-001 --prefix album-
  kstone query mydb workflows --index GSI3 --pk task --sk pending --from 2025-01"
    )]
    Query(Query),

    /// All items, page by page or in parallel segments; or partition keys
    #[command(after_help = "\
Prints one item on each line, stripe by stripe; within a stripe in key order. When --limit
leaves some over, the cursor to go on with is printed on standard error (and written to the file
of --cursor-out, which stays empty when there is no more).

Examples:
  kstone scan mydb
  kstone scan mydb --limit 100 --cursor-out next
  kstone scan mydb --limit 100 --cursor \"$(cat next)\" --cursor-out next
  kstone scan mydb --segment 0/4           the first of four parts, for four workers
  kstone scan mydb --pk-prefix user#       partition keys, in order
  kstone scan http://127.0.0.1:8000 --table workflows")]
    Scan(Scan),

    /// The tables, with their keys and indexes
    #[command(after_help = "\
Examples:
  kstone tables mydb
  kstone tables http://127.0.0.1:8000
  kstone tables mydb --json")]
    Tables(Tables),

    /// Check, explain, document and count the keys that catalogues declare
    Keyspace(keyspace::Keyspace),

    /// What there is of a person: list, export; admit again after an erasure
    #[command(after_help = "\
The database must be governed by a keyspace, which says whose data a key holds.

Examples:
  kstone subject list --subject student_id=12345 --data mydb
  kstone subject export --subject student_id=12345 --data mydb > 12345.json
  kstone subject admit --subject student_id=12345 --data mydb")]
    Subject(person::Subject),

    /// Erase a person from every table, key, file and checkpoint, with a signed receipt
    #[command(after_help = "\
Deletes everything of the person that the keyspace knows of, removes the bytes from every file, and
prints a receipt. Interrupted anywhere, it goes on when it is asked for again, or when a server
starts. Until the person is admitted again (kstone subject admit), writes about them are refused.

Examples:
  kstone erase --subject student_id=12345 --data mydb --receipt 12345.receipt.json
  kstone erase --subject student_id=12345 --tenant university_abc --data mydb --yes
  kstone erase list --data mydb
  kstone erase verify-receipt 12345.receipt.json --data mydb")]
    Erase(person::Erase),

    /// How well Elo predicts answers in a table; simulated learners to try it on
    #[command(after_help = "\
Examples:
  kstone learn simulate | kstone learn evaluate
  kstone learn evaluate skill_builder_data.csv --json")]
    Learn(learn::Learn),

    /// What the database holds, with a picture of the 256 stripes
    #[command(after_help = "\
The state comes from the files and the log. Counters (write amplification, cache, stalls, syncs)
start at zero in each process that opens the database: a server shows its own.

Examples:
  kstone stats mydb
  kstone stats mydb --by records
  kstone stats mydb --stripes
  kstone stats mydb --json | jq .total")]
    Stats(Stats),

    /// Read everything, check everything, report each fault
    #[command(after_help = "\
Reads every block of every file and the whole log, checks checksums and order, changes nothing.
The database must not be open elsewhere. Exit code 1 if anything is wrong.

Examples:
  kstone verify mydb
  kstone verify mydb --json")]
    Verify(Verify),

    /// Merge the files: smallest on disk, quickest to read
    #[command(after_help = "\
Also removes what has expired. The database merges by itself as it grows; by hand it is of use
before a copy or a benchmark.

Examples:
  kstone compact mydb")]
    Compact(Folder),

    /// A consistent copy in another folder, in no time
    #[command(after_help = "\
Files are hard-linked (so TARGET must be on the same disk), the log is copied. TARGET must be new
or empty, and is then a database like any other.

Examples:
  kstone checkpoint mydb backups/monday
  kstone get backups/monday user#1")]
    Checkpoint(Checkpoint),
}

/// The folder alone.
#[derive(Debug, Args)]
pub struct Folder {
    /// Folder of the database
    pub dir: PathBuf,
}

/// `kstone put`
#[derive(Debug, Args)]
pub struct Put {
    /// Folder of the database, made if missing; or a server's URL
    #[arg(value_name = "WHERE")]
    pub place: PathBuf,
    /// The key (PK, or PK and SK), then the item as JSON (`-` reads it from standard input); with
    /// --table only the item
    #[arg(value_name = "PK [SK] ITEM", required = true, num_args = 1..=3)]
    pub words: Vec<OsString>,
    /// A table by its name
    #[arg(long, short, value_name = "TABLE", conflicts_with_all = ["ttl", "expires_at", "hex"])]
    pub table: Option<String>,
    /// Let it expire after this time: 60s, 5m, 2h, 7d
    #[arg(long, value_name = "TIME", conflicts_with = "expires_at")]
    pub ttl: Option<String>,
    /// Let it expire at this moment: 2030-01-01T00:00:00Z, or seconds since 1970
    #[arg(long, value_name = "MOMENT")]
    pub expires_at: Option<String>,
    /// Keys are given as hexadecimal digits
    #[arg(long)]
    pub hex: bool,
}

/// A record by its key.
#[derive(Debug, Args)]
pub struct Target {
    /// Folder of the database, or a server's URL
    #[arg(value_name = "WHERE")]
    pub place: PathBuf,
    /// Partition key
    pub pk: OsString,
    /// Sort key
    pub sk: Option<OsString>,
    /// A table by its name
    #[arg(long, short, value_name = "TABLE", conflicts_with = "hex")]
    pub table: Option<String>,
    /// Keys are given as hexadecimal digits
    #[arg(long)]
    pub hex: bool,
}

/// `kstone get`
#[derive(Debug, Args)]
pub struct Get {
    #[command(flatten)]
    pub target: Target,
    /// Print key, version and expiry too
    #[arg(long, conflicts_with = "table")]
    pub record: bool,
}

/// `kstone delete`
#[derive(Debug, Args)]
pub struct Delete {
    #[command(flatten)]
    pub target: Target,
}

/// `kstone load`
#[derive(Debug, Args)]
pub struct Load {
    /// Folder of the database, made if missing; or a server's URL
    #[arg(value_name = "WHERE")]
    pub place: PathBuf,
    /// File of JSON lines; `-`, or nothing, is standard input
    #[arg(default_value = "-", hide_default_value = true)]
    pub file: PathBuf,
    /// A table by its name
    #[arg(long, short, value_name = "TABLE")]
    pub table: Option<String>,
}

/// How much to print, and where to go on.
#[derive(Debug, Default, Args)]
pub struct Page {
    /// Print at most this many
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Go on behind an earlier page
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
    /// Write the cursor of the next page to this file
    #[arg(long, value_name = "FILE")]
    pub cursor_out: Option<PathBuf>,
}

/// `kstone query`
#[derive(Debug, Default, Args)]
pub struct Query {
    /// Folder of the database, or a server's URL
    #[arg(value_name = "WHERE")]
    pub place: PathBuf,
    /// Partition key; or, with --pk, the table
    #[arg(value_name = "PK|TABLE", required_unless_present = "table")]
    pub first: Option<OsString>,
    /// A table by its name
    #[arg(long, short, value_name = "TABLE", conflicts_with = "hex")]
    pub table: Option<String>,
    /// An index of the table
    #[arg(long, value_name = "INDEX")]
    pub index: Option<String>,
    /// Partition key; once for each of its attributes
    #[arg(long, value_name = "PK")]
    pub pk: Vec<String>,
    /// Only this sort key; for one of several attributes, those that are known
    #[arg(long, value_name = "SK", allow_negative_numbers = true)]
    pub sk: Vec<String>,
    /// Only sort keys that start with this
    #[arg(long, visible_alias = "sk-begins-with", value_name = "TEXT")]
    pub prefix: Option<OsString>,
    /// Only sort keys from this one on (itself included)
    #[arg(long, value_name = "SK")]
    pub from: Option<OsString>,
    /// Only sort keys up to this one (itself included)
    #[arg(long, value_name = "SK")]
    pub to: Option<OsString>,
    /// Highest sort key first
    #[arg(long)]
    pub reverse: bool,
    #[command(flatten)]
    pub page: Page,
    /// Keys are given as hexadecimal digits
    #[arg(long)]
    pub hex: bool,
}

/// `kstone scan`
#[derive(Debug, Args)]
pub struct Scan {
    /// Folder of the database, or a server's URL
    #[arg(value_name = "WHERE")]
    pub place: PathBuf,
    /// A table by its name
    #[arg(long, short, value_name = "TABLE", conflicts_with = "pk_prefix")]
    pub table: Option<String>,
    /// An index of the table
    #[arg(long, value_name = "INDEX", requires = "table")]
    pub index: Option<String>,
    /// Only one of several equal parts: 0/4 is the first of four
    #[arg(long, value_name = "I/N", conflicts_with = "cursor")]
    pub segment: Option<String>,
    #[command(flatten)]
    pub page: Page,
    /// Print the partition keys that start with this, in order, instead of items
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["segment", "cursor", "cursor_out"])]
    pub pk_prefix: Option<OsString>,
    /// The prefix is given as hexadecimal digits
    #[arg(long, requires = "pk_prefix")]
    pub hex: bool,
}

/// `kstone tables`
#[derive(Debug, Args)]
pub struct Tables {
    /// Folder of the database, or a server's URL
    #[arg(value_name = "WHERE")]
    pub place: PathBuf,
    /// One line of JSON for each table
    #[arg(long)]
    pub json: bool,
}

/// `kstone stats`
#[derive(Debug, Args)]
pub struct Stats {
    /// Folder of the database
    pub dir: PathBuf,
    /// What the picture shows
    #[arg(long, value_enum, default_value_t = Measure::Bytes)]
    pub by: Measure,
    /// List each stripe that holds something
    #[arg(long)]
    pub stripes: bool,
    /// Everything as JSON
    #[arg(long, conflicts_with = "stripes")]
    pub json: bool,
}

/// What the picture of the stripes shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Measure {
    /// Bytes of keys and values
    Bytes,
    /// Records
    Records,
    /// Files
    Files,
    /// Gets since it was opened
    Gets,
    /// Records written since it was opened
    Writes,
}

/// `kstone verify`
#[derive(Debug, Args)]
pub struct Verify {
    /// Folder of the database
    pub dir: PathBuf,
    /// The report as JSON
    #[arg(long)]
    pub json: bool,
}

/// `kstone checkpoint`
#[derive(Debug, Args)]
pub struct Checkpoint {
    /// Folder of the database
    pub dir: PathBuf,
    /// Folder of the copy, new or empty
    pub target: PathBuf,
}
