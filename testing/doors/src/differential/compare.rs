//! Compares two answers, apart from what cannot be the same: times, identifiers, the order of
//! sets and of scans.

use serde_json::{Map, Value as Json, json};

use super::{Answers, Paging, Step, schema};
use crate::http::Answer;

/// A difference between two answers.
#[derive(Debug, Clone)]
pub struct Difference {
    /// What the door said.
    pub ours: Json,
    /// What DynamoDB Local said.
    pub theirs: Json,
    /// The same for differences of the same kind.
    pub signature: String,
}

/// Whether both did what was asked.
pub fn both_succeeded(answers: &Answers) -> bool {
    answers.ours.iter().chain(&answers.theirs).all(|answer| answer.status == 200)
}

/// Whether neither did what was asked.
pub fn both_failed(answers: &Answers) -> bool {
    answers.ours.iter().chain(&answers.theirs).all(|answer| answer.status != 200)
}

/// The difference, if there is one.
pub fn compare(step: &Step, answers: &Answers) -> Option<Difference> {
    let ours = comparable(step, &answers.ours);
    let mut theirs = comparable(step, &answers.theirs);
    // DynamoDB Local says it unasked at some operations; a wrong one of ours still shows.
    if let (None, Some(members)) = (step.body.get("ReturnConsumedCapacity"), theirs.as_object_mut())
    {
        members.remove("ConsumedCapacity");
    }
    if ours == theirs {
        return None;
    }
    let signature = format!("{} {} {}", step.operation, kind(&ours), kind(&theirs));
    Some(Difference { ours, theirs, signature })
}

/// What is compared of the answers to a request.
fn comparable(step: &Step, answers: &[Answer]) -> Json {
    let mut pages: Vec<Json> = answers.iter().map(page).collect();
    if let Some(failed) = pages.iter().find(|page| page.get("error").is_some()) {
        return failed.clone();
    }
    let is_unordered = step.operation == "Scan" || is_unordered_statement(step);
    if step.follow == Paging::Never && !is_unordered {
        return pages.pop().unwrap_or_default();
    }
    if step.operation == "Query" {
        return json!(pages);
    }
    // The order of a scan is the server's own, so pages end where they like.
    let sum = |name: &str| pages.iter().filter_map(|page| page[name].as_u64()).sum::<u64>();
    let (count, scanned) = (sum("Count"), sum("ScannedCount"));
    let has_items = pages.iter().any(|page| page.get("Items").is_some());
    let mut items: Vec<Json> = pages
        .iter_mut()
        .filter_map(|page| page["Items"].as_array_mut().map(std::mem::take))
        .flatten()
        .collect();
    items.sort_by_key(Json::to_string);
    json!({"Items": has_items.then_some(items), "Count": count, "ScannedCount": scanned})
}

fn is_unordered_statement(step: &Step) -> bool {
    let text = step.body["Statement"].as_str().unwrap_or("").trim_start();
    step.operation == "ExecuteStatement" && text.len() > 6 && !text.starts_with("UPDATE")
}

/// One answer.
fn page(answer: &Answer) -> Json {
    let Ok(mut body) = serde_json::from_slice::<Json>(&answer.body) else {
        return json!({
            "error": answer.status,
            "text": String::from_utf8_lossy(&answer.body).into_owned(),
        });
    };
    normalise(&mut body);
    if let Some(Json::Array(names)) = body.get_mut("TableNames") {
        // A request that only DynamoDB Local understands leaves a table of another name.
        names.retain(|name| schema::TABLES.iter().any(|table| name == table.name));
    }
    if answer.status == 200 {
        return body;
    }
    let mut error = Map::new();
    error.insert("error".to_owned(), json!(answer.status));
    if let Json::Object(members) = body {
        for (name, value) in members {
            match name.as_str() {
                "__type" => {
                    let text = value.as_str().unwrap_or_default();
                    let name = text.rsplit('#').next().unwrap_or(text);
                    error.insert("type".to_owned(), json!(name));
                }
                "message" | "Message" => drop(error.insert("message".to_owned(), value)),
                _ => drop(error.insert(name, value)),
            }
        }
    }
    Json::Object(error)
}

/// Members that no two servers, or no two calls, agree on.
const OWN: &[&str] = &[
    "TableArn",
    "TableId",
    "IndexArn",
    "CreationDateTime",
    "LastUpdateToPayPerRequestDateTime",
    "LastIncreaseDateTime",
    "LastDecreaseDateTime",
    "LatestStreamArn",
    "LatestStreamLabel",
    // DynamoDB says it, DynamoDB Local does not.
    "WarmThroughput",
];

