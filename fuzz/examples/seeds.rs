//! Writes the inputs that fuzzing starts from: real files, and their parts, made by the engine;
//! items, expressions, statements, requests and commands, as the differential tests send them.
//!
//! `cargo run --example seeds` in this folder; it fills `corpus/`, which is not kept in git.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let seeds = kstone_door_tests::fuzzing::seeds();
    let requests = seeds.requests.into_iter().filter_map(|(operation, body)| {
        Some(("dynamo_request", kstone_dynamo::fuzzing::input(operation, &body)?))
    });
    let connections = kstone_dynamo::fuzzing::connection_seeds().into_iter();
    let connections = connections.map(|seed| ("dynamo_connection", seed));
    let all = kstone_core::fuzzing::seeds().into_iter();
    let all = all.chain(seeds.inputs).chain(requests).chain(connections);
    let sent = kstone_resp::fuzzing::requests_seeds().into_iter();
    let sent = sent.map(|seed| ("redis_requests", seed));
    let all = all.chain(kstone_door_tests::redis::arguments::seeds()).chain(sent);
    for (n, (target, bytes)) in all.enumerate() {
        let folder = corpus.join(target);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(format!("seed-{n:04}")), bytes)?;
    }
    Ok(())
}
