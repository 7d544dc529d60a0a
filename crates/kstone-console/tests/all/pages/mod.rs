//! Pages, asked for in this process: of an empty store, of a full one, and of one whose keys and values
//! would rather be markup.

mod data;
mod erasing;
mod every_page;
mod fixture;
mod learning;
mod work;
