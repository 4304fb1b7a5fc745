import fc from 'fast-check';
import { JsonNumber } from '../../src/schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../src/schemas/json/json.ts';

const NAMES = ['a', 'b', 'id', 'list', 'constructor', 'toString', '', 'a.b'];

/** Any JSON, over few names and values, so that two of them have much in common. */
export const jsonValues: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom<JsonValue>(null, true, 0, -0, 1, '', '1', 'a', 'a#2', '#1', 'a\na'),
    fc.constant(new JsonNumber('12345678901234567890')),
    fc.array(tie('value'), { maxLength: 4 }),
    objectOf(tie('value')),
  ),
})).value;

/** Objects with few names, such as `jsonValues` has them. */
export function objectOf(value: fc.Arbitrary<JsonValue>): fc.Arbitrary<JsonObject> {
  return fc.dictionary(fc.constantFrom(...NAMES), value, { maxKeys: 4, noNullPrototype: true });
}
