import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonName } from '../../../src/schemas/json/json-name.ts';

/** What a name says of the place that is so far from the beginning of a text. */
const endAt = (name: string, text: string, at: number): number => {
  const page = Buffer.from(text);
  return new JsonName(name).endAt(
    new DataView(page.buffer, page.byteOffset, page.length),
    at,
    page.length,
  );
};

describe('JsonName', () => {
  it('ends behind its colon where it stands, and nowhere else', () => {
    const names = fc.string({
      unit: fc.constantFrom('a', 'b', 'é', '"', '\\', '/'),
      minLength: 2,
      maxLength: 9,
    });
    fc.assert(
      fc.property(
        names,
        names,
        fc.boolean(),
        fc.nat(3),
        fc.boolean(),
        (name, random, isSame, before, isCut) => {
          const other = isSame ? name : random;
          const whole = `${JSON.stringify(other)}:`;
          const page = ' '.repeat(before) + (isCut ? whole.slice(0, -1) : `${whole}1}`);
          const end = before + Buffer.byteLength(whole);
          expect(endAt(name, page, before)).toBe(name === other && !isCut ? end : -1);
        },
      ),
      { seed: 1, numRuns: 2_000 },
    );
  });

  it('is told by its last bytes too', () => {
    expect(endAt('abcdefgh', '"abcdefgh":', 0)).toBe(11);
    for (const text of ['"abcdefgx":', '"abcdefgh";', '"abcdefgh" :', '"abcdefghi":', '"abcdefg":'])
      expect(endAt('abcdefgh', text, 0)).toBe(-1);
  });

  it('leaves the empty name to others', () => {
    expect(endAt('', '"":1', 0)).toBe(-1);
  });
});
