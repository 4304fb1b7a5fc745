// The topics that consumers can name, and how their values are read, whichever version of a schema wrote them.

import avro from 'avsc';
import { deadLetterCodec, orderStatusChangeCodec } from '../schemas/events/own-records.ts';
import type { DeadLetter, OrderStatusChange } from '../schemas/events/own-records.ts';
import { envelopeCodec, envelopeSchema } from '../schemas/events/envelope.ts';
import type { ChangeEvent } from '../schemas/events/envelope.ts';
import { orderSchema } from '../resources/orders/order.ts';
import type { Order } from '../resources/orders/order-type.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { asBuffer } from '../schemas/avro/avro-output.ts';
import type { RecordSchema } from '../schemas/avro/avro-schema.ts';
import { decimalFormat } from '../schemas/avro/field-codecs.ts';
import { dateText } from '../schemas/avro/instant.ts';

/**
 * Reads whatever schema wrote a value as one of `reader`, by Avro's rules of resolution: fields that
 * the writer did not have are their default, fields that `reader` does not have are left out.
 *
 * Times are ms since 1970, dates `YYYY-MM-DD`, decimals numbers (exact up to 15 digits), of the scale
 * that the writer gave them. A decimal or a date is read only where the writer says that it's one.
 *
 * What it gives throws a `TypeError` for a writer whose values can't be read as those of `reader`, and
 * an `Error` for bytes that are no value of the writer.
 *
 * @typeParam T What `reader` says, in TypeScript.
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
        throw new Error(`not a value of ${fullName(writer)}`, { cause });
      }
      const { value, offset } = decoded;
      if (offset < 0) throw new Error(`cut off: not a value of ${fullName(writer)}`);
      if (offset < bytes.length) throw new Error(`goes on behind a value of ${fullName(writer)}`);
      return { ...(value as T) };
    };
  };
}

/**
 * The same of the events of a resource.
 *
 * @param values The schema of its images: ends with `nulls` and `unmapped`.
 * @typeParam T What `values` says, in TypeScript.
 */
export function readEventsAs<T extends object>(
  values: RecordSchema,
  resource: string,
): ValueReader<ChangeEvent<T>> {
  return readAs<ChangeEvent<T>>(envelopeSchema(values, resource));
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
    // The cause says where, but spells both schemas out to do so.
    throw new TypeError(`values of ${fullName(writer)} can't be read as ${type.name ?? ''}`, {
      cause,
    });
  }
}

/** A schema's name with its namespace. */
function fullName({ name, namespace }: RecordSchema): string {
  return namespace && !name.includes('.') ? `${namespace}.${name}` : name;
}

/**
 * A logical type that is only read. Where a writer's type is another one there is no resolver: avsc
 * would hand over whatever value that type has.
 */
abstract class ReadOnly extends avro.types.LogicalType {
  override _toValue(): never {
    throw new TypeError('this type is for reading');
  }
  override _resolve(writer: avro.Type): ((value: unknown) => unknown) | undefined {
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

/**
 * What is made of a topic's bytes: given the schema that wrote a value, how such values are read.
 * Asked once for each schema.
 */
export type ValueReader<T> = (writer: RecordSchema) => (avro: Uint8Array) => T;

/** A topic by its name, and what its values are read as. */
export interface Topic<T> {
  readonly name: string;
  readonly values: ValueReader<T>;
}

/**
 * Events of any resource, their images as the API's JSON, rebuilt without loss: what {@link toJson}
 * prints. Follows the schema that wrote each event, so fields that are new show up by themselves.
 */
export const jsonEvents: ValueReader<ChangeEvent> = (writer) => {
  const codec = envelopeCodec(writer);
  return (avro) => codec.decode(avro);
};

const statusChanges = readAs<OrderStatusChange>(orderStatusChangeCodec.schema);
const deadLetters = readAs<DeadLetter>(deadLetterCodec.schema);

/** Events of orders, resolved to the schema of {@link Order}, whichever schema wrote them. */
export const orderEvents: ValueReader<ChangeEvent<Order>> = readEventsAs<Order>(
  orderSchema,
  'orders',
);

/** The topics that `cellarstream run` writes for consumers. */
export interface Topics {
  readonly orders: Topic<ChangeEvent<Order>>;
  readonly customers: Topic<ChangeEvent>;
  readonly inventory: Topic<ChangeEvent>;
  readonly wineClubs: Topic<ChangeEvent>;
  readonly wineClubMembers: Topic<ChangeEvent>;
  readonly products: Topic<ChangeEvent>;
  readonly orderStatusChanges: Topic<OrderStatusChange>;
  readonly deadLetters: Topic<DeadLetter>;
}

/**
 * The topics under a prefix, with the types of their values. Orders are typed by their documented
 * fields; the other resources are JSON, as nobody has documented them.
 *
 * @param prefix `TOPIC_PREFIX` of the service. Default `wine`.
 */
export function topicsUnder(prefix = 'wine'): Topics {
  const names = topicNames(prefix);
  const json = (resource: string) => ({ name: names.records(resource), values: jsonEvents });
  return {
    orders: { name: names.records('orders'), values: orderEvents },
    customers: json('customers'),
    inventory: json('inventory'),
    wineClubs: json('wine-clubs'),
    wineClubMembers: json('wine-club-members'),
    products: json('products'),
    orderStatusChanges: { name: names.orderStatusChanges, values: statusChanges },
    deadLetters: { name: names.deadLetters, values: deadLetters },
  };
}

/** What a topic of the service holds, by its name alone: events as JSON, unless it's one of our own records. */
export type ValueIn<Name extends string> = Name extends `${string}.order-status-changes`
  ? OrderStatusChange
  : Name extends `${string}.dead-letters`
    ? DeadLetter
    : ChangeEvent;

/** A topic by its name alone: what its values are is told by the schemas that wrote them. */
export function topicNamed<Name extends string>(name: Name): Topic<ValueIn<Name>> {
  return { name, values: ownOrEvents as ValueReader<ValueIn<Name>> };
}

const OWN = new Map<string, ValueReader<OrderStatusChange | DeadLetter>>([
  [fullName(orderStatusChangeCodec.schema), statusChanges],
  [fullName(deadLetterCodec.schema), deadLetters],
]);
const ownOrEvents: ValueReader<OrderStatusChange | DeadLetter | ChangeEvent> = (writer) =>
  (OWN.get(fullName(writer)) ?? jsonEvents)(writer);

/** The topic, which may have been given by its name. */
export function topicOf<T>(topic: Topic<T> | string): Topic<T> {
  return typeof topic === 'string' ? (topicNamed(topic) as Topic<unknown> as Topic<T>) : topic;
}
