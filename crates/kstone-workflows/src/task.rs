//! A human task: a question about the albums that an execution found.

use kstone::{Item, Value};
use sha2::{Digest, Sha256};

use crate::album::check_album;
use crate::entity::Entity;
use crate::{EntityType, TaskStatus, WorkflowType, task_key};
use kstone_base::field::{
    FromValue, Invalid, check_id, check_length, map, nullable, optional, required, text,
};
use kstone_base::time::Timestamp;

/// A question to a human about the albums that an execution found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its id.
    pub task_id: String,
    /// The execution that asks.
    pub execution_id: String,
    /// Which engine runs that.
    pub workflow_type: WorkflowType,
    /// How far it is.
    pub status: TaskStatus,
    /// The image to look at.
    pub image_s3_key: String,
    /// What the execution found.
    pub albums: Vec<TaskAlbum>,
    /// What the human says.
    pub validated_data: Option<Vec<TaskAlbum>>,
    /// What proves that an answer comes from whom the question was sent to.
    pub task_token_hash: TokenHash,
    /// From when on an answer is too late.
    pub expires_at: Timestamp,
    /// From when on this record is gone. Later than `expires_at`, so that who answers too late
    /// can be told so.
    pub ttl: Option<Timestamp>,
    /// When this record was made.
    pub created_at: Timestamp,
    /// When it was answered.
    pub completed_at: Option<Timestamp>,
}

/// What a task says about one album.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskAlbum {
    /// Its place among the albums of the image.
    pub album_index: u32,
    /// Its title.
    pub album_name: String,
    /// Who made it.
    pub artist: String,
    /// When it came out.
    pub year: u32,
}

/// The SHA-256 of a task's token, in hexadecimal. The token itself opens the task to everyone who has
/// it, so it is given out and not kept. Tokens are long and random: a salt would add nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenHash(String);

impl TokenHash {
    /// The hash of a token.
    pub fn of(token: &str) -> Self {
        TokenHash(hex::encode(Sha256::digest(token)))
    }

    /// The hash as it is stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Entity for Task {
    const TYPE: EntityType = EntityType::Task;

    fn key(&self) -> Item {
        task_key(&self.task_id)
    }

    fn validate(&self) -> Result<(), Invalid> {
        check_id("taskId", &self.task_id)?;
        check_id("executionId", &self.execution_id)?;
        check_length("imageS3Key", &self.image_s3_key, 1..=1024)?;
        check_albums("albums", &self.albums)?;
        check_albums("validatedData", self.validated_data.as_deref().unwrap_or_default())?;
        match self.ttl.filter(|ttl| *ttl <= self.expires_at) {
            Some(ttl) => Err(Invalid::value("ttl", "later than expiresAt", ttl)),
            None => Ok(()),
        }
    }

    fn fields(&self) -> Item {
        let validated = self.validated_data.as_deref().map(list);
        Item::new()
            .with("taskId", self.task_id.as_str())
            .with("executionId", self.execution_id.as_str())
            .with("workflowType", self.workflow_type)
            .with("status", self.status)
            .with("imageS3Key", self.image_s3_key.as_str())
            .with("albums", list(&self.albums))
            .with("validatedData", nullable(validated))
            .with("taskTokenHash", self.task_token_hash.as_str())
            .with("expiresAt", self.expires_at)
            .with("ttl", nullable(self.ttl.map(Timestamp::epoch_seconds)))
            .with("createdAt", self.created_at)
            .with("completedAt", nullable(self.completed_at))
    }

    fn from_fields(item: &Item) -> Result<Self, Invalid> {
        let ttl = optional::<u64>(item, "ttl")?.map(|seconds| {
            Timestamp::from_epoch_seconds(seconds)
                .map_err(|_| Invalid::value("ttl", "seconds since 1970, to the year 9999", seconds))
        });
        Ok(Task {
            task_id: required(item, "taskId")?,
            execution_id: required(item, "executionId")?,
            workflow_type: required(item, "workflowType")?,
            status: required(item, "status")?,
            image_s3_key: required(item, "imageS3Key")?,
            albums: required(item, "albums")?,
            validated_data: optional(item, "validatedData")?,
            task_token_hash: required(item, "taskTokenHash")?,
            expires_at: required(item, "expiresAt")?,
            ttl: ttl.transpose()?,
            created_at: required(item, "createdAt")?,
            completed_at: optional(item, "completedAt")?,
        })
    }
}

fn check_albums(field: &str, albums: &[TaskAlbum]) -> Result<(), Invalid> {
    for (at, album) in albums.iter().enumerate() {
        check_album(&album.album_name, &album.artist, album.year)
            .map_err(|invalid| invalid.within(&format!("{field}[{at}]")))?;
    }
    Ok(())
}

fn list(albums: &[TaskAlbum]) -> Vec<Value> {
    let to_value = |album: &TaskAlbum| {
        let map = Item::new()
            .with("albumIndex", album.album_index)
            .with("albumName", album.album_name.as_str())
            .with("artist", album.artist.as_str())
            .with("year", album.year);
        Value::M(map)
    };
    albums.iter().map(to_value).collect()
}

impl FromValue for TaskAlbum {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let map = map(value)?;
        Ok(TaskAlbum {
            album_index: required(map, "albumIndex")?,
            album_name: required(map, "albumName")?,
            artist: required(map, "artist")?,
            year: required(map, "year")?,
        })
    }
}

impl FromValue for TokenHash {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let text = text(value)?;
        let hexadecimal = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        match text.len() == 64 && text.bytes().all(hexadecimal) {
            true => Ok(TokenHash(text.to_owned())),
            // What is there instead may be a token: it is not repeated.
            false => Err(Invalid::value("", "64 hexadecimal digits", "something else")),
        }
    }
}
