//! What all pages share: the head, the way around, the foot.

use maud::{DOCTYPE, Markup, html};

/// The rooms of the console, in the order in which they are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Overview,
    Learn,
    Keyspaces,
    People,
    Data,
    Work,
    Audit,
}

impl Room {
    const ALL: [Room; 7] = [
        Room::Overview,
        Room::Learn,
        Room::Keyspaces,
        Room::People,
        Room::Data,
        Room::Work,
        Room::Audit,
    ];

    fn path_and_name(self) -> (&'static str, &'static str) {
        match self {
            Room::Overview => ("/", "Overview"),
            Room::Learn => ("/learn", "Learning"),
            Room::Keyspaces => ("/keyspaces", "Keyspaces"),
            Room::People => ("/people", "People"),
            Room::Data => ("/data", "Data"),
            Room::Work => ("/work", "Work"),
            Room::Audit => ("/audit", "Audit"),
        }
    }
}

/// Where a page stands.
#[derive(Debug)]
pub(crate) struct Frame<'f> {
    title: &'f str,
    room: Option<Room>,
    /// The pages above it, below the room's own: address and name.
    trail: Vec<(String, String)>,
}

impl<'f> Frame<'f> {
    pub(crate) fn new(title: &'f str, room: Option<Room>) -> Self {
        Frame { title, room, trail: Vec::new() }
    }

    /// A page of a room that is not its first.
    pub(crate) fn below(title: &'f str, room: Room, trail: &[(String, String)]) -> Self {
        let (path, name) = room.path_and_name();
        let mut all = vec![(path.to_owned(), name.to_owned())];
        all.extend_from_slice(trail);
        Frame { title, room: Some(room), trail: all }
    }
}

/// A whole page.
pub(crate) fn page(frame: &Frame<'_>, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (frame.title) " · KeystoneDB" }
                link rel="icon" type="image/svg+xml" href="/assets/icon.svg";
                link rel="stylesheet" href="/assets/console.css";
                script src="/assets/console.js" defer {}
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                header.top {
                    div.inner {
                        a.brand href="/" { (mark()) span { "KeystoneDB" } }
                        nav aria-label="Rooms" {
                            ul {
                                @for room in Room::ALL {
                                    @let (path, name) = room.path_and_name();
                                    @let here = (frame.room == Some(room)).then_some("page");
                                    li { a href=(path) aria-current=[here] { (name) } }
                                }
                            }
                        }
                    }
                }
                main #content tabindex="-1" {
                    @if !frame.trail.is_empty() {
                        nav.trail aria-label="Where this page is" {
                            ol {
                                @for (path, name) in &frame.trail {
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

/// Something that there is none of: what it would be, and how it comes to be.
pub(crate) fn empty(title: &str, how: &Markup) -> Markup {
    html! { div.empty { p.lead { (title) } (how) } }
}

/// A part of a page that is asked for again while somebody looks.
pub(crate) fn live(address: &str, every_ms: u32, content: &Markup) -> Markup {
    html! { div data-live=(address) data-every=(every_ms) { (content) } }
}

/// A table that can be wider than the screen.
pub(crate) fn table(caption: &str, content: &Markup) -> Markup {
    html! {
        div.wide role="region" aria-label=(caption) tabindex="0" {
            table { caption { (caption) } (content) }
        }
    }
}
