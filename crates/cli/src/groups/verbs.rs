//! The client of an Entity Manager: `create`, `list`, `show`, `query`, `update` and `delete`.

use std::io::Write;

use comfy_table::{Table, presets};
use lowmesh_wire::coap::{Code, ContentFormat};
use lowmesh_wire::link_format::links;
use serde_json::{Value, json};

use super::access::{self, Question, strange, text};
use super::fields::{Fields, communications};
use super::members::{Entity, members, parts, profile, table};
use super::outcome::Outcome;
use crate::body::format;
use crate::failure::Failure;
use crate::template::decoded;

/// Make an entity of resources; the Entity Manager first checks each of them
#[derive(Debug, clap::Args)]
pub struct Create {
    /// Name of the entity: up to 32 letters, digits, - and _
    name: String,
    /// Members: URIs of resources, or /e/NAME for another entity; NAME=URI gives one a name in results
    #[arg(value_name = "MEMBER", required = true)]
    members: Vec<String>,
    /// How the Entity Manager reaches members: one by one, or with one request to a group that they join
    #[arg(long, value_name = "KIND", value_parser = communications())]
    ect: Option<String>,
    /// Take members in that do not answer the check
    #[arg(long)]
    allow_missing: bool,
    /// Scope of the address of the group: 3 to 5, or e (global)
    #[arg(long, value_name = "SCOPE", value_parser = ["3", "4", "5", "e"])]
    scope: Option<String>,
    #[command(flatten)]
    fields: Fields,
    #[command(flatten)]
    access: access::Args,
}

/// List the entities of an Entity Manager
#[derive(Debug, clap::Args)]
pub struct List {
    #[command(flatten)]
    access: access::Args,
}

/// Show the profile of an entity, and the state of each member
#[derive(Debug, clap::Args)]
pub struct Show {
    /// Name of the entity
    name: String,
    #[command(flatten)]
    access: access::Args,
}

/// Read or write all members of an entity: prints a line for each; exit code 7 if some failed
#[derive(Debug, clap::Args)]
pub struct Query {
    /// Name of the entity
    name: String,
    /// Use only these members: names or URIs (repeatable)
    #[arg(long = "only", value_name = "MEMBER")]
    only: Vec<String>,
    /// Write to all members with PUT; %XX is one octet
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["post", "only"])]
    put: Option<String>,
    /// Send to all members with POST; %XX is one octet
    #[arg(long, value_name = "TEXT", conflicts_with = "only")]
    post: Option<String>,
    /// Format of the payload: a number, a media type, or a name such as json
    #[arg(short = 't', long, value_name = "FORMAT", value_parser = format)]
    content_format: Option<ContentFormat>,
    #[command(flatten)]
    fields: Fields,
    #[command(flatten)]
    access: access::Args,
}

/// Change the profile of an entity, or its members
#[derive(Debug, clap::Args)]
pub struct Update {
    /// Name of the entity
    name: String,
    /// Member to add: URI, or NAME=URI (repeatable)
    #[arg(long, value_name = "MEMBER")]
    add: Vec<String>,
    /// Member to remove: its name or URI (repeatable)
    #[arg(long, value_name = "MEMBER")]
    remove: Vec<String>,
    /// Take members in that do not answer the check
    #[arg(long)]
    allow_missing: bool,
    #[command(flatten)]
    fields: Fields,
    #[command(flatten)]
    access: access::Args,
}

/// Delete an entity; its members leave its group
#[derive(Debug, clap::Args)]
pub struct Delete {
    /// Name of the entity
    name: String,
    #[command(flatten)]
    access: access::Args,
}

/// Makes an entity, and shows it.
pub fn create(args: &Create, out: &mut impl Write) -> Result<(), Failure> {
    let mut document = args.fields.document();
    document.insert("name".to_owned(), json!(args.name));
    document.insert("er".to_owned(), json!(args.members));
    if args.allow_missing {
        document.insert("missing".to_owned(), json!("allow"));
    }
    let fixed = [("ect", &args.ect), ("scope", &args.scope)];
    for (key, value) in fixed.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?))) {
        document.insert(key.to_owned(), json!(value));
    }
    let entity = args.access.talk(async |manager| {
        manager.ask(&[], Question::json(Code::POST, &document.into())).await?;
        Ok(Entity::ask(manager, &args.name).await?.without_health())
    })?;
    entity.show(args.access.json, out)
}

