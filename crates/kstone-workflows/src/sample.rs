//! Deterministic sample executions.

use std::collections::BTreeMap;

use kstone::Number;

use crate::{
    Album, AnyEntity, Execution, ExecutionStatus, ImageRegion, Metrics, Period, Task, TaskAlbum,
    TaskStatus, TokenHash, WorkflowType,
};
use kstone_base::time::{Date, TimeError, Timestamp};

/// How often a new image arrives.
const IMAGE_SECONDS: u64 = 97 * 60;
/// How long a human has to answer.
const ANSWER_SECONDS: u64 = 60 * 60;

/// What is on the images, in turn.
const ALBUMS: [(&str, &str, u32); 12] = [
    ("The Dark Side of the Moon", "Pink Floyd", 1973),
    ("Abbey Road", "The Beatles", 1969),
    ("Kind of Blue", "Miles Davis", 1959),
    ("Rumours", "Fleetwood Mac", 1977),
    ("Blue", "Joni Mitchell", 1971),
    ("Pet Sounds", "The Beach Boys", 1966),
    ("Nevermind", "Nirvana", 1991),
    ("Thriller", "Michael Jackson", 1982),
    ("OK Computer", "Radiohead", 1997),
    ("Horses", "Patti Smith", 1975),
    ("A Love Supreme", "John Coltrane", 1965),
    ("Homogenic", "Björk", 1997),
];

/// Both engines at work on this many images, the first of which arrives at `start`: executions
/// `exec-001`, `exec-002`, … with their albums and tasks, and the metrics of each day. The first
/// image shows twelve albums, the others six.
pub fn sample(start: Timestamp, images: u32) -> Result<Vec<AnyEntity>, TimeError> {
    let mut entities = Vec::new();
    let mut executions = Vec::new();
    for image in 0..images {
        let created_at = later(start, u64::from(image) * IMAGE_SECONDS)?;
        for (turn, workflow_type) in WorkflowType::ALL.iter().enumerate() {
            let number = image * 2 + turn as u32 + 1;
            let execution = execution(number, image, *workflow_type, created_at)?;
            let albums = albums(&execution, image);
            entities.extend(task(&execution, image, &albums)?.map(AnyEntity::Task));
            entities.extend(albums.into_iter().map(AnyEntity::Album));
            entities.push(AnyEntity::Execution(execution.clone()));
            executions.push(execution);
        }
    }
    entities.extend(metrics(&executions).into_iter().map(AnyEntity::Metrics));
    Ok(entities)
}

fn later(moment: Timestamp, seconds: u64) -> Result<Timestamp, TimeError> {
    Timestamp::from_epoch_seconds(moment.epoch_seconds() + seconds)
}

fn execution(
    number: u32,
    image: u32,
    workflow_type: WorkflowType,
    created_at: Timestamp,
) -> Result<Execution, TimeError> {
    let (status, step) = match image % 6 {
        2 => (ExecutionStatus::Running, "image-processing"),
        3 => (ExecutionStatus::Waiting, "human-validation"),
        5 => (ExecutionStatus::Failed, "image-processing"),
        _ => (ExecutionStatus::Completed, "finished"),
    };
    let is_durable = workflow_type == WorkflowType::DurableFunctions;
    let ended = matches!(status, ExecutionStatus::Completed | ExecutionStatus::Failed);
    let seconds = if is_durable { 38 } else { 45 } + u64::from(image % 7);
    let cost = format!("0.00{}", if is_durable { 41 } else { 60 } + image % 3).parse().ok();
    Ok(Execution {
        execution_id: format!("exec-{number:03}"),
        workflow_type,
        image_s3_key: format!("uploads/albums-{}-{image:03}.jpg", created_at.date()),
        status,
        current_step: is_durable.then(|| step.to_owned()),
        comparison_id: Some(format!("image-{image:03}")),
        start_time: created_at,
        end_time: ended.then(|| later(created_at, seconds)).transpose()?,
        duration_ms: ended.then_some(seconds * 1000),
        estimated_cost: cost.filter(|_| ended),
        created_at,
        updated_at: later(created_at, seconds)?,
    })
}

