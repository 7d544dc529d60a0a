#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kstone_core::fuzzing::sst_directory(bytes));
