// Decoders for the values of topics under any version of the writer's schema, and topics that are given by name.

import avro from 'avsc';
import type { OrderStatusChange } from '../description/wine/order-status.ts';
import { deadLetterCodec, isStatusChangeSchema } from '../schemas/events/own-records.ts';
import type { DeadLetter, StatusChangeEvent } from '../schemas/events/own-records.ts';
import { envelopeCodec, envelopeSchema } from '../schemas/events/envelope.ts';
import type { ChangeEvent } from '../schemas/events/envelope.ts';
import { asBuffer } from '../schemas/avro/avro-output.ts';
import type { RecordSchema } from '../schemas/avro/avro-schema.ts';
import { decimalFormat } from '../schemas/avro/field-codecs.ts';
import { dateText } from '../schemas/avro/instant.ts';

/**
 * Returns a decoder that reads values of any writer schema as values of `reader`, by Avro's schema resolution: fields that the writer's
 * schema lacks get their default, fields that `reader` lacks are dropped. Times become ms since 1970, dates strings `YYYY-MM-DD`, and
 * decimals numbers (exact up to 15 digits).
 *
 * The decoder throws a `TypeError` for a writer schema that cannot be resolved to `reader`, and an `Error` for bytes that are not a value
 * of the writer schema.
 *
 * @typeParam T The TypeScript type of `reader`'s values.
 */
export function readAs<T extends object>(reader: RecordSchema): ValueReader<T> {
  const type = readable(reader);
  return (writer) => {
    const resolver = resolverOf(type, writer);
    return (bytes) => {
      let decoded: { readonly value: unknown; readonly offset: number };
      try {
        decoded = type.decode(asBuffer(bytes), 0, resolver);
      } catch (cause) {
        throw new Error(`the bytes can't be decoded with the Avro schema ${fullName(writer)}`, {
          cause,
        });
      }
      const { value, offset } = decoded;
      if (offset < 0)
        throw new Error(`the bytes end within a value of the Avro schema ${fullName(writer)}`);
      if (offset < bytes.length)
        throw new Error(
          `there are extra bytes after a value of the Avro schema ${fullName(writer)}`,
        );
      return { ...(value as T) };
    };
  };
}

/**
 * Returns a decoder of a resource's change events. Fields that the writer's schema lacks get their default; fields that `values` lacks are
 * dropped.
 *
 * @param values The Avro schema of the resource's images. Its last two fields are `nulls` and `unmapped`.
 * @param namespace Namespace of the events' schema. Default `cellarstream.<resource>`.
 * @typeParam T The TypeScript type of the images (`before` and `after` of an event).
 */
export function readEventsAs<T extends object>(
  values: RecordSchema,
  resource: string,
  namespace?: string,
): ValueReader<ChangeEvent<T>> {
  return readAs<ChangeEvent<T>>(envelopeSchema(values, resource, namespace));
}

function readable(schema: RecordSchema): avro.Type {
  return avro.Type.forSchema(schema as avro.Schema, {
    omitRecordMethods: true,
    logicalTypes: { decimal: Decimal, date: CalendarDate },
  });
}

function resolverOf(type: avro.Type, writer: RecordSchema): avro.Resolver {
  try {
    return type.createResolver(readable(writer));
  } catch (cause) {
    // avsc's message names the field, but prints both schemas in full, so it is only the cause.
    throw new TypeError(
      `messages written with the Avro schema ${fullName(writer)} can't be read with the schema ${type.name ?? ''}`,
      { cause },
    );
  }
}

function fullName({ name, namespace }: RecordSchema): string {
  return namespace && !name.includes('.') ? `${namespace}.${name}` : name;
}

/** A logical type that can be decoded but not encoded. Values can be read only if the writer's type is the same logical type. */
abstract class ReadOnly extends avro.types.LogicalType {
  override _toValue(): never {
    throw new TypeError('this Avro logical type can only be decoded, not encoded');
  }
  override _resolve(writer: avro.Type): ((value: unknown) => unknown) | undefined {
    // Without this check, avsc would return raw values, such as the bytes of a decimal.
    return writer instanceof this.constructor ? (value) => value : undefined;
  }
}

class Decimal extends ReadOnly {
  readonly #format: ReturnType<typeof decimalFormat>;
  constructor(schema: avro.Schema, options: unknown) {
    super(schema, options);
    const { precision, scale } = schema as { precision?: number; scale?: number };
    this.#format = decimalFormat(precision ?? 0, scale ?? 0);
  }
  override _fromValue(value: Uint8Array): number {
    return Number(this.#format.decode(value));
  }
}

class CalendarDate extends ReadOnly {
  override _fromValue(days: number): string {
    return dateText(days);
  }
}

/** Returns a decoder for values that were written with the Avro schema `writer`. Called once for each writer schema. */
export type ValueReader<T> = (writer: RecordSchema) => (avro: Uint8Array) => T;

/** A topic's name, and how its values are decoded. */
export interface Topic<T> {
  readonly name: string;
  readonly values: ValueReader<T>;
}

/**
 * Decodes change events of any resource. `before` and `after` become JSON objects with the content that the API sent, without loss;
 * {@link toJson} returns it as text.
 */
export const jsonEvents: ValueReader<ChangeEvent> = (writer) => {
  const codec = envelopeCodec(writer);
  return (avro) => codec.decode(avro);
};

/** Decodes dead letters. */
export const deadLetters = readAs<DeadLetter>(deadLetterCodec.schema);

/**
 * Type of a topic's values, derived from the end of the topic's name:
 *
 * - `.order-status-changes`: status changes of orders of the built-in API;
 * - any other name that ends with `-status-changes`: status changes;
 * - `.dead-letters`: dead letters;
 * - any other name: change events, with the images as JSON.
 */
export type ValueIn<Name extends string> = Name extends `${string}.order-status-changes`
  ? OrderStatusChange
  : Name extends `${string}-status-changes`
    ? StatusChangeEvent
    : Name extends `${string}.dead-letters`
      ? DeadLetter
      : ChangeEvent;

const serviceOrEventReader: ValueReader<StatusChangeEvent | DeadLetter | ChangeEvent> = (
  writer,
) => {
  if (fullName(writer) === fullName(deadLetterCodec.schema)) return deadLetters(writer);
  if (isStatusChangeSchema(writer)) return readAs<StatusChangeEvent>(writer)(writer);
  return jsonEvents(writer);
};

/** Returns the topic with this name, whose values are decoded by the schemas that they were written with. Returns a given topic as it is. */
export function topicOf<T>(topic: Topic<T> | string): Topic<T> {
  if (typeof topic !== 'string') return topic;
  return { name: topic, values: serviceOrEventReader as ValueReader<unknown> as ValueReader<T> };
}