fn normalise(value: &mut Json) {
    match value {
        Json::Object(members) => {
            members.retain(|name, _| !OWN.contains(&name.as_str()));
            // DynamoDB Local gives numbers back as they were written.
            if let Some(Json::String(number)) = members.get_mut("N")
                && let Ok(exact) = number.parse::<kstone::Number>()
            {
                *number = exact.to_string();
            }
            if let Some(Json::Array(numbers)) = members.get_mut("NS") {
                for number in numbers {
                    let exact =
                        number.as_str().and_then(|text| text.parse::<kstone::Number>().ok());
                    if let Some(exact) = exact {
                        *number = json!(exact.to_string());
                    }
                }
            }
            for (name, member) in members.iter_mut() {
                normalise(member);
                let is_unordered = matches!(
                    name.as_str(),
                    "SS" | "NS"
                        | "BS"
                        | "AttributeDefinitions"
                        | "GlobalSecondaryIndexes"
                        | "LocalSecondaryIndexes"
                        | "NonKeyAttributes"
                );
                if let (true, Json::Array(elements)) = (is_unordered, &mut *member) {
                    elements.sort_by_key(Json::to_string);
                }
                // BatchGetItem answers in the order it likes.
                if let ("Responses", Json::Object(tables)) = (name.as_str(), &mut *member) {
                    for (_, items) in tables.iter_mut() {
                        if let Json::Array(items) = items {
                            items.sort_by_key(Json::to_string);
                        }
                    }
                }
            }
        }
        Json::Array(elements) => elements.iter_mut().for_each(normalise),
        _ => {}
    }
}

/// What an answer is like, without what only this request has in it.
fn kind(answer: &Json) -> String {
    match (answer["type"].as_str(), answer["message"].as_str()) {
        (Some(name), message) => format!("{name}: {}", shape(message.unwrap_or("-"))),
        (None, _) if answer.get("error").is_some() => "error".to_owned(),
        _ => "success".to_owned(),
    }
}

/// A message without what is quoted, bracketed or counted in it.
pub fn shape(message: &str) -> String {
    let mut shape = String::new();
    let mut quote = None;
    for character in message.chars() {
        match quote {
            Some(end) if character == end => quote = None,
            Some(_) => continue,
            None => {
                quote = match character {
                    '"' => Some('"'),
                    '\'' => Some('\''),
                    '[' => Some(']'),
                    '{' => Some('}'),
                    _ => None,
                }
            }
        }
        if !character.is_ascii_digit() {
            shape.push(character);
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: Json) -> Answer {
        Answer { status, headers: Vec::new(), body: body.to_string().into_bytes() }
    }

    fn compared(operation: &'static str, follow: Paging, ours: Json, theirs: Json) -> bool {
        let mut step = Step::new(operation, json!({}));
        step.follow = follow;
        let answers = Answers { ours: vec![answer(200, ours)], theirs: vec![answer(200, theirs)] };
        compare(&step, &answers).is_some()
    }

    #[test]
    fn the_order_of_a_query_counts_and_that_of_a_scan_does_not() {
        let (one, other) =
            (json!({"Items": [{"a": {"N": "1"}}, {}]}), json!({"Items": [{}, {"a": {"N": "1"}}]}));
        assert!(compared("Query", Paging::Pages, one.clone(), other.clone()));
        assert!(!compared("Scan", Paging::Pages, one, other));
    }

    #[test]
    fn sets_have_no_order_and_lists_have() {
        let body = |kind: &str, values: [&str; 2]| json!({"Item": {"a": {kind: values}}});
        let never = Paging::Never;
        assert!(!compared("GetItem", never, body("SS", ["a", "b"]), body("SS", ["b", "a"])));
        assert!(compared("GetItem", never, body("L", ["a", "b"]), body("L", ["b", "a"])));
    }

    #[test]
    fn errors_are_compared_by_status_type_and_message() {
        let step = Step::new("GetItem", json!({}));
        let error = |status, name: &str, message: &str| {
            vec![answer(status, json!({"__type": name, "message": message}))]
        };
        let differ = |ours, theirs| compare(&step, &Answers { ours, theirs }).is_some();
        assert!(!differ(error(400, "x#Bad", "m"), error(400, "y#Bad", "m")));
        assert!(differ(error(400, "x#Bad", "m"), error(400, "x#Bad", "n")));
        assert!(differ(error(400, "x#Bad", "m"), error(500, "x#Bad", "m")));
        assert!(differ(error(400, "x#Bad", "m"), error(400, "x#Worse", "m")));
    }

    #[test]
    fn what_a_message_quotes_is_no_part_of_its_shape() {
        assert_eq!(shape("Value 'ab' at 12: [x]"), "Value '' at : []");
    }
}
