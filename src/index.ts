/**
 * Cellarstream: from a rate-limited, paged REST API to change events. The operators that the service
 * is made of, in the order in which records flow through them. The sandbox API is at
 * `cellarstream/sandbox`.
 *
 * @module cellarstream
 */

// Token
export { login } from './streams/http/login.ts';
export type { LoginOptions, Token } from './streams/http/login.ts';
export { tokenSource } from './streams/http/token.ts';
export type { TokenSource, TokenSourceOptions } from './streams/http/token.ts';

// Quota
export { during, tokenBucket } from './streams/quota/token-bucket.ts';
export type {
  LaneLimit,
  LaneOptions,
  Limit,
  TokenBucket,
  Gate,
  TokenBucketOptions,
} from './streams/quota/token-bucket.ts';
export { steadyScheduler } from './core/clock.ts';

// Request
export type { AnswerSeen } from './streams/http/http.ts';
export { listRequest } from './streams/http/list-request.ts';
export type { Answer, ListQuery, ListRequest, Pagination } from './streams/http/answer.ts';
export type { ListRequestOptions } from './streams/http/list-request.ts';
export { exchange } from './streams/http/http.ts';
export type { HttpAnswer, HttpRequest } from './streams/http/http.ts';
export { backoff } from './streams/flow/backoff.ts';
export type { BackoffOptions, Retry } from './streams/flow/backoff.ts';
export { logicalClock } from './streams/http/logical-clock.ts';
export type { LogicalClock, Span } from './streams/http/logical-clock.ts';

// Pages
export { pages } from './streams/paging/pages.ts';
export type { PagesOptions, ScanPage, ScanTrouble } from './streams/paging/pages.ts';
export { BEGINNING, join } from './streams/paging/anchors.ts';
export type { Anchor, Joint, JoinOptions, Position } from './streams/paging/anchors.ts';
export { leftOut } from './streams/paging/left-out.ts';
export type { LeftOut } from './streams/paging/left-out.ts';
export { volatileFields } from './streams/records/volatile-fields.ts';
export type { VolatileFields } from './streams/records/volatile-fields.ts';
export { permits } from './streams/flow/permits.ts';
export type { Permits } from './streams/flow/permits.ts';
export { poll, window } from './streams/paging/poll.ts';
export type { PollOptions, PollPage, Window } from './streams/paging/poll.ts';
export { sweeps } from './streams/paging/sweeps.ts';
export type {
  Held,
  KnownRecords,
  SweepsOptions,
  SweepStep,
  Unseen,
} from './streams/paging/sweeps.ts';
export { NO_SWEEP, nextSweep, seenSince, sweepAfter } from './streams/paging/sweep-progress.ts';
export type {
  ExactSweep,
  Proof,
  SweepProgress,
  SweptPage,
} from './streams/paging/sweep-progress.ts';
export { serverClock } from './streams/http/server-clock.ts';
export type { ServerClock } from './streams/http/server-clock.ts';

// Records
export { HMAC_PREFIX, MASK, personalFields, WAYS } from './streams/records/personal-fields.ts';
export type { PersonalField, PersonalFields, Way } from './streams/records/personal-fields.ts';
export { hidingList } from './streams/records/hiding-list.ts';
export { hidingChange } from './streams/records/hiding-change.ts';
export { keyOfFields } from './streams/records/key-of.ts';
export type { KeyOf } from './streams/records/key-of.ts';
export { keyRecords, splitRecords } from './streams/records/records.ts';
export type {
  RejectedJson,
  RejectedRecord,
  RejectedText,
  RejectReason,
} from './streams/records/records.ts';
export { unreadableTexts } from './streams/http/unreadable-texts.ts';
export type { UnreadableTexts } from './streams/http/unreadable-texts.ts';
export { PageRecord } from './streams/records/page-record.ts';
export type { KeyedRecord, PayloadDigest, RecordImage } from './streams/records/page-record.ts';
export type { SplitRecords } from './streams/records/records.ts';
export type { Decoder } from './streams/records/decoder.ts';
export type { Element } from './schemas/json/page-elements.ts';
export { chooseKeyFields } from './streams/records/key-fields.ts';
export type { KeyChoice } from './streams/records/key-fields.ts';
export { gatherFirst } from './streams/flow/gather-first.ts';
export {
  canonicalJson,
  isJsonObject,
  JsonNumber,
  parseJson,
  stringifyJson,
} from './schemas/json/json.ts';
export type { JsonObject, JsonValue } from './schemas/json/json.ts';

// Diff
export { instantOf, updatedAtOf } from './streams/records/updated-at.ts';
export { diff } from './streams/diff/diff.ts';
export type { Change, ImageCodec, Operation } from './streams/diff/change.ts';
export type { Difference, DiffOptions, Images, ReadRecords } from './streams/diff/diff.ts';
export { newestReads } from './streams/diff/newest.ts';
export type { NewestReads, Verdict } from './streams/diff/newest.ts';
export { changedPaths } from './streams/diff/changed-paths.ts';
export { ORDER_IDENTITIES } from './streams/diff/identity.ts';
export type { Identities } from './streams/diff/identity.ts';

// Status
export { orderStatus, STATUS_FIELDS, statusChanges } from './streams/diff/order-status.ts';
export type { StatusChange, StatusField, StatusSubject } from './streams/diff/order-status.ts';

