import { FIELD_NAME, FIELD_NAME_BYTES, RECORD_COUNT, RECORD_FIELDS } from '../layout.ts';
import { RECORD_FOLLOWERS, TYPE_BYTES } from '../layout.ts';
import { COLON, Here } from './window.ts';

export function fieldOf(record: i32, nth: i32): i32 {
  return record + RECORD_FIELDS + nth * TYPE_BYTES;
}

/**
 * Reads a member's name and the colon after it. Returns the index of the field with this name; -1, with nothing read, if there is no such
 * field.
 *
 * @param record Address of the record type's entry in the compiled schema.
 * @param previous Index of the field that was read last from the object; for the object's first field, the number of fields.
 */
export function fieldHere(record: i32, previous: i32): i32 {
  const count = load<i32>(record, RECORD_COUNT);
  // The field that followed `previous` most recently is tried first.
  const follower = load<i32>(record, RECORD_FOLLOWERS) + (previous << 2);
  const expected = load<i32>(follower);
  if (expected < count && takesName(fieldOf(record, expected))) return expected;
  let nth = expected;
  for (let k = 0; k < count; k++) {
    nth = nth + 1 < count ? nth + 1 : 0;
    if (takesName(fieldOf(record, nth))) {
      store<i32>(follower, nth);
      return nth;
    }
  }
  return -1;
}

/** Moves past the name of `field` and its colon if they are at the read position; returns whether they are. */
function takesName(field: i32): bool {
  const name = load<i32>(field, FIELD_NAME);
  const size = load<i32>(field, FIELD_NAME_BYTES);
  const at = Here.at;
  if (isSame(at, name, size)) {
    Here.at = at + size;
    return true;
  }
  if (!isSame(at, name, size - 1)) return false;
  Here.at = at + size - 1;
  if (Here.takes(COLON)) return true;
  Here.at = at;
  return false;
}

/** Whether two memory ranges of `size` bytes are equal; compares eight bytes at a time. */
function isSame(one: i32, other: i32, size: i32): bool {
  let k = 0;
  for (; k + 8 <= size; k += 8) if (load<u64>(one + k) != load<u64>(other + k)) return false;
  if (k == size) return true;
  return (load<u64>(one + k) ^ load<u64>(other + k)) << ((8 - size + k) << 3) == 0;
}
