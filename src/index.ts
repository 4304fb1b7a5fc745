/**
 * Cellarstream: from a rate-limited, paged REST API to change events. The operators that the service
 * is made of, in the order in which records flow through them. The sandbox API is at
 * `cellarstream/sandbox`.
 *
 * @module cellarstream
 */

// Token
export { login } from './streams/login.ts';
export type { LoginOptions, Token } from './streams/login.ts';
export { tokenSource } from './streams/token.ts';
export type { TokenSource, TokenSourceOptions } from './streams/token.ts';

// Quota
export { during, tokenBucket } from './streams/token-bucket.ts';
export type {
  LaneLimit,
  LaneOptions,
  Limit,
  TokenBucket,
  Gate,
  TokenBucketOptions,
} from './streams/token-bucket.ts';
export { steadyScheduler } from './clock.ts';

// Request
export type { AnswerSeen } from './streams/http.ts';
export { listRequest } from './streams/request.ts';
export type { ListRequestOptions, Refusals } from './streams/request.ts';
export type { Answer, ListQuery, ListRequest, Pagination } from './streams/answer.ts';
export { exchange } from './streams/http.ts';
export type { HttpAnswer, HttpRequest } from './streams/http.ts';
export { backoff } from './streams/backoff.ts';
export type { BackoffOptions, Retry } from './streams/backoff.ts';
export { readClock } from './streams/read-clock.ts';
export type { ReadClock, Span } from './streams/read-clock.ts';

// Pages
export { pages } from './streams/pages.ts';
export type { PagesOptions, ScanPage, ScanTrouble } from './streams/pages.ts';
export { BEGINNING, join } from './streams/anchors.ts';
export type { Anchor, Joint, JoinOptions, Position } from './streams/anchors.ts';
export { leftOut } from './streams/left-out.ts';
export type { LeftOut } from './streams/left-out.ts';
export { volatileFields } from './streams/volatile-fields.ts';
export type { VolatileFields } from './streams/volatile-fields.ts';
export { room } from './streams/room.ts';
export type { Room } from './streams/room.ts';
export { poll, window } from './streams/poll.ts';
export type { PollOptions, PollPage, Window } from './streams/poll.ts';
export { sweeps } from './streams/sweeps.ts';
export type { Held, KnownRecords, SweepsOptions, SweepStep, Unseen } from './streams/sweeps.ts';
export { NO_SWEEP, nextSweep, seenSince, sweepAfter } from './streams/sweep-progress.ts';
export type { ExactSweep, Proof, SweepProgress, SweptPage } from './streams/sweep-progress.ts';
export { serverClock } from './streams/server-clock.ts';
export type { ServerClock } from './streams/server-clock.ts';

// Records
export { HMAC_PREFIX, MASK, personalFields, WAYS } from './streams/personal-fields.ts';
export type { PersonalField, PersonalFields, Way } from './streams/personal-fields.ts';
export { hidingList } from './streams/hiding-list.ts';
export { hidingChange } from './streams/hiding-change.ts';
export { keyOfFields, keyRecords } from './streams/records.ts';
export type {
  KeyedRecord,
  KeyOf,
  RejectedJson,
  RejectedRecord,
  RejectedText,
  RejectReason,
} from './streams/records.ts';
export { UnreadableRecord } from './streams/unreadable-record.ts';
export { unreadableTexts } from './streams/unreadable-texts.ts';
export type { UnreadableTexts } from './streams/unreadable-texts.ts';
export { jsonOf, SentRecord } from './streams/sent-record.ts';
export type { ElementReader, Sent, SentText } from './streams/sent-record.ts';
export { FreshRecord, freshReader, freshRecords } from './streams/fresh-record.ts';
export type { Encoded, EncodedElement, FreshOptions, FreshReader } from './streams/fresh-record.ts';
export { KnownRecord, recogniser } from './streams/known-record.ts';
export type { Recogniser, RecogniserOptions } from './streams/known-record.ts';
export type { Element } from './schemas/page-elements.ts';
export { chooseKeyFields } from './streams/key-fields.ts';
export type { KeyChoice } from './streams/key-fields.ts';
export { gatherFirst } from './streams/gather-first.ts';
export {
  canonicalJson,
  isJsonObject,
  JsonNumber,
  parseJson,
  stringifyJson,
} from './schemas/json.ts';
export type { JsonObject, JsonValue } from './schemas/json.ts';