fn albums(execution: &Execution, image: u32) -> Vec<Album> {
    let count = match execution.status {
        ExecutionStatus::Failed => 0,
        _ if image == 0 => 12,
        _ => 6,
    };
    let is_done = execution.status == ExecutionStatus::Completed;
    let shown = ALBUMS.iter().cycle().skip(image as usize % ALBUMS.len()).zip(1..=count);
    shown
        .map(|((name, artist, year), album_index)| {
            // The price depends on the album alone, so both engines arrive at the same.
            let price = Number::from(20 + (year * 7 + name.len() as u32) % 60);
            Album {
                execution_id: execution.execution_id.clone(),
                workflow_type: execution.workflow_type,
                album_index,
                album_name: (*name).to_owned(),
                artist: (*artist).to_owned(),
                year: *year,
                year_validated: is_done,
                year_original: Some(*year),
                price_estimate: is_done.then_some(price),
                price_confidence: "0.85".parse().ok().filter(|_| is_done),
                price_source: is_done.then(|| "discogs-api".to_owned()),
                image_region: Some(ImageRegion {
                    x: (album_index - 1) % 3 * 200,
                    y: (album_index - 1) / 3 * 200,
                    width: 200,
                    height: 200,
                }),
                created_at: execution.created_at,
                updated_at: execution.updated_at,
            }
        })
        .collect()
}

fn task(execution: &Execution, image: u32, albums: &[Album]) -> Result<Option<Task>, TimeError> {
    let status = match execution.status {
        ExecutionStatus::Waiting => TaskStatus::Pending,
        ExecutionStatus::Completed if image.is_multiple_of(4) => TaskStatus::Timeout,
        ExecutionStatus::Completed => TaskStatus::Completed,
        ExecutionStatus::Running | ExecutionStatus::Failed => return Ok(None),
    };
    let found = albums.iter().map(|album| TaskAlbum {
        album_index: album.album_index,
        album_name: album.album_name.clone(),
        artist: album.artist.clone(),
        year: album.year,
    });
    let found: Vec<TaskAlbum> = found.collect();
    let is_answered = status == TaskStatus::Completed;
    let task_id = execution.execution_id.replacen("exec", "task", 1);
    Ok(Some(Task {
        task_token_hash: TokenHash::of(&format!("token of {task_id}")),
        task_id,
        execution_id: execution.execution_id.clone(),
        workflow_type: execution.workflow_type,
        status,
        image_s3_key: execution.image_s3_key.clone(),
        validated_data: is_answered.then(|| found.clone()),
        albums: found,
        expires_at: later(execution.created_at, ANSWER_SECONDS)?,
        ttl: None,
        created_at: execution.created_at,
        completed_at: is_answered.then_some(execution.updated_at),
    }))
}

fn metrics(executions: &[Execution]) -> Vec<Metrics> {
    let mut days: BTreeMap<(Date, WorkflowType), Metrics> = BTreeMap::new();
    for execution in executions {
        let (date, workflow_type) = (execution.created_at.date(), execution.workflow_type);
        let day = days.entry((date, workflow_type)).or_insert_with(|| Metrics {
            date,
            workflow_type,
            period: Period::Daily,
            execution_count: 0,
            success_count: 0,
            failure_count: 0,
            total_duration_ms: 0,
            total_cost: Number::from(0),
            created_at: Timestamp::end_of(date),
        });
        day.execution_count += 1;
        day.success_count += u64::from(execution.status == ExecutionStatus::Completed);
        day.failure_count += u64::from(execution.status == ExecutionStatus::Failed);
        day.total_duration_ms += execution.duration_ms.unwrap_or(0);
        let cost = execution.estimated_cost.unwrap_or(Number::from(0));
        // Sums of cents are far from 38 digits.
        day.total_cost = day.total_cost.checked_add(cost).unwrap_or(day.total_cost);
    }
    days.into_values().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn twenty_images() -> Vec<AnyEntity> {
        sample("2025-01-15T10:30:00Z".parse().unwrap(), 20).unwrap()
    }

    #[test]
    fn every_item_has_its_own_key_and_the_same_value_every_time() {
        let entities = twenty_images();
        let key = |entity: &AnyEntity| {
            let item = entity.to_item().unwrap();
            ["pk", "sk"].map(|name| item.get(name).unwrap().as_str().unwrap().to_owned())
        };
        assert_eq!(entities.iter().map(key).collect::<BTreeSet<_>>().len(), entities.len());
        assert_eq!(entities, twenty_images());
    }

    #[test]
    fn both_engines_find_the_same_albums_at_the_same_prices() {
        let entities = twenty_images();
        let found_by = |id: &str| -> Vec<_> {
            let albums = entities.iter().filter_map(|entity| match entity {
                AnyEntity::Album(album) if album.execution_id == id => Some(album),
                _ => None,
            });
            albums.map(|album| (album.album_name.as_str(), album.price_estimate)).collect()
        };
        let names: BTreeSet<&str> = found_by("exec-003").iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), 6, "no album is twice on an image");
        assert_eq!(found_by("exec-003"), found_by("exec-004"));
    }
}
