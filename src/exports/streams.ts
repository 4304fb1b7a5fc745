/**
 * The RxJS operators that the service is built from, for pipelines of your own. They do not depend on Kafka. The exports are in the order
 * in which records flow through them.
 *
 * @module cellarstream/streams
 */

// Start here
export { pages } from '../streams/paging/pages.ts';
export { diff } from '../streams/diff/diff.ts';

// Token
export { login } from '../streams/http/login.ts';
export type { LoginOptions, RefreshTokens, Token } from '../streams/http/login.ts';
export type { Authorize } from '../streams/http/authorization.ts';
export type { PlannedRequest } from '../streams/http/request-plan.ts';
export type { Credentials } from '../description/credentials.ts';
export { tokenSource } from '../streams/http/token.ts';
export { staticCredentials } from '../streams/http/static-credentials.ts';
export type { StaticCredentialsOptions } from '../streams/http/static-credentials.ts';
export type { Variables } from '../description/template.ts';
export type { TokenSource, TokenSourceOptions } from '../streams/http/token.ts';
export type {
  RequestTimes,
  TokenOutcome,
  TokenUse,
  TokenVerdict,
} from '../streams/http/token-life.ts';

// Quota
export { during, tokenBucket } from '../streams/quota/token-bucket.ts';
export type {
  Gate,
  LaneLimit,
  LaneOptions,
  Limit,
  TokenBucket,
  TokenBucketOptions,
} from '../streams/quota/token-bucket.ts';

// Request
export { listRequest } from '../streams/decode/list-request.ts';
export type { ListRequestOptions } from '../streams/decode/list-request.ts';
export type { PageRequestOptions } from '../streams/http/page-request.ts';
export type { Answer, ListRequest, ReportedPlace } from '../streams/decode/response.ts';
export type {
  NextPlace,
  PagePlace,
  PagePlan,
  PlanFinding,
  SeenPage,
} from '../streams/http/page-plan.ts';
export type { ListQuery, RequestPlanOptions } from '../streams/http/request-plan.ts';
export type { AnswerSeen, RequestHooks } from '../streams/http/http.ts';
export type { Body, BodyPool } from '../streams/http/body.ts';
export { AnswerAges } from '../streams/http/response-age.ts';
export type { AnswerAge, DatedAnswer } from '../streams/http/response-age.ts';
export { LogicalClock } from '../streams/http/logical-clock.ts';
export type { Span } from '../streams/http/logical-clock.ts';
export { backoff } from '../streams/flow/backoff.ts';
export type { BackoffOptions, Retry } from '../streams/flow/backoff.ts';

// Pages
export type { PagesOptions, ScanPage } from '../streams/paging/pages.ts';
export type { ScanTrouble } from '../streams/paging/scan-trouble.ts';
export type { ReadAhead } from '../streams/paging/read-ahead.ts';
export type { Anchor, ContentDigests, Position } from '../streams/paging/anchors.ts';
export type { LeftOut } from '../streams/paging/standstill.ts';
export { poll } from '../streams/paging/poll.ts';
export type { PollOptions, PollPage, SentWindow, Window } from '../streams/paging/poll.ts';
export { ServerClock } from '../streams/http/server-clock.ts';

// Records
export { keyOfFields } from '../streams/records/key-of.ts';
export type { KeyOf } from '../streams/records/key-of.ts';
export { Stamps } from '../streams/records/stamps.ts';
export type { TimeFormat } from '../description/time-format.ts';
export { keyRecords, splitRecords } from '../streams/records/records.ts';
export type {
  RejectedJson,
  RejectedRecord,
  RejectedText,
  RejectReason,
  SplitRecords,
} from '../streams/records/records.ts';
export type {
  ImageCodec,
  KeyedRecord,
  KnownMember,
  KnownRun,
  PageRecord,
  PageRun,
  PayloadDigest,
  RecordBytes,
  RecordFacts,
  RecordImage,
} from '../streams/records/page-record.ts';
export type { PagePart, PageRecords } from '../streams/records/page-records.ts';
export type { KeyIndex } from '../streams/records/key-index.ts';

// Diff
export type { Difference, DiffOptions, Images, ReadRecords } from '../streams/diff/diff.ts';
export type { Change, Operation } from '../streams/diff/change.ts';
export { orderStatus } from './order-status.ts';
export type { StatusChange } from './order-status.ts';
export type { STATUS_FIELDS, StatusField } from '../description/wine/order-status.ts';
export type {
  Confirmations,
  ConfirmationsOptions,
  ReplacedImage,
  Sighting,
  Unconfirmed,
} from '../streams/diff/confirmations.ts';
export type { Identities } from '../streams/diff/changed-paths.ts';
export { NewestReads } from '../streams/diff/newest.ts';
export type { SeenMember, Verdict } from '../streams/diff/newest.ts';
export type { VolatileFields } from '../streams/records/volatile-fields.ts';

// Sinks
export { consoleSink } from '../sinks/console.ts';
export type { ConsoleSinkOptions } from '../sinks/console.ts';
