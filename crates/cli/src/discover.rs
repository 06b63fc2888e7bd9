//! `lowmesh discover`: the resources of a server, or of every server of a group (RFC 6690 s4; RFC 7252 s7 and s8).

use std::io::Write;

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use lowmesh_net::client::Response;
use lowmesh_net::peer::Peer;
use lowmesh_units::Duration;
use lowmesh_wire::coap::ContentFormat;
use lowmesh_wire::coap::uri::Uri;
use lowmesh_wire::link_format::{Filter, Link, links};

use crate::channel::{self, patience};
use crate::console;
use crate::duration;
use crate::failure::Failure;

/// Attributes with a column of their own, in its order: RFC 6690 s3, RFC 7252 s7.2.1, RFC 7641 s6.
const COLUMNS: [&str; 6] = ["rt", "if", "ct", "sz", "obs", "title"];

/// The command line of `discover`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Host, group, or URI; the default path is /.well-known/core
    #[arg(value_name = "HOST|URI")]
    target: String,
    /// Show only links that match, such as `rt=temperature` or `href=/sensors/*`
    #[arg(value_name = "NAME=VALUE", value_parser = filter)]
    filters: Vec<String>,
    /// Send a non-confirmable request (NON)
    #[arg(short = 'N', long)]
    non: bool,
    /// Time to wait for responses
    #[arg(short = 'B', long, value_name = "TIME", value_parser = duration::wait)]
    timeout: Option<Duration>,
    /// Print one JSON object for each server
    #[arg(long)]
    json: bool,
    /// Show timers on stderr
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    channel: channel::Args,
}

fn filter(text: &str) -> Result<String, String> {
    match Filter::parse(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err("a filter is an attribute and a value, as in rt=temperature".to_owned()),
    }
}

