//! Writes the inputs that fuzzing starts from: real files, and their parts, made by the engine;
//! items, expressions, statements and requests, as the differential test sends them.
//!
//! `cargo run --example seeds` in this folder; it fills `corpus/`, which is not kept in git.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let seeds = kstone_proofs::fuzzing::seeds();
    let requests = seeds.requests.into_iter().filter_map(|(operation, body)| {
        Some(("dynamo_request", kstone_dynamo::fuzzing::input(operation, &body)?))
    });
    let all = kstone_core::fuzzing::seeds().into_iter().chain(seeds.inputs).chain(requests);
    for (n, (target, bytes)) in all.enumerate() {
        let folder = corpus.join(target);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(format!("seed-{n:04}")), bytes)?;
    }
    Ok(())
}
