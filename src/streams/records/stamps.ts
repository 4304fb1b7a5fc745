// The modification and creation times of a list's records.

import type { ListDescription } from '../../description/description.ts';
import type { Transcoded, WantedFields } from '../../schemas/avro/record-codec.ts';
import { canonicalJson, getOwn, isJsonObject } from '../../schemas/json/json.ts';
import type { JsonValue } from '../../schemas/json/json.ts';
import { ISO } from '../../description/time-format.ts';
import type { TimeFormat } from '../../description/time-format.ts';

/** Reads the stamps (modification and creation time) of a list's records, from parsed records and from transcoded ones. */
export class Stamps {
  readonly #updated: readonly string[];
  readonly #created: string | undefined;
  readonly #format: TimeFormat;
  /**
   * Fields that a transcoder (which encodes records without parsing them) must return, so that {@link updatedIn} and {@link createdIn} can
   * read the times.
   */
  readonly wanted: WantedFields;

  /**
   * @param list Names of the top-level fields that contain times. `updated`: the modification time; of several fields, the first that
   * contains a time is used. `created`: the creation time.
   * @param format Notation of the times. Default: ISO 8601.
   */
  constructor(
    {
      updated,
      created,
    }: Pick<ListDescription, 'updated'> & Partial<Pick<ListDescription, 'created'>>,
    format: TimeFormat = ISO,
  ) {
    this.#updated = updated;
    this.#created = created;
    this.#format = format;
    const fields = [updated, created ?? []].flat();
    this.wanted = format.isIso
      ? { values: [], instants: fields }
      : { values: fields, instants: [] };
  }

  /** Returns the modification time of a record in epoch ms; null if it has none. */
  updatedAt(json: JsonValue): number | null {
    for (const field of this.#updated) {
      const time = this.#timeIn(json, field);
      if (time !== null) return time;
    }
    return null;
  }

  /** Returns the creation time of a record in epoch ms; null if it has none. */
  createdAt(json: JsonValue): number | null {
    return this.#created === undefined ? null : this.#timeIn(json, this.#created);
  }

  /**
   * Returns a transcoded record's modification time in epoch ms; null if it has none. Times in ISO 8601 are taken from `instants`, others
   * from `fields`.
   */
  updatedIn({ fields, instants }: Pick<Transcoded, 'fields' | 'instants'>): number | null {
    if (!this.#format.isIso) return this.updatedAt(fields);
    for (let nth = 0; nth < this.#updated.length; nth++) {
      const time = instants[nth]!; // in the order of the fields in `wanted`
      if (time !== null) return time;
    }
    return null;
  }

  /**
   * Returns a transcoded record's creation time in epoch ms; null if it has none. A time in ISO 8601 is taken from `instants`, another from
   * `fields`.
   */
  createdIn({ fields, instants }: Pick<Transcoded, 'fields' | 'instants'>): number | null {
    if (!this.#format.isIso) return this.createdAt(fields);
    return instants[this.#updated.length] ?? null;
  }

  /**
   * Returns the values of all fields that may contain the record's modification time, as canonical JSON. Equal texts mean an unchanged
   * time.
   */
  updatedText(json: JsonValue): string {
    return canonicalJson(this.#updated.map((field) => valueOf(json, field) ?? null));
  }

  #timeIn(json: JsonValue, field: string): number | null {
    return this.#format.read(valueOf(json, field));
  }
}

function valueOf(json: JsonValue, field: string): JsonValue | undefined {
  return isJsonObject(json) ? getOwn(json, field) : undefined;
}
