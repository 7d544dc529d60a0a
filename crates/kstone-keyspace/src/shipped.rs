//! The catalogues that ship with the product: the four applications and the platform they share.

use crate::catalogue::Catalogue;
use crate::keyspace::Keyspace;
use crate::problem::Problems;

/// The catalogues as files: name and text.
pub const SHIPPED: [(&str, &str); 5] = [
    ("mastery.toml", include_str!("../catalogues/mastery.toml")),
    ("platform.toml", include_str!("../catalogues/platform.toml")),
    ("practice.toml", include_str!("../catalogues/practice.toml")),
    ("reviews.toml", include_str!("../catalogues/reviews.toml")),
    ("workflows.toml", include_str!("../catalogues/workflows.toml")),
];

/// The keyspace of the four applications and their platform. A test makes sure that it has no problems.
pub fn shipped() -> Result<Keyspace, Problems> {
    let catalogues: Result<Vec<Catalogue>, Problems> =
        SHIPPED.iter().map(|(file, text)| Catalogue::parse(file, text)).collect();
    Keyspace::new(catalogues?)
}
