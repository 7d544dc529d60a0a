#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kstone_door_tests::fuzzing::expression(bytes));
