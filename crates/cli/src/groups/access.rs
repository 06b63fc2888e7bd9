//! How the verbs of `lowmesh groups` reach the manager, and the error if it refuses.

use std::time::Duration as Span;

use lowmesh_group::params::{DEADLINE_MAX, ROOT};
use lowmesh_net::client::{Client, Response};
use lowmesh_units::Duration;
use lowmesh_wire::coap::{Class, Code, ContentFormat, Message};
use lowmesh_wire::problem_details::ProblemDetails;

use crate::answer;
use crate::channel;
use crate::duration;
use crate::failure::Failure;

/// Round-trip time that a request to the manager may take beyond the longest wait of the manager itself; ours.
const MARGIN: Span = Span::from_secs(10);

/// The manager, and how its answers are shown.
#[derive(Debug, clap::Args)]
#[group(id = "access")]
pub struct Args {
    /// Host or URI of the Entity Manager
    #[arg(short, long, value_name = "HOST|URI", default_value = "localhost")]
    manager: String,
    /// Time to wait for the Entity Manager; by default longer than it waits for members
    #[arg(short = 'B', long, value_name = "TIME", value_parser = duration::wait)]
    timeout: Option<Duration>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Show messages, options and timers on stderr
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    channel: channel::Args,
}

impl Args {
    /// Runs one conversation with the manager.
    pub fn talk<T>(
        &self,
        conversation: impl AsyncFnOnce(&Conversation<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let patience = self.timeout.map_or(Span::from(DEADLINE_MAX) + MARGIN, Span::from);
        channel::wait(async {
            let client = self.channel.client(patience, self.verbose)?;
            let result = conversation(&Conversation { args: self, client: &client }).await;
            client.close().await?;
            result
        })
    }
}

/// The manager, while it is asked.
pub struct Conversation<'a> {
    args: &'a Args,
    client: &'a Client,
}

impl Conversation<'_> {
    /// Asks a resource of the manager, by the segments of its path below that of all entities; the answer is 2.xx.
    pub async fn ask(&self, path: &[&str], question: Question) -> Result<Response, Failure> {
        let mut uri = channel::host_or_uri(&self.args.manager)?;
        uri.path.push(ROOT.to_owned());
        uri.path.extend(path.iter().map(|segment| (*segment).to_owned()));
        uri.query.extend(question.query);
        let target = self.args.channel.target(uri).await?;
        let mut request =
            self.client.request(question.method, &target.uri).payload(question.payload);
        if let Some(format) = question.format {
            request = request.format(format);
        }
        if let Some(accept) = question.accept {
            request = request.accept(accept);
        }
        let answer = request.await?;
        match answer.message.code.class() {
            Class::ClientError | Class::ServerError => Err(refused(&answer.message)),
            _ => Ok(answer),
        }
    }
    /// The text that the manager answers.
    pub async fn text(&self, path: &[&str], accept: ContentFormat) -> Result<String, Failure> {
        let question = Question { accept: Some(accept), ..Question::new(Code::GET) };
        let answer = self.ask(path, question).await?;
        text(&answer)
    }
}

/// A request to the manager.
pub struct Question {
    /// The method.
    pub method: Code,
    /// Arguments of the query.
    pub query: Vec<String>,
    /// The format of the answer.
    pub accept: Option<ContentFormat>,
    /// The format of the payload.
    pub format: Option<ContentFormat>,
    /// The payload.
    pub payload: Vec<u8>,
}

impl Question {
    /// A request without a payload.
    pub const fn new(method: Code) -> Self {
        Self { method, query: Vec::new(), accept: None, format: None, payload: Vec::new() }
    }
    /// A request with a document in JSON.
    pub fn json(method: Code, document: &serde_json::Value) -> Self {
        let (format, payload) = (Some(ContentFormat::JSON), document.to_string().into_bytes());
        Self { format, payload, ..Self::new(method) }
    }
}

/// The payload of an answer, as text.
pub fn text(answer: &Response) -> Result<String, Failure> {
    let text = std::str::from_utf8(answer.payload()).ok();
    let is_plain = |one: char| !one.is_control() || one == '\n';
    // Control characters of a peer do not reach a terminal.
    let text = text.filter(|text| text.chars().all(is_plain)).map(str::to_owned);
    text.ok_or_else(|| strange("it is not plain text"))
}

/// The failure of an answer that no manager sends.
pub fn strange(why: &str) -> Failure {
    Failure::Own {
        message: format!("the response does not come from an Entity Manager: {why}"),
        hint: Some(
            "`lowmesh groups serve` starts an Entity Manager; `lowmesh get` shows the response"
                .to_owned(),
        ),
    }
}

/// What a manager refuses, with a line for each member that it names.
fn refused(message: &Message) -> Failure {
    let details = ProblemDetails::parse(&message.payload).ok();
    let Some(ProblemDetails { title: Some(title), detail: Some(detail), .. }) = details else {
        return answer::refusal(message);
    };
    let head = format!("{} {title}", message.code);
    let message_text = if detail.contains("; ") {
        let lines = detail.split("; ").map(|line| format!("\n  {line}"));
        head + ":" + &lines.collect::<String>()
    } else {
        format!("{head}: {detail}")
    };
    let message_text =
        message_text.replace(|one: char| one.is_control() && one != '\n', "\u{fffd}");
    Failure::Refused { class: message.code.0 >> 5, message: message_text }
}

#[cfg(test)]
mod tests {
    use lowmesh_group::Refusal;
    use lowmesh_wire::coap::{Kind, MessageId};

    use super::*;

    fn said(detail: &str) -> String {
        let response = Refusal::new(Code::NOT_FOUND, "members not valid", detail).into_response();
        let mut message = Message::new(Kind::Acknowledgement, response.code, MessageId(1));
        message.payload = response.payload;
        let Failure::Refused { class: 4, message } = refused(&message) else { panic!("4.04") };
        message
    }

    #[test]
    fn a_refusal_has_a_line_for_each_member() {
        assert_eq!(said("er: no list"), "4.04 members not valid: er: no list");
        let lines = "4.04 members not valid:\n  a/t: 4.04 Not Found\n  b/t: valid, ct 0";
        assert_eq!(said("a/t: 4.04 Not Found; b/t: valid, ct 0"), lines);
    }
}
