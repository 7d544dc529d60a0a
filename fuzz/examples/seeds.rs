//! Writes the inputs that fuzzing starts from: real files, and their parts, made by the engine.
//!
//! `cargo run --example seeds` in this folder; it fills `corpus/`, which is not kept in git.

use std::path::Path;

fn main() -> std::io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (n, (target, bytes)) in kstone_core::fuzzing::seeds().into_iter().enumerate() {
        let folder = corpus.join(target);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(format!("seed-{n:03}")), bytes)?;
    }
    Ok(())
}
