/**
 * Serialization of the topics: schema registry client, Confluent's wire format, codecs for events and status changes, topic names, and the
 * type of an order. `docs/topics.md` lists all fields.
 *
 * @module cellarstream/schemas
 */

// Start here
export { createRegistry } from '../schemas/registry/registry.ts';

// Registry
export type {
  RegisteredSchema,
  Registry,
  SubjectInspection,
} from '../schemas/registry/registry.ts';
export type { Proxies, ProxyServer } from '../core/proxies.ts';
export type { BearerTokens, RegistryOptions } from '../schemas/registry/registry-http.ts';

// Wire format
export { frame, unframe } from '../schemas/registry/wire.ts';
export type { Framed } from '../schemas/registry/wire.ts';

// Names of topics
export { topicNames } from '../description/wine/topic-names.ts';
export { valueSubject } from '../schemas/events/topics.ts';
export type { TopicNames } from '../schemas/events/topics.ts';

// Events
export { createEnvelopeCodec, envelopeCodec, toJson } from '../schemas/events/envelope.ts';
export type {
  ChangeEvent,
  ChangeFacts,
  EnvelopeCodec,
  EventImages,
  EventSource,
  ImagesOf,
  Op,
} from '../schemas/events/envelope.ts';
export type { RecordCodec, Transcoded, WantedFields } from '../schemas/avro/record-codec.ts';

// Orders
export { orderSchema } from '../description/wine/order.ts';
export type {
  Order,
  CardExpiry,
  ClubPackage,
  Fulfillment,
  OrderDiscounts,
  OrderEdit,
  OrderEditOperation,
  OrderItem,
  Tender,
  Tracking,
} from '../description/wine/order-type.ts';

// Status changes and dead letters
export { orderStatusChangeCodec } from '../description/wine/order-status.ts';
export type { OrderStatusChange, StatusSubject } from '../description/wine/order-status.ts';
export type { DeadLetter, FlatCodec, StatusChangeEvent } from '../schemas/events/own-records.ts';

// Certificates
export type { Certificate, CertifiedPartition } from '../schemas/events/certificate.ts';
export type { TallyText } from '../schemas/events/key-tally.ts';

// Avro and JSON
export type {
  ArraySchema,
  AvroType,
  FieldSchema,
  LogicalSchema,
  MapSchema,
  RecordSchema,
} from '../schemas/avro/avro-schema.ts';
export type { JsonNumber, JsonObject, JsonValue } from '../schemas/json/json.ts';
