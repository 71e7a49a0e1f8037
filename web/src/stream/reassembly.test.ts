import { describe, expect, it } from "vitest";
import { follow } from "./reassembly";
import type { Segment } from "./segment";

const encoder = new TextEncoder();
let packet = 0;

function segment(text: string, sequence: number | null, changes: Partial<Segment> = {}): Segment {
  const payload = encoder.encode(text);
  packet += 1;
  return {
    packet,
    isFromOriginator: true,
    sequence,
    isSyn: false,
    isFin: false,
    isReset: false,
    payload,
    length: payload.length,
    ...changes,
  };
}

/** The stream as text: missing bytes as [n], and a sign for the direction. */
function shown(segments: Segment[]): string {
  const decoder = new TextDecoder();
  return follow(segments)
    .chunks.map((chunk) => {
      const sign = chunk.isFromOriginator ? ">" : "<";
      return sign + (chunk.missing > 0 ? `[${chunk.missing}]` : decoder.decode(chunk.bytes));
    })
    .join(" ");
}

describe("TCP", () => {
  it("puts segments in order", () => {
    expect(shown([segment("ab", 100), segment("ef", 104), segment("cd", 102)])).toBe(">abcdef");
  });

  it("counts bytes once that came twice or overlap", () => {
    expect(shown([segment("abc", 100), segment("abc", 100), segment("cde", 102)])).toBe(">abcde");
    expect(shown([segment("abcd", 100), segment("bc", 101), segment("ef", 104)])).toBe(">abcdef");
  });

  it("goes on where sequence numbers wrap", () => {
    const syn = segment("", 0xfffffffd, { isSyn: true });
    expect(shown([syn, segment("ab", 0xfffffffe), segment("cd", 0)])).toBe(">abcd");
  });

  it("says where bytes are missing", () => {
    expect(shown([segment("ab", 100), segment("ef", 110)])).toBe(">ab >[8] >ef");
    const syn = segment("", 99, { isSyn: true });
    expect(shown([syn, segment("cd", 102)])).toBe(">[2] >cd");
  });

  it("says what the capture cut from a segment", () => {
    expect(shown([segment("ab", 100, { length: 5 }), segment("f", 105)])).toBe(">ab >[3] >f");
    expect(shown([segment("ab", 100, { length: 5 })])).toBe(">ab >[3]");
  });

  it("fills a cut from a repeated segment", () => {
    expect(shown([segment("ab", 100, { length: 4 }), segment("abcd", 100)])).toBe(">abcd");
  });

  it("begins with the earliest segment where no SYN was seen", () => {
    expect(shown([segment("cd", 102), segment("ab", 100)])).toBe(">abcd");
  });

  it("keeps both ways apart, in the order of packets", () => {
    const back = { isFromOriginator: false };
    expect(
      shown([segment("ask", 1), segment("answer", 900, back), segment("next", 4)]),
    ).toBe(">ask <answer >next");
  });

  it("ends with a FIN, whose own number is no byte", () => {
    const fin = segment("", 102, { isFin: true });
    expect(shown([segment("ab", 100), fin, segment("", 103)])).toBe(">ab");
    const late = segment("", 105, { isFin: true });
    expect(shown([segment("ab", 100), late, segment("", 106)])).toBe(">ab >[3]");
  });

  it("says that the end is missing where later numbers were seen", () => {
    expect(shown([segment("ab", 100), segment("", 109)])).toBe(">ab >[7]");
  });

  it("ignores resets, whose numbers may be any", () => {
    const reset = segment("go away", 5000, { isReset: true });
    expect(shown([segment("ab", 100), reset])).toBe(">ab");
  });

  it("ignores a keep-alive byte that lies before the stream", () => {
    const syn = segment("", 99, { isSyn: true });
    expect(shown([syn, segment("ab", 100), segment("b", 101)])).toBe(">ab");
  });
});

describe("UDP", () => {
  it("keeps the order in which datagrams came, and says what was cut", () => {
    const cut = segment("bb", null, { length: 10 });
    expect(shown([segment("aa", null), cut])).toBe(">aabb >[8]");
  });

  it("of nothing is nothing", () => {
    expect(follow([]).chunks).toEqual([]);
  });
});
