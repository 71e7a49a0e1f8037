//! Any bytes may stand where blocks are expected: the walk ends, and every view of a block can be
//! read.
#![no_main]

use format::pcapng::{Blocks, ByteOrder};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let mut end = 0;
        for (offset, block) in Blocks::new(bytes, order).map_while(Result::ok) {
            assert_eq!(offset, end, "blocks lie one after the other");
            end = offset + block.body.len() + 12;
            let _contents = format!("{:?}", block.view());
            if let Ok(Some(converted)) = block.to_little_endian() {
                let mut again = Blocks::new(&converted, ByteOrder::Little);
                assert!(again.next().is_some_and(|block| block.is_ok()));
                assert!(again.next().is_none(), "one block becomes one block");
            }
        }
        assert!(end <= bytes.len());
    }
});
