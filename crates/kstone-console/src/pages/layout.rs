//! The layout that all pages share: head, navigation, foot; and their tables and empty states.

use maud::{DOCTYPE, Markup, html};

/// The sections of the console, in the order of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Overview,
    Learn,
    Keyspaces,
    People,
    Data,
    Work,
    Audit,
}

impl Section {
    const ALL: [Section; 7] = [
        Section::Overview,
        Section::Learn,
        Section::Keyspaces,
        Section::People,
        Section::Data,
        Section::Work,
        Section::Audit,
    ];

    fn path_and_name(self) -> (&'static str, &'static str) {
        match self {
            Section::Overview => ("/", "Overview"),
            Section::Learn => ("/learn", "Learning"),
            Section::Keyspaces => ("/keyspaces", "Keyspaces"),
            Section::People => ("/people", "People"),
            Section::Data => ("/data", "Data"),
            Section::Work => ("/work", "Work"),
            Section::Audit => ("/audit", "Audit"),
        }
    }
}

/// The title of a page, and where it is in the navigation.
#[derive(Debug)]
pub(crate) struct Layout<'f> {
    title: &'f str,
    section: Option<Section>,
    /// The pages above it, below the section's own: address and name.
    trail: Vec<(String, String)>,
}

impl<'f> Layout<'f> {
    pub(crate) fn new(title: &'f str, section: Option<Section>) -> Self {
        Layout { title, section, trail: Vec::new() }
    }

    /// A page of a section that is not its first.
    pub(crate) fn below(title: &'f str, section: Section, trail: &[(String, String)]) -> Self {
        let (path, name) = section.path_and_name();
        let mut all = vec![(path.to_owned(), name.to_owned())];
        all.extend_from_slice(trail);
        Layout { title, section: Some(section), trail: all }
    }
}

/// A whole page.
pub(crate) fn page(layout: &Layout<'_>, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (layout.title) " · KeystoneDB" }
                link rel="icon" type="image/svg+xml" href="/assets/icon.svg";
                link rel="stylesheet" href="/assets/console.css";
                script src="/assets/console.js" defer {}
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                header.top {
                    div.inner {
                        a.brand href="/" { (mark()) span { "KeystoneDB" } }
                        nav aria-label="Main navigation" {
                            ul {
                                @for section in Section::ALL {
                                    @let (path, name) = section.path_and_name();
                                    @let here = (layout.section == Some(section)).then_some("page");
                                    li { a href=(path) aria-current=[here] { (name) } }
                                }
                            }
                        }
                    }
                }
                main #content tabindex="-1" {
                    @if !layout.trail.is_empty() {
                        nav.trail aria-label="Where this page is" {
                            ol {
                                @for (path, name) in &layout.trail {
                                    li { a href=(path) { (name) } }
                                }
                            }
                        }
                    }
                    (content)
                }
                footer.foot {
                    div.inner {
                        span { "KeystoneDB " (env!("CARGO_PKG_VERSION")) }
                        a href="/api/v1/docs" { "REST API" }
                        a href="/api/v1/openapi.json" { "OpenAPI" }
                    }
                }
            }
        }
    }
}

/// The mark: a keystone.
fn mark() -> Markup {
    html! {
        svg.mark viewBox="0 0 24 24" aria-hidden="true" focusable="false" {
            path d="M4 3h16l-4.5 18h-7z" {}
        }
    }
}

/// Stands in for something that there is none of: what it would be, and how to get it.
pub(crate) fn empty_state(title: &str, how: &Markup) -> Markup {
    html! { div.empty { p.lead { (title) } (how) } }
}

/// A part of a page that the script loads again while somebody looks.
pub(crate) fn live(address: &str, every_ms: u32, content: &Markup) -> Markup {
    html! { div data-live=(address) data-every=(every_ms) { (content) } }
}

/// What stands above a column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column<'n> {
    Text(&'n str),
    /// At the right, as its numbers are.
    Number(&'n str),
}

/// A table that can be wider than the screen.
pub(crate) fn table(caption: &str, columns: &[Column<'_>], rows: &Markup) -> Markup {
    html! {
        div.wide role="region" aria-label=(caption) tabindex="0" {
            table {
                caption { (caption) }
                thead {
                    tr {
                        @for column in columns {
                            @match column {
                                Column::Text(name) => th scope="col" { (name) },
                                Column::Number(name) => th.number scope="col" { (name) },
                            }
                        }
                    }
                }
                tbody { (rows) }
            }
        }
    }
}

/// A figure with its name, and what else there is to say of it.
pub(crate) fn tile(name: &str, value: &str, more: &Markup) -> Markup {
    html! { div.tile { span.name { (name) } span.value { (value) } (more) } }
}
