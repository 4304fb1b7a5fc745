import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AvroOutput } from '../../../src/schemas/avro/avro-output.ts';
import { PathTree } from '../../../src/schemas/avro/encoding-residue.ts';
import { RecordCodec } from '../../../src/schemas/avro/record-codec.ts';
import { everyKind } from './every-type.ts';

const codec = new RecordCodec(everyKind);
/** The pointers in an image of a record whose `parts` are null at these places. */
const nullsOf = (parts: readonly (null | object)[]): string[] =>
  (codec.type.fromBuffer(codec.encode({ parts: parts as [] })) as { nulls: string[] }).nulls;

describe('Places', () => {
  it('writes the nulls of any record in the order of their pointers, whatever was met before', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(null, {}, { nulls: null }), { maxLength: 120 }),
        (parts) => {
          const pointers = parts.flatMap((part, nth) =>
            part === null ? `/parts/${nth}` : 'nulls' in part ? `/parts/${nth}/nulls` : [],
          );
          expect(nullsOf(parts)).toEqual(pointers.sort());
        },
      ),
      { seed: 1 },
    );
  });

  it('begins anew when an array has more places than are kept', () => {
    const places = new PathTree();
    const { root } = places;
    for (let nth = 0; nth < 10_000; nth++) root.child('/parts').child(nth);
    expect(places.root).not.toBe(root);
    const last = places.root;
    const nulls = ['/b', '/a'].map((step) => last.child(step));
    places.writeNulls(nulls, new AvroOutput());
    expect(nulls.map(({ pointer }) => pointer)).toEqual(['/a', '/b']);
    expect(places.root).toBe(last);
    const many = Array.from({ length: 20_000 }, () => null);
    for (let time = 0; time < 2; time++) expect(nullsOf(many)).toHaveLength(20_000);
  });
});
