//! Generates the messages of Dapr's gRPC APIs from their definitions in `proto/`.

use std::error::Error;

/// The definitions, below `proto/`. What they import comes with them.
const FILES: [&str; 6] = [
    "dapr/proto/components/v1/state.proto",
    "dapr/proto/runtime/v1/metadata.proto",
    "dapr/proto/runtime/v1/state.proto",
    "google/rpc/error_details.proto",
    "google/rpc/status.proto",
    "grpc/reflection/v1alpha/reflection.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let definitions = protox::compile(FILES, ["proto"])?;
    prost_build::Config::new()
        // A value is passed on without a copy.
        .bytes(["."])
        // `google.protobuf.Any` is generated as well: no further crate for one message.
        .compile_well_known_types()
        // Their examples would be taken for tests of the documentation.
        .disable_comments(["."])
        .include_file("messages.rs")
        .compile_fds(definitions)?;
    Ok(())
}
