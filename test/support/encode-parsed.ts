import { isJsonObject } from '../../src/schemas/json/json.ts';
import type { JsonObject } from '../../src/schemas/json/json.ts';
import { parsedElement } from '../../src/schemas/json/json-bytes.ts';
import { instantOf } from '../../src/schemas/avro/instant.ts';
import type { EncodedElement, EncodingOptions } from '../../src/streams/decode/decoder.ts';

/** Encodes the elements of a page by what they are once they are parsed. */
export function encodeParsed(
  encode: (record: JsonObject) => Pick<EncodedElement, 'image' | 'codec'> | undefined,
): EncodingOptions['encode'] {
  return (page, at, wanted) => {
    const { value, end } = parsedElement(page, at);
    if (!isJsonObject(value)) return undefined;
    const encoded = encode(value);
    const fields = Object.fromEntries(
      Object.entries(value).filter(([name]) => wanted.values.includes(name)),
    );
    const instants = wanted.instants.map((name) => instantOf(value, name));
    return encoded && { ...encoded, end, fields, instants };
  };
}
