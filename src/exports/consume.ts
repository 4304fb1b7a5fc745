/**
 * Consuming the topics: replays, consumer groups, an in-memory table of the newest images, and status changes of orders. The guide is
 * `docs/consumers.md`.
 *
 * @module cellarstream/consume
 */

// Start here
export { subscribeGroup } from '../consumers/subscribe-group.ts';
export { replay } from '../consumers/replay.ts';
export { table } from '../consumers/table.ts';
export { orderStatusChanges } from '../consumers/order-status-changes.ts';

// Topics
export { topicsUnder } from '../consumers/wine-topics.ts';
export type { Topics } from '../consumers/wine-topics.ts';
export { readEventsAs } from '../consumers/topic.ts';
export type { Topic, ValueIn, ValueReader } from '../consumers/topic.ts';

// Messages
export type { Consumed } from '../consumers/consumed.ts';

// Groups
export type {
  SubscribeGroupByNameOptions,
  SubscribeGroupOptions,
} from '../consumers/subscribe-group.ts';
export type {
  DeadLettered,
  GroupRetry,
  Handled,
  Handler,
  RetryOptions,
} from '../consumers/handling.ts';

// Replays
export { positionAfter } from '../consumers/position.ts';
export type { From, To, TopicPosition } from '../consumers/position.ts';
export type { ReplayByNameOptions, ReplayOptions, Source } from '../consumers/replay.ts';

// Certificates
export type { CertificatesOptions, PublishedCertificate } from '../consumers/certificates.ts';
export type {
  CheckedCertificate,
  CheckedPartition,
  Checked,
} from '../consumers/check-certificate.ts';

// Tables
export type { Table, TableChange, TableOptions } from '../consumers/table.ts';

// Status changes
export type {
  OneOf,
  OrderStatusChangesOptions,
  StatusChangeFilter,
} from '../consumers/order-status-changes.ts';
