//! The random of a `ClientHello`, by which key logs name sessions.

use crate::quic;

/// Behind the header of a record (RFC 8446 5.1, RFC 9147 4).
const TLS_HANDSHAKE_AT: usize = 5;
const DTLS_HANDSHAKE_AT: usize = 13;
/// Behind the header of the message and the version (RFC 8446 4, RFC 9147 5.2).
const TLS_RANDOM_AT: usize = 4 + 2;
const DTLS_RANDOM_AT: usize = 12 + 2;
/// `ContentType` and `HandshakeType`.
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;

/// The random of the `ClientHello` at the beginning of a packet's payload: of TLS, of DTLS, or in
/// the Initial packets of a QUIC datagram that begins a connection. A hello whose first 38 bytes
/// lie in several packets is not put together.
pub fn client_random(payload: &[u8]) -> Option<[u8; 32]> {
    match *payload.first_chunk()? {
        [HANDSHAKE, 3] => of_message(payload.get(TLS_HANDSHAKE_AT..)?, TLS_RANDOM_AT),
        [HANDSHAKE, 0xfe] => of_message(payload.get(DTLS_HANDSHAKE_AT..)?, DTLS_RANDOM_AT),
        _ => of_message(&quic::client_stream(payload)?, TLS_RANDOM_AT),
    }
}

fn of_message(message: &[u8], random_at: usize) -> Option<[u8; 32]> {
    if message.first() != Some(&CLIENT_HELLO) {
        return None;
    }
    message.get(random_at..)?.first_chunk().copied()
}
