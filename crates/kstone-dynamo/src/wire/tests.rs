use kstone::{Item, ItemBytes, Value};

use crate::json::Json;
use crate::wire::{JsonWriter, read_item};

fn read(text: &str) -> Result<Item, String> {
    let json = Json::parse(text.as_bytes()).unwrap();
    read_item(&json).map_err(|fault| fault.message().to_owned())
}

fn written(item: &Item) -> String {
    let mut out = JsonWriter::with_capacity(0);
    out.item(&ItemBytes::encode(item));
    String::from_utf8(out.finish().unwrap()).unwrap()
}

/// The error for an attribute value.
fn refused(value: &str) -> String {
    read(&format!(r#"{{"a":{value}}}"#)).unwrap_err()
}

#[test]
fn every_type_is_read_and_written_back() {
    let text = concat!(
        r#"{"b":{"B":"AP8="},"bs":{"BS":["","AQ=="]},"f":{"BOOL":false},"l":{"L":[{"S":"x"},"#,
        r#"{"L":[]},{"NULL":true}]},"m":{"M":{"":{"S":""},"k":{"M":{}}}},"n":{"N":"-1.5"},"#,
        r#""ns":{"NS":["-1","2"]},"s":{"S":"ä\"\\\n\u0001/"},"ss":{"SS":["a","b"]},"t":{"BOOL":true}}"#
    );
    let item = read(text).unwrap();
    assert_eq!(item.len(), 10);
    assert_eq!(item.get("s"), Some(&Value::from("ä\"\\\n\u{1}/")));
    assert_eq!(written(&item), text);
}

#[test]
fn numbers_are_written_as_dynamodb_writes_them() {
    let item = read(r#"{"a":{"N":"+01.50E2"},"b":{"N":"0e5"},"c":{"N":"1E-130"}}"#).unwrap();
    assert!(written(&item).starts_with(r#"{"a":{"N":"150"},"b":{"N":"0"},"#));
}

#[test]
fn a_value_has_exactly_one_type() {
    let empty = "Supplied AttributeValue is empty, must contain exactly one of the supported \
                 datatypes";
    for value in
        ["{}", "null", r#"{"X":"a"}"#, r#"{"S":null}"#, r#"{"M":{"a":{}}}"#, r#"{"L":[{}]}"#]
    {
        assert_eq!(refused(value), empty, "{value}");
    }
    assert_eq!(
        refused(r#"{"S":"a","N":"1"}"#),
        "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the \
         supported datatypes"
    );
    assert!(read(r#"{"a":{"S":"a","N":null,"X":1}}"#).is_ok());
}

#[test]
fn bad_values_are_refused_in_the_words_of_dynamodb() {
    let invalid = "One or more parameter values were invalid: ";
    for (value, message) in [
        (
            r#"{"NULL":false}"#,
            format!("{invalid}Null attribute value types must have the value of true"),
        ),
        (r#"{"SS":[]}"#, format!("{invalid}An string set  may not be empty")),
        (r#"{"NS":[]}"#, format!("{invalid}An number set  may not be empty")),
        (r#"{"BS":[]}"#, format!("{invalid}Binary sets should not be empty")),
        (r#"{"SS":["a","a"]}"#, format!("{invalid}Input collection [a, a] contains duplicates.")),
        (
            r#"{"BS":["Yg==","Yg=="]}"#,
            format!("{invalid}Input collection [Yg==, Yg==]of type BS contains duplicates."),
        ),
        (r#"{"NS":["1","1.0"]}"#, "Input collection contains duplicates".to_owned()),
        (
            r#"{"SS":[null]}"#,
            format!("{invalid}An string set  may not have a null string as a member"),
        ),
        (
            r#"{"S":"a","N":"b"}"#,
            "The parameter cannot be converted to a numeric value: b".to_owned(),
        ),
        (
            r#"{"N":"1e126"}"#,
            "Number overflow. Attempting to store a number with magnitude larger than supported \
             range"
                .to_owned(),
        ),
    ] {
        assert_eq!(refused(value), message, "{value}");
    }
}

#[test]
fn values_nest_32_levels_and_no_more() {
    let nested = |levels: usize| {
        let lists = (levels - 1) / 2;
        let maps = levels - 1 - lists;
        let (mut start, mut end) = (String::new(), String::new());
        for _ in 0..lists {
            start += r#"{"L":["#;
            end.insert_str(0, "]}");
        }
        for _ in 0..maps {
            start += r#"{"M":{"m":"#;
            end.insert_str(0, "}}");
        }
        format!(r#"{start}{{"S":"x"}}{end}"#)
    };
    let deepest = format!(r#"{{"a":{}}}"#, nested(32));
    assert_eq!(written(&read(&deepest).unwrap()), deepest);
    assert_eq!(
        refused(&nested(33)),
        "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels \
         beyond supported limit"
    );
    assert!(refused(&nested(55)).starts_with("Nesting Levels"));
}
