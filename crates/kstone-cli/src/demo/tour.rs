//! Prints example commands with their real output.

use std::path::{Path, PathBuf};

use anyhow::Result;
use kstone_mastery::simulate::School;
use serde_json::json;

use crate::args::Query;
use crate::commands;
use crate::demo::TABLE;
use crate::demo::keys::Question;
use crate::demo::school::{DemoSchool, FillReport, SampleLearner};
use crate::output::{Output, counted};
use crate::tables::Client;

/// `is_open`: any access key passes. Else the reader has to bring one, and no answer is shown.
pub fn show(url: &str, is_open: bool, out: &mut Output) -> Result<()> {
    let client = is_open.then(|| Client::new(url, None)).transpose()?;
    let client = client.as_ref();
    out.line("")?;
    out.line("Leave it running, and paste this into another terminal.")?;

    comment("The AWS command line: the albums of one execution", out)?;
    let key = if is_open { ["demo", "demo"] } else { ["YOUR_ID", "YOUR_SECRET"] };
    out.line(out.bold(&format!(
        "export AWS_ACCESS_KEY_ID={} AWS_SECRET_ACCESS_KEY={} AWS_DEFAULT_REGION=us-east-1",
        key[0], key[1]
    )))?;
    let values = json!({ ":pk": { "S": "exec-003" }, ":sk": { "S": "album-" } });
    let condition = "pk = :pk AND begins_with(sk, :sk)";
    command(
        &format!(
            "aws dynamodb query --endpoint-url {url} --table-name {TABLE} \\\n  \
             --key-condition-expression '{condition}' \\\n  \
             --expression-attribute-values '{values}' \\\n  \
             --query 'Items[].[sk.S,albumName.S,priceEstimate.N]' --output text"
        ),
        out,
    )?;
    if let Some(client) = client {
        let request = json!({
            "TableName": TABLE,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
        });
        let answer = client.call("Query", &request)?;
        for item in answer["Items"].as_array().into_iter().flatten() {
            let cell =
                |name: &str, kind: &str| item[name][kind].as_str().unwrap_or("None").to_owned();
            let line = [cell("sk", "S"), cell("albumName", "S"), cell("priceEstimate", "N")];
            out.line(line.join("\t"))?;
        }
    }

    comment("Plain HTTP: how many tasks wait for a person, of either kind of workflow", out)?;
    // Text, because a person reads it: what is asked of which table comes first.
    let body = format!(
        r##"{{"TableName":"{TABLE}", "IndexName":"GSI3", "Select":"COUNT",
       "KeyConditionExpression":"entityType = :type AND #status = :status",
       "ExpressionAttributeNames":{{"#status":"status"}},
       "ExpressionAttributeValues":{{":type":{{"S":"task"}}, ":status":{{"S":"pending"}}}}}}"##
    );
    let signed = match is_open {
        true => "",
        false => {
            " \\\n  --aws-sigv4 aws:amz:us-east-1:dynamodb \
             --user \"$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY\""
        }
    };
    command(
        &format!(
            "curl -s {url} -H 'X-Amz-Target: DynamoDB_20120810.Query' \\\n  \
             -H 'Content-Type: application/x-amz-json-1.0'{signed} \\\n  -d '{body}'"
        ),
        out,
    )?;
    if let Some(client) = client {
        out.line(client.call_raw("Query", body)?)?;
    }

    comment(
        "This program: the runs of one day that are under way, by an index on four attributes",
        out,
    )?;
    command(
        &format!(
            "{} query {url} {TABLE} --index GSI1 \\\n  \
             --pk step-functions --pk execution --sk running --prefix 2025-01-16",
            program()
        ),
        out,
    )?;
    if is_open {
        let words = ["step-functions", "execution"].map(str::to_owned);
        let query = Query {
            place: PathBuf::from(url),
            first: Some(TABLE.into()),
            index: Some("GSI1".to_owned()),
            pk: words.to_vec(),
            sk: vec!["running".to_owned()],
            prefix: Some("2025-01-16".into()),
            ..Query::default()
        };
        commands::query_table(&query, out)?;
    }
    Ok(())
}

/// `is_open`: no password is asked for. Else the reader has to bring it.
pub fn show_redis(
    url: &str,
    is_open: bool,
    questions: &[Question],
    out: &mut Output,
) -> Result<()> {
    let password = if is_open { "" } else { " --askpass" };
    for Question { about, command: words, answer } in questions {
        comment(about, out)?;
        command(&format!("redis-cli -u {url}{password} {words}"), out)?;
        out.line(answer)?;
    }
    Ok(())
}

/// `console` is where it is served, and whether to anybody; `learner` is who to look at first.
pub fn show_school(
    console: Option<(&str, bool)>,
    school: &DemoSchool,
    filled: &FillReport,
    learner: Option<&SampleLearner>,
    out: &mut Output,
) -> Result<()> {
    let (learners, classes) = school.size();
    let what = format!("a school of {learners} learners in {classes} classes");
    out.line("")?;
    out.line(match filled.events {
        0 => format!("{what} goes on learning"),
        events => format!(
            "{what} is filled: {} in {:.1} s; it goes on learning",
            counted(events, "event", "events"),
            filled.took.as_secs_f64()
        ),
    })?;
    let (Some((url, is_open)), Some(learner)) = (console, learner) else { return Ok(()) };
    let token = if is_open { "" } else { "; any user name, the token as password" };
    let name = &learner.name;
    comment(&format!("In a browser: {name}, who struggles, and the class{token}"), out)?;
    command(&format!("{url}/learn/learners/{}", learner.student_id), out)?;
    command(&format!("{url}/learn/classes/{}/{}", School::ID, learner.class_id), out)?;
    comment("REST: the same learner's mastery a moment ago", out)?;
    let bearer = if is_open { "" } else { " -H 'Authorization: Bearer YOUR_TOKEN'" };
    command(&format!("curl -s{bearer} {url}/api/v1/students/{}/mastery", learner.student_id), out)?;
    match learner.mastery.as_ref().filter(|_| is_open) {
        Some(mastery) => Ok(out.line(mastery)?),
        None => Ok(()),
    }
}

fn comment(text: &str, out: &mut Output) -> Result<()> {
    out.line("")?;
    out.line(out.faint(&format!("# {text}")))?;
    Ok(())
}

fn command(text: &str, out: &mut Output) -> Result<()> {
    out.line(out.bold(text))?;
    Ok(())
}

/// How this program is called from here: by its name if that finds it, else by its path.
fn program() -> String {
    let Ok(me) = std::env::current_exe() else { return "kstone".to_owned() };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_me = |dir: &Path| dir.join("kstone").canonicalize().is_ok_and(|found| found == me);
    if std::env::split_paths(&path).any(|dir| is_me(&dir)) {
        return "kstone".to_owned();
    }
    let here = std::env::current_dir().and_then(|dir| dir.canonicalize()).unwrap_or_default();
    let shown = match me.strip_prefix(&here) {
        Ok(below) => Path::new(".").join(below),
        Err(_) => me,
    };
    shown.display().to_string()
}
