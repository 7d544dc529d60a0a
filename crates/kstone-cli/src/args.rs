//! What can be typed, and the help that teaches it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

const ABOUT: &str = "\
KeystoneDB in a folder: a durable key-value store with sorted partitions.

A record has a partition key (PK), an optional sort key (SK) and a JSON value. Records of
one partition lie together, in byte order of their sort keys. The hash of the partition
key picks one of 256 stripes. What `put` has answered survives a power cut.

A tour:
  kstone put mydb user#1 '{\"name\":\"Ada\"}'               a record with a partition key
  kstone put mydb user#1 post#001 '{\"title\":\"Hello\"}'   one more in its partition, sorted
  kstone get mydb user#1 post#001                       read it back
  kstone query mydb user#1 --prefix post# --reverse     the posts, latest first
  kstone stats mydb                                     what is in it, with a picture

Or let it show you: kstone demo";

const TEMPLATE: &str = "\
{about-with-newline}
Usage: kstone <COMMAND> DIR …       DIR is the folder of the database

Records:
  put         Store a record (makes the database if there is none)
  get         Print the value of a record
  delete      Remove a record
  load        Store many records from JSON lines

Many at a time, as JSON lines:
  query       The records of one partition, in order, with prefix and bounds
  scan        All records, page by page or in parallel segments; or partition keys

Looking after it:
  stats       What the database holds, with a picture of the 256 stripes
  verify      Read everything, check everything, report each fault
  compact     Merge the files: smallest on disk, quickest to read
  checkpoint  A consistent copy in another folder, in no time

To start with:
  demo        Make a small data set and show all of this on it
  help        Help on a command: kstone help put

Options:
{options}

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
    /// Store a record (makes the database if there is none)
    #[command(
        override_usage = "kstone put [OPTIONS] DIR PK [SK] VALUE",
        after_help = "\
The value comes last and is JSON; text needs its quotes: '\"like this\"'. It is on disk when the
command returns.

Examples:
  kstone put mydb user#1 '{\"name\":\"Ada\"}'
  kstone put mydb user#1 post#001 '{\"title\":\"Hello\"}'
  kstone put mydb session#9 --ttl 2h '{\"user\":\"user#1\"}'
  kstone put mydb offer#7 --expires-at 2030-01-01T00:00:00Z '{\"price\":1999}'
  cat profile.json | kstone put mydb user#1 profile -"
    )]
    Put(Put),

    /// Print the value of a record
    #[command(after_help = "\
Indented on a terminal, compact otherwise. Exit code 1 if there is no such record.

Examples:
  kstone get mydb user#1
  kstone get mydb user#1 post#001
  kstone get mydb user#1 --record          with key, version and expiry
  kstone get mydb picture#1 --raw > a.png  the bytes as they are")]
    Get(Get),

    /// Remove a record
    #[command(after_help = "\
Says whether the record was there; removing nothing is no error.

Examples:
  kstone delete mydb user#1 post#001
  kstone delete mydb user#1")]
    Delete(Delete),

    /// Store many records from JSON lines
    #[command(after_help = "\
One record on each line, in the form that query and scan print:
  {\"pk\":\"user#1\",\"sk\":\"post#001\",\"value\":{\"title\":\"Hello\"}}
Without \"sk\" the record has none. \"ttl\":\"5m\" or \"expires_at\":\"2030-01-01T00:00:00Z\" lets it
expire. Bytes that are not text: \"pk_hex\", \"sk_hex\", \"value_hex\". \"version\" is ignored.
Records are stored in order; at a bad line it stops, and keeps the records before it.

Examples:
  kstone load mydb records.jsonl
  kstone scan mydb | kstone load copy")]
    Load(Load),

    /// The records of one partition, in order, with prefix and bounds
    #[command(after_help = "\
Prints one record on each line. When --limit leaves some over, the cursor to go on with is
printed on standard error (and written to the file of --cursor-out, which stays empty when
there is no more).

Examples:
  kstone query mydb user#1
  kstone query mydb user#1 --prefix post# --reverse --limit 10
  kstone query mydb sensor#7 --from 2024-01-15T10 --to 2024-01-15T11")]
    Query(Query),

    /// All records, page by page or in parallel segments; or partition keys
    #[command(after_help = "\
Prints one record on each line, stripe by stripe; within a stripe in key order. When --limit
leaves some over, the cursor to go on with is printed on standard error (and written to the file
of --cursor-out, which stays empty when there is no more).

Examples:
  kstone scan mydb
  kstone scan mydb --limit 100 --cursor-out next
  kstone scan mydb --limit 100 --cursor \"$(cat next)\" --cursor-out next
  kstone scan mydb --segment 0/4           the first of four parts, for four workers
  kstone scan mydb --pk-prefix user#       partition keys, in order")]
    Scan(Scan),

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

    /// Make a small data set and show all of this on it
    #[command(after_help = "\
Examples:
  kstone demo             in a new folder in the system's place for temporary files
  kstone demo mydb        in a folder of your own, which must be new or empty")]
    Demo(Demo),
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
    /// Folder of the database; made if missing
    pub dir: PathBuf,
    /// Partition key
    pub pk: OsString,
    /// The value as JSON (`-` reads it from standard input); a sort key comes before it: PK SK VALUE
    #[arg(value_name = "VALUE", allow_negative_numbers = true)]
    pub sk_or_value: OsString,
    #[arg(hide = true, allow_negative_numbers = true)]
    pub value: Option<OsString>,
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
    /// Folder of the database
    pub dir: PathBuf,
    /// Partition key
    pub pk: OsString,
    /// Sort key
    pub sk: Option<OsString>,
    /// Keys are given as hexadecimal digits
    #[arg(long)]
    pub hex: bool,
}

/// `kstone get`
#[derive(Debug, Args)]
pub struct Get {
    #[command(flatten)]
    pub target: Target,
    /// Print the whole record: key, value, version, expiry
    #[arg(long)]
    pub record: bool,
    /// Write the stored bytes as they are
    #[arg(long, conflicts_with = "record")]
    pub raw: bool,
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
    /// Folder of the database; made if missing
    pub dir: PathBuf,
    /// File of JSON lines; `-`, or nothing, is standard input
    #[arg(default_value = "-", hide_default_value = true)]
    pub file: PathBuf,
}

/// How much to print, and where to go on.
#[derive(Debug, Args)]
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
#[derive(Debug, Args)]
pub struct Query {
    /// Folder of the database
    pub dir: PathBuf,
    /// Partition key
    pub pk: OsString,
    /// Only sort keys that start with this
    #[arg(long, value_name = "TEXT")]
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
    /// Folder of the database
    pub dir: PathBuf,
    /// Only one of several equal parts: 0/4 is the first of four
    #[arg(long, value_name = "I/N", conflicts_with = "cursor")]
    pub segment: Option<String>,
    #[command(flatten)]
    pub page: Page,
    /// Print the partition keys that start with this, in order, instead of records
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["segment", "cursor", "cursor_out"])]
    pub pk_prefix: Option<OsString>,
    /// The prefix is given as hexadecimal digits
    #[arg(long, requires = "pk_prefix")]
    pub hex: bool,
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

/// `kstone demo`
#[derive(Debug, Args)]
pub struct Demo {
    /// Where to make the data set; must be new or empty
    pub dir: Option<PathBuf>,
}
