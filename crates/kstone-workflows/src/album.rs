//! An album that an execution found in an image.

use std::ops::RangeInclusive;

use kstone::{Item, Number, Value};

use crate::entity::Entity;
use crate::{EntityType, WorkflowType, album_key};
use kstone_base::field::{
    FromValue, Invalid, check_id, check_length, map, nullable, optional, required,
};
use kstone_base::time::Timestamp;

/// An album that an execution found in its image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Album {
    /// The execution that found it.
    pub execution_id: String,
    /// Which engine ran that.
    pub workflow_type: WorkflowType,
    /// Its place among the albums of the image. Lists of albums are in this order.
    pub album_index: u32,
    /// Its title.
    pub album_name: String,
    /// Who made it.
    pub artist: String,
    /// When it came out, as far as is known now.
    pub year: u32,
    /// Whether a human has looked at the year.
    pub year_validated: bool,
    /// The year that was read from the image.
    pub year_original: Option<u32>,
    /// What it may be sold for, in dollars.
    pub price_estimate: Option<Number>,
    /// How sure the estimate is, from 0 to 1.
    pub price_confidence: Option<Number>,
    /// Where the estimate comes from.
    pub price_source: Option<String>,
    /// Where in the image it is.
    pub image_region: Option<ImageRegion>,
    /// When this record was made.
    pub created_at: Timestamp,
    /// When this record was last changed.
    pub updated_at: Timestamp,
}

/// A rectangle in an image, in pixels from its upper left corner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageRegion {
    /// Its left edge.
    pub x: u32,
    /// Its upper edge.
    pub y: u32,
    /// Its width.
    pub width: u32,
    /// Its height.
    pub height: u32,
}

impl Entity for Album {
    const TYPE: EntityType = EntityType::Album;

    fn key(&self) -> Item {
        album_key(&self.execution_id, self.album_index)
    }

    fn sort_value(&self) -> u32 {
        self.album_index
    }

    fn validate(&self) -> Result<(), Invalid> {
        check_id("executionId", &self.execution_id)?;
        check_album(&self.album_name, &self.artist, self.year)?;
        if let Some(year) = self.year_original {
            check_year("yearOriginal", year)?;
        }
        if let Some(price) = self.price_estimate.filter(|price| *price <= Number::from(0)) {
            return Err(Invalid::value("priceEstimate", "greater than 0", price));
        }
        let certain = Number::from(0)..=Number::from(1);
        if let Some(confidence) = self.price_confidence.filter(|it| !certain.contains(it)) {
            return Err(Invalid::value("priceConfidence", "from 0 to 1", confidence));
        }
        match &self.price_source {
            Some(source) => check_length("priceSource", source, 1..=200),
            None => Ok(()),
        }
    }

    fn fields(&self) -> Item {
        Item::new()
            .with("executionId", self.execution_id.as_str())
            .with("workflowType", self.workflow_type)
            .with("albumIndex", self.album_index)
            .with("albumName", self.album_name.as_str())
            .with("artist", self.artist.as_str())
            .with("year", self.year)
            .with("yearValidated", self.year_validated)
            .with("yearOriginal", nullable(self.year_original))
            .with("priceEstimate", nullable(self.price_estimate))
            .with("priceConfidence", nullable(self.price_confidence))
            .with("priceSource", nullable(self.price_source.as_deref()))
            .with("imageRegion", nullable(self.image_region))
            .with("createdAt", self.created_at)
            .with("updatedAt", self.updated_at)
    }

    fn from_fields(item: &Item) -> Result<Self, Invalid> {
        Ok(Album {
            execution_id: required(item, "executionId")?,
            workflow_type: required(item, "workflowType")?,
            album_index: required(item, "albumIndex")?,
            album_name: required(item, "albumName")?,
            artist: required(item, "artist")?,
            year: required(item, "year")?,
            year_validated: optional(item, "yearValidated")?.unwrap_or(false),
            year_original: optional(item, "yearOriginal")?,
            price_estimate: optional(item, "priceEstimate")?,
            price_confidence: optional(item, "priceConfidence")?,
            price_source: optional(item, "priceSource")?,
            image_region: optional(item, "imageRegion")?,
            created_at: required(item, "createdAt")?,
            updated_at: required(item, "updatedAt")?,
        })
    }
}

/// What must hold of an album wherever it is written down.
pub(super) fn check_album(name: &str, artist: &str, year: u32) -> Result<(), Invalid> {
    check_length("albumName", name, 1..=200)?;
    check_length("artist", artist, 1..=200)?;
    check_year("year", year)
}

fn check_year(field: &str, year: u32) -> Result<(), Invalid> {
    const YEARS: RangeInclusive<u32> = 1900..=2100;
    match YEARS.contains(&year) {
        true => Ok(()),
        false => Err(Invalid::value(field, "from 1900 to 2100", year)),
    }
}

impl From<ImageRegion> for Value {
    fn from(region: ImageRegion) -> Value {
        let ImageRegion { x, y, width, height } = region;
        Value::M([("x", x), ("y", y), ("width", width), ("height", height)].into_iter().collect())
    }
}

impl FromValue for ImageRegion {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let map = map(value)?;
        Ok(ImageRegion {
            x: required(map, "x")?,
            y: required(map, "y")?,
            width: required(map, "width")?,
            height: required(map, "height")?,
        })
    }
}
