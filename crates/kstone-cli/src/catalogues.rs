//! Finds catalogues by the names given on the command line: files, and those that ship with the product.

use std::fs;

use anyhow::{Context, Result, anyhow, bail};
use kstone_keyspace::{Catalogue, Keyspace, SHIPPED};

/// How the catalogues that ship with the product are named.
pub const SHIPPED_NAME: &str = "shipped";

/// The files that are named, as name and text.
pub fn files(names: &[String]) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for name in names {
        if name == SHIPPED_NAME {
            files.extend(SHIPPED.map(|(file, text)| (file.to_owned(), text.to_owned())));
        } else {
            let text = fs::read_to_string(name).with_context(|| {
                format!(
                    "cannot read the catalogue {name}; `{SHIPPED_NAME}` names those that ship with \
                     the product"
                )
            })?;
            files.push((name.clone(), text));
        }
    }
    Ok(files)
}

/// The keyspace that they declare together.
pub fn read(names: &[String]) -> Result<Keyspace> {
    let mut catalogues = Vec::new();
    for (file, text) in files(names)? {
        catalogues.push(Catalogue::parse(&file, &text).map_err(|problems| anyhow!("{problems}"))?);
    }
    if catalogues.is_empty() {
        bail!("no catalogue is named");
    }
    Keyspace::new(catalogues).map_err(|problems| anyhow!("{problems}"))
}