/// Asks, and lists what comes.
pub fn execute(args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let mut uri = channel::host_or_uri(&args.target)?;
    if uri.path.is_empty() {
        uri.path = [".well-known", "core"].map(str::to_owned).into();
    }
    uri.query.extend(args.filters.iter().cloned());
    let (group, documents) = channel::wait(channel::while_read(ask(args, uri)))?;
    let servers: Vec<(Peer, Vec<Link<'_>>)> = documents
        .iter()
        .map(|(from, document)| Ok((*from, read(*from, document)?)))
        .collect::<Result<_, Failure>>()?;
    for (from, links) in servers.iter().filter(|_| args.json) {
        writeln!(out, "{}", object(*from, links))?;
    }
    if !args.json {
        let rows = table(&servers, group, console::width());
        for line in rows.lines() {
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    Ok(())
}

/// Whether a group was asked, and the documents that came, each with who has sent it.
async fn ask(args: &Args, uri: Uri) -> Result<(bool, Vec<(Peer, String)>), Failure> {
    let client = args.channel.client(patience(args.timeout), args.verbose)?;
    let target = args.channel.target(uri).await?;
    let mut request = client.get(&target.uri).accept(ContentFormat::LINK_FORMAT);
    if args.non {
        request = request.non_confirmable();
    }
    let documents = if target.group {
        request
            .gather(args.channel.group_patience(args.timeout))
            .await
            .map_err(Failure::from)
            .and_then(members)
    } else {
        let answer = request.await.and_then(Response::ok).map_err(Failure::from);
        answer.and_then(|answer| Ok(vec![(answer.from, text(&answer)?)]))
    };
    client.close().await?;
    Ok((target.group, documents?))
}

/// The documents of a group: an error of one member does not affect the others.
fn members(answers: Vec<Response>) -> Result<Vec<(Peer, String)>, Failure> {
    let (mut documents, mut refusal) = (Vec::new(), None);
    for answer in answers {
        let from = answer.from;
        match answer.ok().map_err(Failure::from).and_then(|answer| text(&answer)) {
            Ok(document) => documents.push((from, document)),
            Err(failure) => refusal = Some(failure),
        }
    }
    if documents.is_empty() {
        return Err(refusal.unwrap_or_else(Failure::no_member));
    }
    Ok(documents)
}

fn text(answer: &Response) -> Result<String, Failure> {
    let document = std::str::from_utf8(answer.payload());
    document.map(str::to_owned).map_err(|_| no_links(answer.from, "it is not UTF-8"))
}

fn read(from: Peer, document: &str) -> Result<Vec<Link<'_>>, Failure> {
    links(document).collect::<Result<_, _>>().map_err(|error| no_links(from, &error.to_string()))
}

fn no_links(from: Peer, why: &str) -> Failure {
    Failure::Own {
        message: format!("the response of {from} is not a list of links: {why}"),
        hint: Some("`lowmesh get` shows the response unchanged".to_owned()),
    }
}

/// A row a link, with its server if a group was asked, in lines of at most `width` columns.
fn table(servers: &[(Peer, Vec<Link<'_>>)], group: bool, width: usize) -> Table {
    let all = || servers.iter().flat_map(|(_, links)| links);
    let used = |name: &&str| all().any(|link| link.attribute(name).is_some());
    let columns: Vec<&str> = COLUMNS.into_iter().filter(used).collect();
    let mut table = Table::new();
    let head = group.then_some("server").into_iter().chain(["resource"]);
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width.try_into().unwrap_or(u16::MAX))
        .set_header(head.chain(columns.iter().copied()));
    for (from, links) in servers {
        for link in links {
            let server = group.then(|| from.to_string()).into_iter();
            let cells = columns.iter().map(|name| cell(link, name));
            table.add_row(server.chain([shown(link.target)]).chain(cells));
        }
    }
    keep_names_whole(&mut table, 1 + usize::from(group), width);
    table
}

/// The first `names` columns, servers and resources, are not broken over lines if they leave half of the width.
fn keep_names_whole(table: &mut Table, names: usize, width: usize) {
    let columns = table.column_max_content_widths();
    let taken: usize = columns.iter().take(names).map(|&columns| usize::from(columns)).sum();
    if 2 * taken <= width {
        for column in table.column_iter_mut().take(names) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
}

fn cell(link: &Link<'_>, name: &str) -> String {
    match link.attribute(name) {
        None => String::new(),
        Some(formats) if name == "ct" => {
            formats.split_whitespace().map(format_name).collect::<Vec<_>>().join(", ")
        }
        Some(value) if value.is_empty() => "yes".to_owned(),
        Some(value) => shown(&value),
    }
}

fn format_name(number: &str) -> String {
    let known = number.parse().ok().and_then(|number| ContentFormat(number).name());
    let name = known.map_or_else(|| shown(number), str::to_owned);
    // The one charset there is says nothing.
    name.trim_end_matches(";charset=utf-8").to_owned()
}

/// Control characters of a peer do not reach a terminal.
fn shown(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

fn object(from: Peer, links: &[Link<'_>]) -> serde_json::Value {
    let link = |link: &Link<'_>| {
        let mut attributes = serde_json::Map::new();
        for attribute in link.attributes() {
            let value = attribute.value().map_or(true.into(), |value| value.into_owned().into());
            // RFC 6690 s3: the first of a name counts.
            attributes.entry(attribute.name).or_insert(value);
        }
        serde_json::json!({"href": link.target, "attributes": attributes})
    };
    serde_json::json!({
        "schema": 1,
        "from": from.address.to_string(),
        "links": links.iter().map(link).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"</a>;rt="t";ct="0 50",</b>;obs;rt="u",<coap://x/c>"#;

    fn servers(count: u16) -> Vec<(Peer, Vec<Link<'static>>)> {
        let peer = |port| Peer::new(([192, 0, 2, 1], port).into(), None);
        (1..=count).map(|port| (peer(port), read(peer(port), DOCUMENT).expect("links"))).collect()
    }

    fn lines(servers: &[(Peer, Vec<Link<'_>>)], group: bool) -> Vec<String> {
        let words = |line: String| line.split_whitespace().collect::<Vec<_>>().join(" ");
        table(servers, group, 80).lines().map(words).collect()
    }

    #[test]
    fn a_table_has_the_columns_that_some_link_fills() {
        let expected =
            ["resource rt ct obs", "/a t text/plain, application/json", "/b u yes", "coap://x/c"];
        assert_eq!(lines(&servers(1), false), expected);
    }

    #[test]
    fn links_of_the_members_of_a_group_have_their_server_however_many_there_are() {
        assert!(lines(&servers(1), true)[1].starts_with("192.0.2.1:1 /a"));
        let lines = lines(&servers(2), true);
        assert_eq!(lines.len(), 7);
        assert!(lines[4].starts_with("192.0.2.1:2 /a"), "{lines:?}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let document = "</multi-format>;rt=\"temperature-c\";if=\"sensor\";ct=\"0 41 50 60\";sz=2000;obs;\
            title=\"All that the sensor has measured since midnight\",</b>";
        let servers = [(servers(1)[0].0, read(servers(1)[0].0, document).expect("links"))];
        for (width, group) in [(80, false), (80, true), (120, false)] {
            let table = table(&servers, group, width);
            let lines: Vec<String> = table.lines().collect();
            assert!(lines.iter().all(|line| line.trim_end().chars().count() <= width), "{lines:?}");
            assert!(lines[1].contains("/multi-format"), "{lines:?}");
        }
    }

    #[test]
    fn a_program_gets_every_attribute_by_its_name() {
        let [(from, links)] = &servers(1)[..] else { panic!("one") };
        let object = object(*from, links);
        assert_eq!(object["from"], "192.0.2.1:1");
        assert_eq!(
            object["links"][1],
            serde_json::json!({
                "href": "/b", "attributes": {"obs": true, "rt": "u"}
            })
        );
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(shown("/a\u{1b}[2J"), "/a\u{fffd}[2J");
    }
}