/// Lists all entities.
pub fn list(args: &List, out: &mut impl Write) -> Result<(), Failure> {
    let document =
        args.access.talk(async |manager| manager.text(&[], ContentFormat::LINK_FORMAT).await)?;
    let mut entities = Vec::new();
    for link in links(&document) {
        let link = link.map_err(|error| strange(&error.to_string()))?;
        if link.attribute("rt").is_some_and(|rt| rt == "core.entity") {
            let name = link.target.rsplit('/').next().unwrap_or_default().to_owned();
            entities.push((name, link.attribute("group").map(|group| group.to_string())));
        }
    }
    if args.access.json {
        let entity =
            |(name, group): &(String, Option<String>)| json!({"name": name, "group": group});
        let all: Vec<Value> = entities.iter().map(entity).collect();
        writeln!(out, "{}", json!({"schema": 1, "entities": all}))?;
        return Ok(());
    }
    let mut rows = Table::new();
    rows.load_style(presets::NOTHING).set_header(["entity", "group"]);
    for (name, group) in &entities {
        rows.add_row([name, group.as_deref().unwrap_or("-")]);
    }
    for line in rows.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Shows one entity.
pub fn show(args: &Show, out: &mut impl Write) -> Result<(), Failure> {
    let entity = args.access.talk(async |manager| Entity::ask(manager, &args.name).await)?;
    entity.show(args.access.json, out)
}

/// Asks all members of an entity.
pub fn query(args: &Query, out: &mut impl Write) -> Result<(), Failure> {
    let mut arguments = args.fields.query();
    arguments.extend(args.only.iter().map(|member| format!("er={member}")));
    let (method, payload) = match (&args.put, &args.post) {
        (Some(text), _) => (Code::PUT, decoded("--put ", text)?),
        (None, Some(text)) => (Code::POST, decoded("--post ", text)?),
        (None, None) => (Code::GET, Vec::new()),
    };
    let (accept, format) = (Some(ContentFormat::SENML_JSON), args.content_format);
    let question = Question { method, query: arguments, accept, format, payload };
    let outcome = args
        .access
        .talk(async |manager| Outcome::read(&manager.ask(&[&args.name], question).await?))?;
    outcome.show(&args.name, args.access.json, out)
}

/// Changes an entity, and shows it.
pub fn update(args: &Update, out: &mut impl Write) -> Result<(), Failure> {
    let entity = args.access.talk(async |manager| {
        let mut document = args.fields.document();
        if !args.add.is_empty() || !args.remove.is_empty() {
            let now = profile(manager, &args.name).await?;
            document.insert("er".to_owned(), json!(changed(args, &now)?));
        }
        if args.allow_missing {
            document.insert("missing".to_owned(), json!("allow"));
        }
        let question = Question::json(Code::IPATCH, &document.into());
        manager.ask(&[&args.name, "profile"], question).await?;
        Ok(Entity::ask(manager, &args.name).await?.without_health())
    })?;
    entity.show(args.access.json, out)
}

/// The members after the change.
fn changed(
    args: &Update,
    profile: &serde_json::Map<String, Value>,
) -> Result<Vec<String>, Failure> {
    let now = profile.get("er").and_then(Value::as_array).ok_or_else(|| strange("no member"))?;
    let mut all: Vec<String> = now.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    for member in &args.remove {
        let is_it = |one: &String| {
            let (name, uri) = parts(one);
            one == member || uri == member || name == Some(member)
        };
        let place = all.iter().position(is_it).ok_or_else(|| {
            let hint = format!("`lowmesh groups show {}` lists the members", args.name);
            Failure::usage(format!("{member} is not a member of {}", args.name), &hint)
        })?;
        all.remove(place);
    }
    all.extend(args.add.iter().cloned());
    Ok(all)
}

/// Deletes an entity; a member that has not left yet is a failure.
pub fn delete(args: &Delete, out: &mut impl Write) -> Result<(), Failure> {
    let standing = args.access.talk(async |manager| {
        text(&manager.ask(&[&args.name], Question::new(Code::DELETE)).await?)
    })?;
    let members = members(&standing);
    if args.access.json {
        let member = |(name, state): &(String, String)| json!({"name": name, "state": state});
        let all: Vec<Value> = members.iter().map(member).collect();
        writeln!(out, "{}", json!({"schema": 1, "entity": args.name, "members": all}))?;
    } else {
        table(&members, out)?;
    }
    match members.iter().filter(|(_, state)| state != "gone").count() {
        0 => Ok(()),
        failed => Err(Failure::Partial { failed, all: members.len() }),
    }
}
