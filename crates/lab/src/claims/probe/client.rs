//! What a CoAP client sends to a server that never answers.

use lowmesh_coap::exchange::{Input, Output};
use lowmesh_coap::{Config, CongestionControl, Endpoint, RequestTemplate};
use lowmesh_machine::{Handle, Machine as _};
use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};

use super::{Values, values};

/// Copies of one request, and the factors from one wait to the next.
pub fn probe(timer: &str) -> Result<Values, String> {
    let congestion = CongestionControl::new(timer).map_err(|error| error.to_string())?;
    let config = Config { congestion, ..Config::default() };
    let rng = Rng::stream(Seed(1), NodeId(1), Purpose::Coap);
    let mut client = Endpoint::new(config, rng).map_err(|error| error.to_string())?;
    let mut now = Instant::ZERO;
    let message = RequestTemplate::get("/silent");
    let request = Input::Request { peer: 1_u8, message, handle: Handle(1).into() };
    client.handle(now, request).map_err(|error| format!("{error:?}"))?;
    let (mut sent, mut failed_at) = (Vec::new(), None);
    while failed_at.is_none() {
        while let Some(output) = client.poll_output() {
            match output {
                Output::Send { .. } => sent.push(now),
                Output::Failed { .. } => failed_at = Some(now),
                _ => {}
            }
        }
        if failed_at.is_none() {
            now = client.next_deadline().ok_or("the client forgot its request")?;
            client.handle(now, Input::Deadline).map_err(|error| format!("{error:?}"))?;
        }
    }
    let ends: Vec<Instant> = sent.iter().copied().chain(failed_at).collect();
    let waits: Vec<f64> = ends.windows(2).map(|two| two[1].since(two[0]).as_secs_f64()).collect();
    let factors: Vec<f64> = waits.windows(2).map(|two| two[1] / two[0]).collect();
    let first = sent.first().copied().unwrap_or(Instant::ZERO);
    let after = |at: Option<&Instant>| at.map_or(f64::NAN, |at| at.since(first).as_secs_f64());
    let (first_wait, give_up) = (waits.first().copied().unwrap_or_default(), after(ends.last()));
    let low = factors.iter().copied().fold(f64::INFINITY, f64::min);
    let high = factors.iter().copied().fold(0.0, f64::max);
    Ok(values([
        ("retransmissions", sent.len() as f64 - 1.0),
        ("first_wait_s", first_wait),
        ("copy_1_s", after(sent.get(1))),
        ("copy_2_s", after(sent.get(2))),
        ("copy_3_s", after(sent.get(3))),
        ("give_up_s", give_up),
        ("give_up_per_wait", give_up / first_wait),
        ("backoff_min", low),
        ("backoff_max", high),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_by_the_rfc_sends_five_copies_and_doubles_its_waits() {
        let found = probe("default").expect("it is known");
        assert!((found["retransmissions"] - 4.0).abs() < 1e-9);
        assert!((2.0..=3.0).contains(&found["first_wait_s"]));
        assert!((found["backoff_min"] - 2.0).abs() < 1e-6 && found["backoff_max"] < 2.000_001);
    }
}
