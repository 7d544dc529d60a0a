//! The description of the API, generated from the code, and a page that shows it.

use std::sync::Arc;

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse as _;
use axum::routing::get;
use maud::{DOCTYPE, Markup, html};
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi, PathItem, Ref, RefOr, Required, ResponseBuilder};
use utoipa::{OpenApi as _, ToSchema as _};

use super::problem::ErrorBody;
use crate::console::Console;

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "KeystoneDB learning platform",
        description = "Mastery of learners on KeystoneDB: events in, scores, predictions and \
                       recommendations out. Errors are JSON and name the field. Every POST and PUT may \
                       carry an `Idempotency-Key`; sent again within 24 hours, the same request is \
                       answered with what was answered first. Every answer carries `X-Request-Id`.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    servers((url = "/api/v1")),
    components(schemas(ErrorBody)),
    tags(
        (name = "events", description = "What learners did"),
        (name = "mastery", description = "What learners have mastered"),
        (name = "learners", description = "Who learners are, and what they agreed to"),
        (name = "schools", description = "Classes, cohorts and aggregates"),
        (name = "people", description = "Export and erasure"),
        (name = "work", description = "Background work and alerts"),
        (name = "data", description = "Declared keys"),
        (name = "server", description = "The server itself"),
    )
)]
struct Preface;

/// What the description begins with.
pub(super) fn preface() -> OpenApi {
    Preface::openapi()
}

/// What is true of every call is added in one place.
pub(super) fn finished(mut document: OpenApi) -> OpenApi {
    let components = document.components.get_or_insert_default();
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("The token of `--console-token`; without that flag none is needed."))
        .build();
    components.add_security_scheme("token", SecurityScheme::Http(bearer));
    for (path, item) in &mut document.paths.paths {
        let ids: Vec<Parameter> = path.split(['{', '}']).filter_map(id_in_path).collect();
        for (takes_key, operation) in operations(item) {
            let problem = ContentBuilder::new()
                .schema(Some(Ref::from_schema_name(ErrorBody::name())))
                .build();
            let response = ResponseBuilder::new()
                .description("It was not done: why, and which field is wrong")
                .content("application/json", problem)
                .build();
            let responses = &mut operation.responses.responses;
            responses.entry("default".to_owned()).or_insert(RefOr::T(response));
            // Without a token the console asks for none.
            operation.security = Some(vec![
                SecurityRequirement::default(),
                SecurityRequirement::new::<_, [&str; 0], &str>("token", []),
            ]);
            let parameters = operation.parameters.get_or_insert_default();
            parameters.splice(0..0, ids.iter().cloned());
            if takes_key {
                parameters.push(idempotency_key());
            }
            parameters.push(actor());
        }
    }
    document
}

/// The id that a part of a path stands for, if it is one: all are of the same form.
fn id_in_path(name: &str) -> Option<Parameter> {
    const MADE_HERE: &str = "1768386600000-5b1f0c6a9d2e4f77";
    let (description, example) = match name {
        "student_id" => ("The learner", "s-1"),
        "school_id" => ("The school", "north"),
        "class_id" => ("The class", "7a"),
        "queue" => ("The queue", "mastery"),
        "job_id" => ("The job", MADE_HERE),
        "batch_id" => ("Which batch", MADE_HERE),
        "erasure_id" => ("The erasure's id", MADE_HERE),
        "recommendation_id" => ("Which recommendation", MADE_HERE),
        _ => return None,
    };
    Some(parameter(ParameterIn::Path, name, description, id_schema(example)))
}

fn id_schema(example: &str) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some("^[A-Za-z0-9_.@-]{1,128}$"))
        .examples([example])
}

/// A parameter that may be left out, or a part of a path, which never can.
fn parameter(
    place: ParameterIn,
    name: &str,
    description: &str,
    schema: ObjectBuilder,
) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

fn idempotency_key() -> Parameter {
    let text =
        ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(128));
    let text = text.pattern(Some("^[A-Za-z0-9_.@-]+$"));
    let description = "The same key with the same request does it once, within 24 hours";
    parameter(ParameterIn::Header, "Idempotency-Key", description, text)
}

fn actor() -> Parameter {
    let description = "For whom it is asked, as the audit log is to say; nobody checks it";
    parameter(ParameterIn::Header, "X-Actor", description, id_schema("teacher_7"))
}

/// The operations of a path, and whether each takes an `Idempotency-Key`.
fn operations(item: &mut PathItem) -> impl Iterator<Item = (bool, &mut Operation)> {
    let PathItem { get, put, post, delete, .. } = item;
    let others = get.iter_mut().chain(delete.iter_mut()).map(|operation| (false, operation));
    others.chain(put.iter_mut().chain(post.iter_mut()).map(|operation| (true, operation)))
}

/// The description, and a page that shows it.
pub(super) fn router(document: OpenApi) -> Router<Arc<Console>> {
    let json = document.to_json().unwrap_or_default();
    let page = page(&document).into_string();
    let kind = |kind: &'static str| [(header::CONTENT_TYPE, kind)];
    let json = move || async move { (kind("application/json"), json).into_response() };
    let page = move || async move { (kind("text/html; charset=utf-8"), page).into_response() };
    Router::new().route("/openapi.json", get(json)).route("/docs", get(page))
}

/// A plain page: it needs no script.
fn page(document: &OpenApi) -> Markup {
    let tags = document.tags.iter().flatten();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (document.info.title) }
                link rel="stylesheet" href="/assets/console.css";
            }
            body {
                main {
                    h1 { (document.info.title) }
                    @if let Some(text) = &document.info.description { p { (text) } }
                    p { "For programs: " a href="/api/v1/openapi.json" { "openapi.json" } }
                    @for tag in tags {
                        h2 { (tag.description.as_deref().unwrap_or(&tag.name)) }
                        (table(document, &tag.name))
                    }
                }
            }
        }
    }
}

fn table(document: &OpenApi, tag: &str) -> Markup {
    let calls = document.paths.paths.iter().flat_map(|(path, item)| {
        let methods = [
            ("GET", &item.get),
            ("PUT", &item.put),
            ("POST", &item.post),
            ("DELETE", &item.delete),
        ];
        methods
            .into_iter()
            .filter_map(move |(method, operation)| Some((method, path, operation.as_ref()?)))
    });
    let of_tag = |operation: &Operation| operation.tags.iter().flatten().any(|it| it == tag);
    html! {
        table {
            thead { tr { th scope="col" { "Call" } th scope="col" { "What it does" } } }
            tbody {
                @for (method, path, operation) in calls.filter(|(_, _, it)| of_tag(it)) {
                    tr {
                        td { code { (method) " " (super::PREFIX) (path) } }
                        td { (operation.summary.as_deref().unwrap_or_default()) }
                    }
                }
            }
        }
    }
}
