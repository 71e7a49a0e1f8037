import { expect, test } from "vitest";
import { decodedFields, decodedLines, decodedTime, isOfTime, spansOf } from "./decoded";

const PSML = `<?xml version="1.0" encoding="utf-8"?>
<psml version="0" creator="wireshark/4.0.17">
<structure>
<section>No.</section>
<section>Time</section>
</structure>

<packet>
<section>1</section>
<section>1438145937.325196123</section>
<section>TCP</section>
<section>55123 &gt; 6667 [SYN] &amp;lt; &#x27;a&#39;</section>
</packet>
<packet>
<section>2</section>
<section>1438145938</section>
<section>DNS</section>
<section></section>
</packet>
</psml>`;

test("lines are read by number, and belong to packets of their time", () => {
  const lines = decodedLines(PSML);
  expect([...lines.keys()]).toEqual([1, 2]);
  expect(lines.get(1)?.info).toBe("55123 > 6667 [SYN] &lt; 'a'");
  const { time } = lines.get(1) ?? { time: NaN };
  expect(isOfTime(time, 1_438_145_937_325_196_123)).toBe(true);
  expect(isOfTime(time, 1_438_145_937_325_300_000)).toBe(false);
});

const PDML = `<packet>
  <proto name="geninfo" pos="0" showname="General information" size="4">
    <field name="timestamp" pos="0" show="Jul 29" showname="Captured Time" value="17.5" size="4"/>
  </proto>
  <proto name="ip" showname="Internet &lt;script&gt;" size="4" pos="0">
    <field name="ip.flags" showname="Flags" size="1" pos="1" show="2" value="2" unmaskedvalue="45">
      <field name="ip.flags.df" showname=".1.. = Set" size="1" pos="1" show="1" value="45"/>
    </field>
    <field name="ip.addr" showname="Address" hide="yes" size="1" pos="0" show="1" value="01"/>
    <field name="put.together" showname="Elsewhere" size="2" pos="0" show="" value="9999"/>
    <field name="far" showname="Far" size="9" pos="0" show="1"/>
  </proto>
</packet>`;

test("fields lie in fields, and only bytes that are there are marked", () => {
  const bytes = Uint8Array.of(1, 0x45, 3, 4);
  const [protocol, ...others] = decodedFields(PDML, bytes);
  expect(others).toEqual([]);
  expect(protocol?.text).toBe("Internet <script>");
  expect([protocol?.from, protocol?.to]).toEqual([0, 4]);
  expect(protocol?.fields.map(({ text, from, to }) => [text, from, to])).toEqual([
    ["Flags", 1, 2],
    ["Elsewhere", 0, 0],
    ["Far", 0, 0],
  ]);
  expect(protocol?.fields[0]?.fields[0]?.text).toBe(".1.. = Set");
  expect(spansOf(protocol ? [protocol] : []).map(({ text }) => text)).toEqual([
    "Internet <script>", "Flags", ".1.. = Set",
  ]);
  expect(decodedTime(PDML)).toBe(17.5);
});

test("what is no PDML, too deep or too much is cut and does no harm", () => {
  const none = new Uint8Array();
  expect(decodedFields("<packet><proto></field></field></proto>", none)).toHaveLength(1);
  expect(decodedFields("no XML & at <all>", none)).toEqual([]);
  const deep = decodedFields('<field name="a">'.repeat(100_000), none);
  let depth = 0;
  for (let at = deep[0]; at; at = at.fields[0]) {
    depth += 1;
  }
  expect(depth).toBeLessThan(60);
  expect(decodedTime("")).toBeNaN();
});
