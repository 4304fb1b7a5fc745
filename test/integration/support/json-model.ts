/**
 * JSON as it was sent: numbers by their text, objects as maps, so that no name of a member is
 * special. It shares nothing with the product's own reading of JSON.
 */
export type Json = null | boolean | string | SentNumber | readonly Json[] | JsonMembers;
export type JsonMembers = ReadonlyMap<string, Json>;

/** A number, of any size and precision. */
export class SentNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A time of which a typed field has kept the instant alone, ms since 1970. */
export class Instant {
  readonly ms: number;

  constructor(ms: number) {
    this.ms = ms;
  }
}

/** What comes out of an image: JSON, with instants where their text was not kept. */
export type Rebuilt =
  Exclude<Json, readonly Json[] | JsonMembers> | Instant | Rebuilt[] | RebuiltMembers;
export type RebuiltMembers = Map<string, Rebuilt>;

/** Where and how the two first differ; undefined when they are equal, the order of members aside. */
export function difference(sent: Json, rebuilt: Rebuilt, at = ''): string | undefined {
  if (sent instanceof Map) {
    if (!(rebuilt instanceof Map)) return `${at}: an object became ${nameOf(rebuilt)}`;
    for (const [name, member] of sent as JsonMembers) {
      const other = rebuilt.get(name);
      const where = `${at}/${name}`;
      if (other === undefined) return `${where}: ${nameOf(member)} is missing`;
      const found = difference(member, other, where);
      if (found !== undefined) return found;
    }
    const extra = [...rebuilt.keys()].find((name) => !sent.has(name));
    return extra === undefined ? undefined : `${at}/${extra}: was never sent`;
  }
  if (Array.isArray(sent)) {
    if (!Array.isArray(rebuilt)) return `${at}: a list became ${nameOf(rebuilt)}`;
    if (sent.length !== rebuilt.length)
      return `${at}: ${sent.length} became ${rebuilt.length} items`;
    for (const [place, item] of (sent as readonly Json[]).entries()) {
      const found = difference(item, rebuilt[place]!, `${at}/${place}`);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  return isSame(sent, rebuilt) ? undefined : `${at}: ${nameOf(sent)} became ${nameOf(rebuilt)}`;
}

function isSame(sent: Json, rebuilt: Rebuilt): boolean {
  if (sent instanceof SentNumber && rebuilt instanceof SentNumber) {
    return sent.text === rebuilt.text || exactDecimal(sent.text) === exactDecimal(rebuilt.text);
  }
  if (rebuilt instanceof Instant)
    return typeof sent === 'string' && utcInstant(sent) === rebuilt.ms;
  return sent === rebuilt;
}

const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/** One text for one decimal number, however it is written and however large; `-0` is not `0`. */
function exactDecimal(text: string): string {
  const [, sign, whole = '', fraction = '', exponent = '0'] = NUMBER.exec(text)!;
  const leading = (whole + fraction).replace(/^0+/, '');
  const digits = leading.replace(/0+$/, '');
  if (digits === '') return `${sign}0`;
  const power = BigInt(exponent) - BigInt(fraction.length) + BigInt(leading.length - digits.length);
  return `${sign}${digits}e${power}`;
}

const UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|\+00:00)$/;

/**
 * The instant of a time that says no more than it: in UTC, of at most ms, of a day that exists. By
 * the contract the text of any other time is kept.
 */
function utcInstant(text: string): number | undefined {
  const ms = UTC.test(text) ? Date.parse(text) : NaN;
  const exists = !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text.slice(0, 16));
  return exists ? ms : undefined;
}

function nameOf(value: Json | Rebuilt): string {
  if (value instanceof SentNumber) return `the number ${value.text}`;
  if (value instanceof Instant) return `the instant ${value.ms}`;
  if (value instanceof Map) return 'an object';
  if (Array.isArray(value)) return 'a list';
  return JSON.stringify(typeof value === 'string' ? value.slice(0, 60) : value);
}
