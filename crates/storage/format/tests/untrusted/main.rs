//! What the fuzz targets of this crate start from (`fuzz/seeds`), whole, cut everywhere and with
//! bytes changed: nothing panics, and what is right is read.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "../../../../../fuzz/src/made.rs"]
mod made;
#[path = "../../../../../fuzz/src/replay.rs"]
mod replay;
mod samples;
#[path = "../../../../../fuzz/src/stored.rs"]
#[expect(unreachable_pub, reason = "it is the library of the fuzz targets, too")]
mod stored;

use format::head::VolumeId;
use made::made;
use replay::replay;

/// A page without the zeros at its end, which the target puts there, nor what it puts right.
fn page(page: &[u8]) -> &[u8] {
    let end = page.iter().rposition(|byte| *byte != 0).unwrap_or_default();
    &page[..=end]
}

#[test]
fn forged_heads_are_refused_or_read_as_they_are() {
    for (name, head) in samples::heads() {
        // Behind the fields there are checksums, and the MAC.
        made("head_decode", name, page(&head.encode(&stored::KEY)[..3684]));
    }
    replay("head_decode", stored::head);
}

#[test]
fn forged_superblocks_are_refused_or_read_as_they_are() {
    for (name, superblock) in samples::superblocks() {
        made("superblock_decode", name, page(&superblock.encode(0)));
    }
    replay("superblock_decode", stored::superblock);
}

#[test]
fn forged_claims_are_refused_or_read_as_they_are() {
    for (name, claim) in samples::claims() {
        made("claim_decode", name, page(&claim.encode(&stored::KEY)));
    }
    replay("claim_decode", stored::claim);
}

#[test]
fn forged_rows_of_keys_are_refused_or_read_as_they_are() {
    for (name, row) in samples::key_rows() {
        made("key_row_decode", name, page(&row.encode(7, VolumeId([1; 16]), &stored::KEY)));
    }
    replay("key_row_decode", stored::key_row);
}

#[test]
fn blocks_of_pcapng_end_whatever_their_lengths_say() {
    for (name, blocks) in samples::blocks() {
        made("pcapng_blocks", name, &blocks);
    }
    replay("pcapng_blocks", stored::blocks);
}

#[test]
fn packets_of_a_forged_piece_lie_inside_of_it() {
    for (name, body) in samples::bodies() {
        made("piece_packets", name, &body);
    }
    replay("piece_packets", stored::piece);
}

#[test]
fn forged_parts_of_an_index_are_refused_or_joined() {
    for (name, parts) in samples::parts() {
        made("index_part", name, &parts);
    }
    replay("index_part", stored::index_parts);
}
