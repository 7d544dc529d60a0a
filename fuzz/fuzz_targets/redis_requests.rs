#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kstone_resp::fuzzing::requests(bytes));
