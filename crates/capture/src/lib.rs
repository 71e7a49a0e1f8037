//! Packets in: capture files, standard input, AF_PACKET rings.
