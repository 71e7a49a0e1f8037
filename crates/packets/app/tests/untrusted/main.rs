//! What the fuzz targets of payloads start from (`fuzz/seeds`), whole, cut everywhere and with
//! bytes changed: nothing panics, and something is found.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "../../../../../fuzz/src/made.rs"]
mod made;
#[path = "../../../../../fuzz/src/payloads.rs"]
#[expect(unreachable_pub, reason = "it is the library of the fuzz targets, too")]
mod payloads;
#[path = "../../../../../fuzz/src/replay.rs"]
mod replay;
mod samples;

use made::made;
use replay::replay;

/// A payload of an input, as the targets take it.
fn payload(is_resp: bool, bytes: &[u8]) -> Vec<u8> {
    [&[u8::from(is_resp)], &u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

fn input(payloads: &[(bool, Vec<u8>)]) -> Vec<u8> {
    payloads.iter().flat_map(|(is_resp, bytes)| payload(*is_resp, bytes)).collect()
}

/// The same for targets that take any session.
fn session(proto: u8, port: u16, payloads: &[(bool, Vec<u8>)]) -> Vec<u8> {
    [&[proto, 0x9c, 0x40], &port.to_be_bytes()[..], &input(payloads)].concat()
}

#[test]
fn payloads_at_the_port_of_a_protocol_may_say_anything() {
    for (target, ..) in payloads::SESSIONS {
        for (name, session) in samples::of(target) {
            made(target, name, &input(&session));
        }
        replay(target, |input| payloads::one(target, input));
    }
}

#[test]
fn payloads_of_any_session_may_say_anything() {
    for (target, proto, (_, port)) in payloads::SESSIONS.into_iter().step_by(3) {
        let (name, payloads) = samples::of(target).remove(0);
        let proto = u8::from(proto == wire::Protocol::TCP);
        made("app_payload", name, &session(proto, port, &payloads));
        made("app_signature", name, &session(proto, 40_000, &payloads));
    }
    for (name, proto, port, payloads) in samples::foreign() {
        made("app_signature", name, &session(proto, port, &payloads));
    }
    replay("app_payload", payloads::any);
    replay("app_signature", payloads::signature);
}

#[test]
fn frames_of_quic_may_say_anything() {
    for (name, packets) in samples::quic() {
        made("app_quic", name, &input(&packets));
    }
    replay("app_quic", payloads::quic);
}
