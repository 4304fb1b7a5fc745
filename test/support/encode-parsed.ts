import { isJsonObject } from '../../src/schemas/json.ts';
import type { JsonObject } from '../../src/schemas/json.ts';
import { parsedElement } from '../../src/schemas/page-elements.ts';
import type { Encoded, FreshOptions } from '../../src/streams/fresh-record.ts';

/** Encodes the elements of a page by what they are once they are parsed. */
export function encodeParsed(
  encode: (record: JsonObject) => Encoded | undefined,
): FreshOptions['encode'] {
  return (page, at) => {
    const { value, end } = parsedElement(page, at);
    const encoded = isJsonObject(value) ? encode(value) : undefined;
    return encoded && { ...encoded, end, fields: value as JsonObject };
  };
}