// Diff
export { diff, instantOf, updatedAtOf } from './streams/diff.ts';
export type { Change, ImageCodec, Operation } from './streams/change.ts';
export type {
  Difference,
  DiffOptions,
  EncodedRecord,
  Images,
  ReadRecords,
} from './streams/diff.ts';
export { newestReads } from './streams/newest.ts';
export type { NewestReads, Verdict } from './streams/newest.ts';
export { changedPaths } from './streams/changed-paths.ts';
export { ORDER_IDENTITIES } from './streams/identity.ts';
export type { Identities } from './streams/identity.ts';

// Status
export { orderStatus, STATUS_FIELDS, statusChanges } from './streams/order-status.ts';
export type { StatusChange, StatusField, StatusSubject } from './streams/order-status.ts';

// Encode
export { growSchema } from './schemas/infer.ts';
export type { GrowOptions } from './schemas/infer.ts';
export { createRecordCodec } from './schemas/record-codec.ts';
export type { RecordCodec, Transcoded } from './schemas/record-codec.ts';
export { createEnvelopeCodec, envelopeCodec, envelopeSchema } from './schemas/envelope.ts';
export type {
  ChangeEvent,
  ChangeFacts,
  EnvelopeCodec,
  EventImages,
  EventSource,
  Op,
} from './schemas/envelope.ts';
export { toJson } from './schemas/to-json.ts';
export type { ImagesOf } from './schemas/to-json.ts';
export { orderSchema } from './schemas/order.ts';
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
} from './schemas/order-type.ts';
export { orderStatusChangeCodec } from './schemas/order-status-change.ts';
export type { OrderStatusChange } from './schemas/order-status-change.ts';
export { deadLetterCodec } from './schemas/dead-letter.ts';
export type { DeadLetter } from './schemas/dead-letter.ts';
export type { FlatCodec } from './schemas/flat-codec.ts';
export type {
  ArraySchema,
  AvroType,
  FieldSchema,
  LogicalSchema,
  MapSchema,
  RecordSchema,
} from './schemas/avro-schema.ts';
export { createRegistry } from './schemas/registry.ts';
export type { RegisteredSchema, Registry } from './schemas/registry.ts';
export type { RegistryOptions } from './schemas/registry-http.ts';
export { frame, unframe } from './schemas/wire.ts';
export type { Framed } from './schemas/wire.ts';

// Publish
export { topicNames, topicTable, valueSubject } from './schemas/topics.ts';
export type { CleanupPolicy, TopicNames, TopicSpec, TopicTableOptions } from './schemas/topics.ts';
export { ensureTopics } from './sinks/kafka-topics.ts';
export type { TopicFinding } from './sinks/topic-findings.ts';
export type { Gap, LostEvents } from './sinks/lost-events.ts';
export type { TopicsOptions } from './sinks/kafka-topics.ts';
export { openKafkaProducer } from './sinks/kafka-producer.ts';
export type { KafkaProducerOptions } from './sinks/kafka-producer.ts';
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
export { jsonEvents, orderEvents, topicsUnder } from './consumers/topic.ts';
export type { Topic, Topics, ValueIn, ValueReader } from './consumers/topic.ts';
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
} from './hooks.ts';
export type { KeyedStatusChange } from './publisher.ts';
export { DEFAULTS, loadConfig, LOG_LEVELS, RESOURCES, SETTINGS } from './config.ts';
export type {
  ApiConfig,
  Config,
  ConfigOptions,
  ConfigWith,
  FieldPointer,
  KafkaConfig,
  LogLevel,
  Need,
  PiiConfig,
  RegistryConfig,
  Resource,
} from './config.ts';
export { Secret } from './secret.ts';
export { CellarstreamError, describeError, isRetryable } from './errors.ts';
export type { ErrorCode, ErrorContext } from './errors.ts';
export { VERSION } from './version.ts';
