// Lossless JSON: like `JSON.parse` and `JSON.stringify`, except that a number whose value these would change keeps its original text.
// Nothing here recurses, so deep nesting cannot overflow the stack. Also JSON Pointers (RFC 6901).

/** Any JSON value. Numbers are finite; `-0` is distinguished from `0`. */
export type JsonValue = null | boolean | number | string | JsonNumber | JsonValue[] | JsonObject;

/** A JSON object; any key may be an own property, even `__proto__`. */
export interface JsonObject {
  [key: string]: JsonValue;
}

/**
 * A number whose value `JSON.parse` and `JSON.stringify` would change, with its original text: `12345678901234567890`, `1e400`. The
 * exception is `-0`, which stays a plain number.
 */
export class JsonNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** Returns the number's original text. */
  toString(): string {
    return this.text;
  }

  /** The number's text as a string, since a plain `JSON.stringify` can't write it as a number. */
  toJSON(): string {
    return this.text;
  }
}

/** Whether a value is a JSON object: not an array, null or a {@link JsonNumber}. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return isContainer(value) && !Array.isArray(value);
}

/** Returns the value of an object's own member; undefined if it has none with this name. */
export function getOwn(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Sets an own property, whatever its name: an assignment to `__proto__` would set the prototype. */
export function setOwn(object: JsonObject, key: string, value: JsonValue): void {
  if (key !== '__proto__') object[key] = value;
  else {
    const own = { value, configurable: true, enumerable: true, writable: true };
    Object.defineProperty(object, key, own);
  }
}

/**
 * Parses JSON as `JSON.parse` does, but preserves every number: one whose value `JSON.parse` and `JSON.stringify` would change becomes a
 * {@link JsonNumber}, except `-0`, which becomes the number -0.
 *
 * @throws SyntaxError when the text isn't JSON.
 */
export function parseJson(text: string): JsonValue {
  const value = JSON.parse(text) as JsonValue;
  if (typeof value !== 'number' && !MAY_BE_INEXACT.test(text)) return value;
  const inexact = inexactNumbers(text);
  return inexact.length === 0 ? value : withNumbersKept(value, text, inexact);
}

/** Writes a value as `JSON.stringify` does, but keeps the value of every number: a {@link JsonNumber} as its original text, -0 as `-0`. */
export function stringifyJson(value: JsonValue): string {
  return write(value, Object.keys);
}

/** Returns the text of {@link stringifyJson} with the keys of every object sorted: the order of keys makes no difference. */
export function canonicalJson(value: JsonValue): string {
  return write(value, (object) => Object.keys(object).sort());
}

/**
 * Matches a number whose value `JSON.parse` and `JSON.stringify` might change: one with 16 or more digits (a decimal point counts as one),
 * or with an exponent of three or more digits. It may also match within a string, which is harmless.
 */
const MAY_BE_INEXACT = /[:,[\s]-?\d(?:[\d.]{15}|[\d.]*[eE][+-]?\d{3})/;

type TextSpan = readonly [start: number, end: number];

/** Positions in valid JSON of the numbers whose value `JSON.parse` and `JSON.stringify` would change, except `-0`. */
function inexactNumbers(text: string): TextSpan[] {
  const found: TextSpan[] = [];
  const token = /"|-?\d[\d.eE+-]*/g;
  for (let match = token.exec(text); match; match = token.exec(text)) {
    if (match[0] === '"') token.lastIndex = endOfString(text, match.index) + 1;
    else if (!isExact(match[0])) found.push([match.index, token.lastIndex]);
  }
  return found;
}

/** Index of the closing quote of the string that starts at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let escapes = 0;
    while (text[end - 1 - escapes] === '\\') escapes++;
    if (escapes % 2 === 0) return end;
  }
}

/** Whether parsing the number in `text` as a double preserves its value. The double may be written in another notation: `1.50` as `1.5`. */
function isExact(text: string): boolean {
  const number = Number(text);
  return Number.isFinite(number) && decimal(text) === decimal(String(number));
}

/** Returns a normal form of a decimal number, without its sign: `15e-1` for `1.50` and `-1.5`. Equal magnitudes give equal texts. */
function decimal(text: string): string {
  const [, whole = '', fraction = '', exponent = '0'] = NUMBER.exec(text)!;
  const digits = (whole + fraction).replace(/^0+/, '');
  let length = digits.length;
  while (digits[length - 1] === '0') length--;
  if (length === 0) return '0';
  return `${digits.slice(0, length)}e${Number(exponent) - fraction.length + digits.length - length}`;
}

const NUMBER = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/;

/**
 * Replaces numbers in `value`, the parsed `text`, by {@link JsonNumber}s, and returns the result. `spans`: positions of these numbers in
 * `text`. Objects and arrays are changed in place.
 */
function withNumbersKept(value: JsonValue, text: string, spans: readonly TextSpan[]): JsonValue {
  let quoted = '';
  let from = 0;
  for (const [start, end] of spans) {
    quoted += `${text.slice(from, start)}"${text.slice(start, end)}"`;
    from = end;
  }
  const root: Members = { value };
  // The text is parsed again with these numbers as strings, so that `JSON.parse` alone decides about repeated keys and `__proto__`.
  const reread = JSON.parse(quoted + text.slice(from)) as JsonValue;
  const open: Pair[] = [[root, { value: reread }]];
  for (let pair = open.pop(); pair; pair = open.pop()) {
    const [numbers, strings] = pair;
    for (const key of Object.keys(numbers)) {
      const number = numbers[key]!;
      const string = strings[key]!;
      if (typeof number === 'number' && typeof string === 'string') {
        setOwn(numbers, key, new JsonNumber(string));
      } else if (typeof number === 'object' && number !== null) {
        open.push([number as Members, string as Members]);
      }
    }
  }
  return root.value!;
}

/** A parsed JSON object, or a parsed JSON array that is accessed like an object whose keys are the array's indices. */
type Members = JsonObject;
type Pair = readonly [Members, Members];

/** An object or array that is being serialized, with the progress so far. */
interface OpenContainer {
  readonly members: Members;
  readonly keys: readonly string[] | undefined; // undefined for an array
  readonly length: number;
  next: number;
  isEmpty: boolean;
}

function write(root: JsonValue, keysOf: (object: JsonObject) => string[]): string {
  if (!isContainer(root)) return leafText(root);
  const enter = (value: JsonValue[] | JsonObject): OpenContainer => {
    const keys = Array.isArray(value) ? undefined : keysOf(value);
    text += keys ? '{' : '[';
    const length = keys ? keys.length : (value.length as number);
    return { members: value as Members, keys, length, next: 0, isEmpty: true };
  };
  let text = '';
  const open = [enter(root)];
  for (let top = open.at(-1); top; top = open.at(-1)) {
    if (top.next === top.length) {
      text += top.keys ? '}' : ']';
      open.pop();
      continue;
    }
    const key = top.keys ? top.keys[top.next]! : top.next;
    const value = top.members[key];
    top.next++;
    if (value === undefined) continue;
    text += top.isEmpty ? '' : ',';
    text += top.keys ? `${quoted(key as string)}:` : '';
    top.isEmpty = false;
    if (isContainer(value)) open.push(enter(value));
    else text += leafText(value);
  }
  return text;
}

function isContainer(value: JsonValue | undefined): value is JsonValue[] | JsonObject {
  return typeof value === 'object' && value !== null && !(value instanceof JsonNumber);
}

function leafText(value: null | boolean | number | string | JsonNumber): string {
  if (typeof value === 'string') return quoted(value);
  if (value instanceof JsonNumber) return value.text;
  return Object.is(value, -0) ? '-0' : String(value);
}

/** Writes a string as `JSON.stringify` does, but faster for strings without characters to escape. */
function quoted(text: string): string {
  return TO_ESCAPE.test(text) ? JSON.stringify(text) : `"${text}"`;
}

const TO_ESCAPE = /["\\\x00-\x1f\ud800-\udfff]/;

/** Returns a member name as a reference token of a JSON Pointer (RFC 6901), with its leading slash: `/a~1b` for `a/b`. */
export function pointerStep(name: string): string {
  return `/${/[~/]/.test(name) ? name.replaceAll('~', '~0').replaceAll('/', '~1') : name}`;
}

/** Splits a JSON Pointer into its unescaped member names. */
export function pointerNames(pointer: string): string[] {
  return pointer.split('/').slice(1).map(unescape);
}

/** Matches an array index in a JSON Pointer, which has no leading zeros. Names such as `length` do not match. */
const ARRAY_INDEX = /^(?:0|[1-9]\d*)$/;

/** Returns the value at a path of member names and array indices; undefined if there is none. */
export function valueAt(
  value: JsonValue | undefined,
  path: readonly string[],
): JsonValue | undefined {
  let at = value;
  for (const name of path) {
    if (!isJsonObject(at) && !(Array.isArray(at) && ARRAY_INDEX.test(name))) return undefined;
    at = Object.hasOwn(at, name) ? (at as JsonObject)[name] : undefined;
  }
  return at;
}

/**
 * Sets the value at a JSON Pointer within `value` to `part`, in place, and returns the result. Creates an object at each step of the
 * pointer where there is neither an object nor an array. For the empty pointer the result is `part`.
 */
export function withValueAt(value: JsonValue, pointer: string, part: JsonValue): JsonValue {
  if (pointer === '') return part;
  const names = pointerNames(pointer);
  const last = names.pop()!;
  let parent = value as JsonObject;
  for (const name of names) {
    let child = getOwn(parent, name);
    if (typeof child !== 'object' || child === null) setOwn(parent, name, (child = {}));
    parent = child as JsonObject;
  }
  setOwn(parent, last, part);
  return value;
}

function unescape(step: string): string {
  return step.includes('~') ? step.replaceAll('~1', '/').replaceAll('~0', '~') : step;
}