// Encode
export { growSchema } from './schemas/avro/infer.ts';
export type { GrowOptions } from './schemas/avro/infer.ts';
export { createRecordCodec } from './schemas/avro/record-codec.ts';
export type { RecordCodec, Transcoded } from './schemas/avro/record-codec.ts';
export { createEnvelopeCodec, envelopeCodec, envelopeSchema } from './schemas/events/envelope.ts';
export type {
  ChangeEvent,
  ChangeFacts,
  EnvelopeCodec,
  EventImages,
  EventSource,
  Op,
} from './schemas/events/envelope.ts';
export { toJson } from './schemas/events/to-json.ts';
export type { ImagesOf } from './schemas/events/to-json.ts';
export { orderSchema } from './resources/orders/order.ts';
export type {
  CardExpiry,
  ClubPackage,
  Fulfillment,
  Order,
  OrderDiscounts,
  OrderEdit,
  OrderEditOperation,
  OrderItem,
  Tender,
  Tracking,
} from './resources/orders/order-type.ts';
export { orderStatusChangeCodec } from './schemas/events/order-status-change.ts';
export type { OrderStatusChange } from './schemas/events/order-status-change.ts';
export { deadLetterCodec } from './schemas/events/dead-letter.ts';
export type { DeadLetter } from './schemas/events/dead-letter.ts';
export type { FlatCodec } from './schemas/avro/flat-codec.ts';
export type {
  ArraySchema,
  AvroType,
  FieldSchema,
  LogicalSchema,
  MapSchema,
  RecordSchema,
} from './schemas/avro/avro-schema.ts';
export { createRegistry } from './schemas/registry/registry.ts';
export type { RegisteredSchema, Registry } from './schemas/registry/registry.ts';
export type { RegistryOptions } from './schemas/registry/registry-http.ts';
export { frame, unframe } from './schemas/registry/wire.ts';
export type { Framed } from './schemas/registry/wire.ts';

// Publish
export { topicNames, topicTable, valueSubject } from './schemas/events/topics.ts';
export type {
  CleanupPolicy,
  TopicNames,
  TopicSpec,
  TopicTableOptions,
} from './schemas/events/topics.ts';
export { ensureTopics } from './sinks/topics/kafka-topics.ts';
export type { TopicFinding } from './schemas/events/topic-findings.ts';
export type { Gap, LostEvents } from './observe/lost-events.ts';
export type { TopicsOptions } from './sinks/topics/kafka-topics.ts';
export { openKafkaProducer } from './sinks/producer/kafka-producer.ts';
export type { KafkaProducerOptions } from './sinks/producer/kafka-producer.ts';
export type {
  Bounds,
  Ends,
  FencedSink,
  Message,
  ProducerIdentity,
  TransactionalSink,
} from './sinks/sink.ts';
export { consoleSink } from './sinks/console.ts';
export type { ConsoleSinkOptions } from './sinks/console.ts';

// Consume
export { replay } from './consumers/replay.ts';
export type { ReplayByNameOptions, ReplayOptions, Source } from './consumers/replay.ts';
export { positionAfter } from './consumers/position.ts';
export type { From, To, TopicPosition } from './consumers/position.ts';
export { table } from './consumers/table.ts';
export type { Table, TableChange, TableOptions } from './consumers/table.ts';
export { matchesStatusChange, orderStatusChanges } from './consumers/order-status-changes.ts';
export type {
  OneOf,
  OrderStatusChangesOptions,
  StatusChangeFilter,
} from './consumers/order-status-changes.ts';
export { readAs, readEventsAs } from './consumers/read-as.ts';
export type { ValueReader } from './consumers/read-as.ts';
export { jsonEvents, orderEvents, topicsUnder } from './consumers/topic.ts';
export type { Topic, Topics, ValueIn } from './consumers/topic.ts';
export type { Consumed } from './consumers/consumed.ts';
export { subscribeGroup } from './consumers/subscribe-group.ts';
export type {
  SubscribeGroupByNameOptions,
  SubscribeGroupOptions,
} from './consumers/subscribe-group.ts';
export type {
  DeadLettered,
  GroupRetry,
  Handled,
  Handler,
  RetryOptions,
} from './consumers/handling.ts';

// State
export { recentStarts } from './state/recent-starts.ts';
export type { RecentStarts } from './state/recent-starts.ts';

// The service
export { run } from './app.ts';
export type { RunOptions } from './app.ts';
export type {
  Committed,
  Gauges,
  Hooks,
  Lane,
  Progress,
  Published,
  QuotaUse,
  Requested,
  Resynced,
  Retrying,
} from './observe/hooks.ts';
export type { KeyedStatusChange } from './streams/diff/order-status.ts';
export { loadConfig } from './config/load-config.ts';
export type { ConfigOptions } from './config/load-config.ts';
export { DEFAULTS, LOG_LEVELS, RESOURCES, SETTINGS } from './config/config.ts';
export type {
  ApiConfig,
  Config,
  ConfigWith,
  FieldPointer,
  KafkaConfig,
  LogLevel,
  Need,
  PiiConfig,
  RegistryConfig,
  Resource,
} from './config/config.ts';
export { Secret } from './core/secret.ts';
export { CellarstreamError, describeError, isRetryable } from './core/errors.ts';
export type { ErrorCode, ErrorContext } from './core/errors.ts';
export { VERSION } from './core/version.ts';
