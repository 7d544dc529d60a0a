//! Answers that are the same but for something that does not matter.

use serde_json::Value as Json;

use crate::differential::{Step, schema};

/// Whether the same statements of a batch fail, with the same code.
pub(super) fn responses_differ_in_words(ours: &Json, theirs: &Json) -> bool {
    let without_words = |answer: &Json| {
        let mut answer = answer.clone();
        for response in answer["Responses"].as_array_mut().into_iter().flatten() {
            if let Some(error) = response.get_mut("Error").and_then(Json::as_object_mut) {
                error.remove("Message");
                // DynamoDB Local names the table of some errors and not of others.
                if let Some(response) = response.as_object_mut() {
                    response.remove("TableName");
                }
            }
        }
        answer
    };
    without_words(ours) == without_words(theirs)
}

/// Whether two queries of a global index have the same items, and the same sort keys in order.
pub(super) fn differ_in_ties(step: &Step, ours: &Json, theirs: &Json) -> bool {
    let indexes = schema::TABLES.iter().flat_map(|table| table.indexes);
    let mut named = indexes.filter(|index| !index.is_local && step.body["IndexName"] == index.name);
    let Some(index) = named.next() else { return false };
    let items = |pages: &Json| -> Vec<Json> {
        let pages = pages.as_array().into_iter().flatten();
        pages.flat_map(|page| page["Items"].as_array().into_iter().flatten()).cloned().collect()
    };
    let (mut ours, mut theirs) = (items(ours), items(theirs));
    let sort_keys = |items: &[Json]| -> Vec<Vec<Json>> {
        let key = |item: &Json| index.range.iter().map(|(name, _)| item[*name].clone()).collect();
        items.iter().map(key).collect()
    };
    let is_in_order = sort_keys(&ours) == sort_keys(&theirs);
    ours.sort_by_key(Json::to_string);
    theirs.sort_by_key(Json::to_string);
    is_in_order && ours == theirs
}

/// Whether two descriptions are the same but for the status and what is counted.
pub(super) fn same_but_status_and_size(ours: &Json, theirs: &Json) -> bool {
    let mut ours = ours.clone();
    if let Some(status) = ours.pointer_mut("/TableDescription/TableStatus") {
        *status = "ACTIVE".into();
    }
    same_but_size(&ours, theirs)
}

/// Whether two descriptions are the same but for what is counted.
pub(super) fn same_but_size(ours: &Json, theirs: &Json) -> bool {
    let (mut ours, mut theirs) = (ours.clone(), theirs.clone());
    for description in [&mut ours, &mut theirs] {
        let table = description.as_object_mut().and_then(|answer| answer.values_mut().next());
        let Some(table) = table.and_then(Json::as_object_mut) else { return false };
        table.remove("TableSizeBytes");
        for (_, indexes) in table.iter_mut().filter(|(name, _)| name.ends_with("Indexes")) {
            for index in indexes.as_array_mut().into_iter().flatten() {
                if let Some(members) = index.as_object_mut() {
                    members.remove("IndexSizeBytes");
                    // DynamoDB Local counts the table's items.
                    members.remove("ItemCount");
                }
            }
        }
    }
    is_described_alike(&ours, &theirs)
}

/// Whether the door has one more page, without items.
pub(super) fn is_last_page(ours: &Json, theirs: &Json) -> bool {
    let (Some(ours), Some(theirs)) = (ours.as_array(), theirs.as_array()) else { return false };
    let Some(([before @ .., full], last)) = ours.split_last().map(|(last, ours)| (ours, last))
    else {
        return false;
    };
    let mut full = full.clone();
    if let Some(members) = full.as_object_mut() {
        members.remove("LastEvaluatedKey");
    }
    last["ScannedCount"] == 0
        && theirs.split_last().is_some_and(|(end, start)| *end == full && start == before)
}

/// Whether two descriptions are the same but for the throughput of global indexes.
pub(super) fn is_described_alike(ours: &Json, theirs: &Json) -> bool {
    let mut ours = ours.clone();
    for table in ["Table", "TableDescription"] {
        for index in ours[table]["GlobalSecondaryIndexes"].as_array_mut().into_iter().flatten() {
            if let Some(members) = index.as_object_mut() {
                members.remove("ProvisionedThroughput");
            }
        }
    }
    // Looking for a member has made one.
    let mut theirs = theirs.clone();
    for table in [&mut ours, &mut theirs] {
        if let Some(members) = table.as_object_mut() {
            members.retain(|_, member| !member.is_null());
        }
        for name in ["Table", "TableDescription"] {
            if let Some(members) = table.get_mut(name).and_then(Json::as_object_mut) {
                members.retain(|_, member| !member.is_null());
            }
        }
    }
    if let (Some(ours), Some(theirs)) = (ours.as_object_mut(), theirs.as_object_mut()) {
        ours.retain(|_, member| member.as_object().is_none_or(|members| !members.is_empty()));
        theirs.retain(|_, member| member.as_object().is_none_or(|members| !members.is_empty()));
    }
    ours == theirs
}
