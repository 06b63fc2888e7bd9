//! The fields of a profile as flags, for a document (JSON) and for a query.

use lowmesh_group::profile::{Communication, MessageType, Operation};
use lowmesh_units::Duration;
use serde_json::{Map, Value};

use crate::duration;

/// Fields that a profile has, and that a query can replace.
#[derive(Debug, clap::Args)]
#[group(id = "fields")]
pub struct Fields {
    /// Operation on the responses; further operations of a profile follow after commas
    #[arg(long, value_name = "OPERATIONS", value_delimiter = ',', value_parser = operations())]
    eo: Vec<String>,
    /// Number of responses that suffice, or all
    #[arg(long, value_name = "NUMBER", value_parser = replies)]
    enr: Option<String>,
    /// Type of the messages to members
    #[arg(long, value_name = "TYPE", value_parser = message_types())]
    emt: Option<String>,
    /// Time between the requests to two members, up to 60s
    #[arg(long, value_name = "TIME")]
    delay: Option<Duration>,
    /// Time limit of a query, up to 247s; a member that has not answered by then has failed
    #[arg(long, value_name = "TIME", value_parser = duration::positive)]
    deadline: Option<Duration>,
}

fn operations() -> [&'static str; 4] {
    [Operation::List, Operation::Average, Operation::Minimum, Operation::Maximum]
        .map(Operation::name)
}

fn message_types() -> [&'static str; 2] {
    [MessageType::Confirmable, MessageType::NonConfirmable].map(MessageType::name)
}

/// The values of `--ect`.
pub fn communications() -> [&'static str; 2] {
    [Communication::Unicast, Communication::Multicast].map(Communication::name)
}

fn replies(text: &str) -> Result<String, String> {
    match text.parse::<u16>() {
        Ok(1..) => Ok(text.to_owned()),
        _ if text == "all" => Ok(text.to_owned()),
        _ => Err("give a number of at least 1, or all".to_owned()),
    }
}

impl Fields {
    /// Each field that is given, with its value as a profile has it.
    fn given(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let eo = (!self.eo.is_empty()).then(|| ("eo", Value::from(self.eo.clone())));
        let enr = self.enr.as_ref().map(|enr| ("enr", Value::from(enr.as_str())));
        let emt = self.emt.as_ref().map(|emt| ("emt", Value::from(emt.as_str())));
        let delay = self.delay.map(|delay| ("delay", Value::from(delay.as_millis())));
        let deadline = self.deadline.map(|one| ("deadline", Value::from(one.as_millis())));
        [eo, enr, emt, delay, deadline].into_iter().flatten()
    }
    /// The fields as a document begins.
    pub fn document(&self) -> Map<String, Value> {
        self.given().map(|(key, value)| (key.to_owned(), value)).collect()
    }
    /// The fields as arguments of a query.
    pub fn query(&self) -> Vec<String> {
        let argument = |(key, value): (&str, Value)| match value {
            Value::String(text) => format!("{key}={text}"),
            Value::Array(texts) => {
                let texts: Vec<&str> = texts.iter().filter_map(Value::as_str).collect();
                format!("{key}={}", texts.join(","))
            }
            other => format!("{key}={other}"),
        };
        self.given().map(argument).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        fields: Fields,
    }

    fn fields(words: &[&str]) -> Result<Fields, clap::Error> {
        Line::try_parse_from([&["groups"], words].concat()).map(|line| line.fields)
    }

    #[test]
    fn flags_become_fields_of_a_document_and_arguments_of_a_query() {
        let given = [
            "--eo",
            "avg,max",
            "--enr",
            "2",
            "--emt",
            "non",
            "--delay",
            "0.1s",
            "--deadline",
            "5s",
        ];
        let fields = fields(&given).expect("possible values");
        let document = r#"{"deadline":5000,"delay":100,"emt":"non","enr":"2","eo":["avg","max"]}"#;
        assert_eq!(Value::from(fields.document()).to_string(), document);
        assert_eq!(
            fields.query(),
            ["eo=avg,max", "enr=2", "emt=non", "delay=100", "deadline=5000"]
        );
    }

    #[test]
    fn a_value_that_no_profile_has_is_refused_with_those_that_there_are() {
        for (words, says) in [
            (["--eo", "mean"], "lst, avg, min, max"),
            (["--enr", "0"], "at least 1"),
            (["--emt", "ack"], "con, non"),
        ] {
            let error = fields(&words).expect_err("refused").to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
