//! docs/format.md shows what is in the golden files.

use std::collections::BTreeMap;
use std::path::Path;

use crate::golden::{LOG, golden, reader};

/// The chapters with dumps of the golden log.
const CHAPTERS: [&str; 5] =
    ["Items", "Keys of items and index entries", "Stream records", "The catalogue", "Tokens"];

/// Every dump of these chapters shows what is in the golden log: offset, bytes up to column 44 (or
/// to an ellipsis), then the remark.
#[test]
fn the_dumps_of_the_format_description_are_of_the_golden_log() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format.md");
    let text = std::fs::read_to_string(path).unwrap();
    let log = &golden()[LOG];
    let (mut chapter, mut checked) = (None, BTreeMap::new());
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            chapter = CHAPTERS.into_iter().find(|&chapter| chapter == heading);
        }
        let (Some(chapter), Some((at, rest))) = (chapter, line.split_at_checked(4)) else {
            continue;
        };
        let (Ok(at), true) = (usize::from_str_radix(at, 16), rest.starts_with("  ")) else {
            continue;
        };
        let shown = rest.chars().skip(2).take(38).take_while(|&c| c != '…');
        let shown: String = shown.filter(|c| !c.is_whitespace()).collect();
        let bytes = &log[at..at + shown.len() / 2];
        let real: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(shown, real, "{line}");
        *checked.entry(chapter).or_insert(0) += bytes.len();
    }
    assert_eq!(checked.len(), CHAPTERS.len(), "{checked:?}");
    assert!(checked.values().all(|&bytes| bytes > 30), "{checked:?}");
}

#[test]
fn the_description_shows_the_first_record_of_the_catalogue() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, shown) = text.split_once("```json\n").unwrap();
    let shown: String = shown.split("```").next().unwrap().split_whitespace().collect();
    let files = golden();
    let operations = reader::operations(&files[LOG]);
    let stored = operations.iter().find(|operation| operation.pk == b"tables").unwrap();
    assert_eq!(shown.as_bytes(), stored.value.unwrap(), "{shown}");
}
