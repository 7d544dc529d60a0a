//! KeystoneDB beside other people's databases, in one run.
//!
//! `engine` compares storage engines, `items` compares databases with DynamoDB's data model, embedded
//! and through HTTP, `redis` compares the Redis door with Redis. All take turns between those they
//! compare and print medians and ratios.
//! `README.md` says what is equal and what is not.

mod child;
mod clock;
mod engine;
mod figures;
#[cfg(feature = "items")]
mod items;
mod kstone;
mod machine;
mod random;
mod redis;

/// Whatever a database reports: the benchmark stops at the first one.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
/// What everything here gives back.
pub type Outcome<T> = Result<T, Failure>;

fn main() {
    let outcome = match std::env::args().nth(1).as_deref() {
        Some(child::SUBCOMMAND) => serve_child(),
        Some("engine") => engine::main(),
        #[cfg(feature = "items")]
        Some("items") => items::main(),
        Some("redis") => redis::main(),
        _ => Err(usage().into()),
    };
    if let Err(failure) = outcome {
        eprintln!("{failure}");
        std::process::exit(1);
    }
}

fn usage() -> String {
    let commands = [
        engine::USAGE,
        #[cfg(feature = "items")]
        items::USAGE,
        redis::USAGE,
    ];
    commands.join("\n\n")
}

/// What this program does when it was started by itself.
fn serve_child() -> Outcome<()> {
    let (command, request) = std::env::args()
        .nth(2)
        .zip(std::env::args().nth(3))
        .ok_or("a child needs a command and a request")?;
    match command.as_str() {
        "engine" => {
            let request = serde_json::from_str::<engine::Request>(&request)?;
            child::limit_run_time(request.run_max());
            request.serve()
        }
        #[cfg(feature = "items")]
        "items" => {
            child::limit_run_time(child::RUN_MAX);
            serde_json::from_str::<items::embedded::Request>(&request)?.serve()
        }
        #[cfg(feature = "items")]
        "server" => items::door::serve(&request),
        _ => Err(format!("no command {command}").into()),
    }
}
