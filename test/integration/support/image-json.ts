/** Fields that hold JSON as text. */
const JSON_TEXT = new Set(['summary']);

/**
 * An image as a stranger would read it by the contract, back to the API's JSON: fields that are null
 * were absent unless `nulls` names them. Refuses an image with anything in `unmapped`: what the
 * sandbox serves of itself is nothing odd.
 */
export function imageJson(image: Readonly<Record<string, unknown>>): unknown {
  const { nulls, unmapped, ...fields } = image;
  if (Object.keys(unmapped as object).length > 0) {
    throw new Error(`unmapped: ${Object.keys(unmapped as object).join(', ')}`);
  }
  return plain(fields, '', new Set(nulls as string[]));
}

function plain(value: unknown, pointer: string, nulls: ReadonlySet<string>): unknown {
  if (Array.isArray(value))
    return value.map((item, place) => plain(item, `${pointer}/${place}`, nulls));
  if (typeof value !== 'object' || value === null) return value;
  const json: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(value)) {
    const at = `${pointer}/${name}`;
    if (field === null) {
      if (nulls.has(at)) json[name] = null;
    } else if (JSON_TEXT.has(name) && typeof field === 'string') {
      json[name] = JSON.parse(field);
    } else {
      json[name] = plain(field, at, nulls);
    }
  }
  return json;
}
