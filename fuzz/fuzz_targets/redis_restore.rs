#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kstone_proofs::redis::arguments::restore(bytes));
