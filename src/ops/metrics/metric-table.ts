import { RESOURCES, RULES } from '../../resources/resources.ts';
import { STATUS_FIELDS } from '../../resources/orders/order-status.ts';
import { STATUSES } from './metric-labels.ts';
import type { LabelName } from './metric-labels.ts';

export type MetricType = 'counter' | 'gauge' | 'histogram';

/** Values of labels, to be combined each with each. */
export type LabelGrid = Readonly<Partial<Record<LabelName, readonly string[]>>>;

/** A metric: what it is called, what it says, what it is told apart by. */
export interface Metric {
  readonly type: MetricType;
  readonly name: string;
  readonly help: string;
  /** `account`, and these. */
  readonly labels: readonly LabelName[];
  /** Upper bounds of a histogram's buckets. */
  readonly buckets?: readonly number[];
  /**
   * Series that are there at 0 from the start, so that the first event is an increase. A label that a
   * grid leaves out has all its values; `resource` those that the service reads. Default for counters
   * and histograms: all series; for gauges none, as 0 would say something.
   */
  readonly zeros?: readonly LabelGrid[];
}

const REQUEST_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30];
const WAIT_SECONDS = [0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 300];
const FRESHNESS_SECONDS = [0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3_600, 21_600];
const TRANSACTION_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

const ASKED = { resource: [...RESOURCES, 'login'] };
const WINDOWED = RESOURCES.filter((resource) => RULES[resource].windowed);

/** Every metric of Cellarstream's own. */
export const METRICS = {
  build: {
    type: 'gauge',
    name: 'cellarstream_build_info',
    help: 'Always 1: which version runs, on which Node.',
    labels: ['version', 'node'],
  },
  ready: {
    type: 'gauge',
    name: 'cellarstream_ready',
    help: 'Whether the service is ready, as /readyz says: 1 or 0.',
    labels: [],
  },
  notReady: {
    type: 'gauge',
    name: 'cellarstream_not_ready',
    help: 'Why the service is not ready: 1 for each cause that applies, else 0.',
    labels: ['cause'],
  },
  pollInterval: {
    type: 'gauge',
    name: 'cellarstream_poll_interval_seconds',
    help: 'Pause between two polls, as POLL_INTERVAL_MS sets it; 0: polls as often as the quota allows.',
    labels: [],
  },
  requests: {
    type: 'counter',
    name: 'cellarstream_api_requests_total',
    help: 'Requests to the API that have ended.',
    labels: ['resource', 'status'],
    zeros: [{ ...ASKED, status: STATUSES }],
  },
  requestSeconds: {
    type: 'histogram',
    name: 'cellarstream_api_request_duration_seconds',
    help: 'From a request to the last byte of its answer, or until it was given up.',
    labels: ['resource'],
    buckets: REQUEST_SECONDS,
    zeros: [ASKED],
  },
  waitSeconds: {
    type: 'histogram',
    name: 'cellarstream_quota_wait_seconds',
    help: 'How long a request had waited for its place in the quota.',
    labels: ['resource'],
    buckets: WAIT_SECONDS,
    zeros: [ASKED],
  },
  quotaUsed: {
    type: 'gauge',
    name: 'cellarstream_quota_used_requests',
    help: 'Requests that count against the quota now: those of the last minute, and those under way.',
    labels: ['resource'],
  },
  quotaLimit: {
    type: 'gauge',
    name: 'cellarstream_quota_limit_requests',
    help: 'The quota: most requests in any minute.',
    labels: ['resource'],
  },
  logins: {
    type: 'counter',
    name: 'cellarstream_token_refreshes_total',
    help: 'Logins that gave a token.',
    labels: [],
  },
  tokenIssued: {
    type: 'gauge',
    name: 'cellarstream_token_issued_timestamp_seconds',
    help: 'When the API gave the current token, by the clock of this machine.',
    labels: [],
  },
  tokenExpiry: {
    type: 'gauge',
    name: 'cellarstream_token_expiry_timestamp_seconds',
    help: 'When the current token ends, by the clock of this machine.',
    labels: [],
  },
  clockAhead: {
    type: 'gauge',
    name: 'cellarstream_api_clock_ahead_seconds',
    help: "How far the API's clock is ahead of this machine's, to a second, by the last login that shows it; 0 if the difference is less than two seconds plus the time of that login.",
    labels: [],
  },
  pagesDropped: {
    type: 'counter',
    name: 'cellarstream_pages_dropped_total',
    help: 'Pages that were asked for before their turn and were of no use, because the list had moved.',
    labels: ['resource'],
  },
  recordsRead: {
    type: 'counter',
    name: 'cellarstream_records_read_total',
    help: 'Records that were read and compared with their published images.',
    labels: ['resource', 'lane'],
  },
  recordsUnchanged: {
    type: 'counter',
    name: 'cellarstream_records_unchanged_total',
    help: 'Records that were read and had not changed.',
    labels: ['resource', 'lane'],
  },
  events: {
    type: 'counter',
    name: 'cellarstream_events_published_total',
    help: 'Events of records, committed.',
    labels: ['resource', 'op'],
  },
  statusChanges: {
    type: 'counter',
    name: 'cellarstream_status_changes_published_total',
    help: 'Status changes of orders, committed.',
    labels: ['resource', 'subject', 'field'],
    zeros: Object.entries(STATUS_FIELDS).map(([subject, field]) => ({
      resource: ['orders'],
      subject: [subject],
      field,
    })),
  },
  freshness: {
    type: 'histogram',
    name: 'cellarstream_freshness_seconds',
    help: "Time from a record's `updated_at` to the commit of its event, less the difference of the clocks; of records that were created, or updated with a new `updated_at`, outside of the initial snapshot.",
    labels: ['resource'],
    buckets: FRESHNESS_SECONDS,
  },
  scans: {
    type: 'counter',
    name: 'cellarstream_scans_completed_total',
    help: 'Complete readings that are committed: of a window (`poll`), or of the whole list.',
    labels: ['resource', 'lane'],
    zeros: [{ resource: WINDOWED, lane: ['poll'] }, { lane: ['first-read', 'sweep'] }],
  },
  lastScan: {
    type: 'gauge',
    name: 'cellarstream_last_complete_scan_timestamp_seconds',
    help: 'When the last complete reading was committed; absent before the first.',
    labels: ['resource', 'lane'],
  },
  troubles: {
    type: 'counter',
    name: 'cellarstream_scan_troubles_total',
    help: 'Troubles of readings that may cost records or time.',
    labels: ['resource', 'trouble'],
  },
  staleAnswers: {
    type: 'counter',
    name: 'cellarstream_stale_answers_total',
    help: 'Answers that were older than an answer before them: from a replica that lags, or from a cache.',
    labels: ['resource'],
  },
  sweeps: {
    type: 'counter',
    name: 'cellarstream_sweeps_total',
    help: 'Sweeps that have ended.',
    labels: ['resource', 'deletions'],
  },
  deletesHeld: {
    type: 'gauge',
    name: 'cellarstream_deletes_held_records',
    help: 'Records that are gone from the newest sweep, but too many to be published as deleted (DELETE_LIMIT_PERCENT); absent before the first sweep of this process has ended.',
    labels: ['resource'],
  },
  certificates: {
    type: 'counter',
    name: 'cellarstream_certificates_total',
    help: 'Certificates of complete readings that were published.',
    labels: ['resource', 'proof'],
  },
  exactCertificate: {
    type: 'gauge',
    name: 'cellarstream_exact_certificate_timestamp_seconds',
    help: 'When the newest exact certificate was published; before the first one of this process, when the process began.',
    labels: ['resource'],
  },
  topicDisagreements: {
    type: 'counter',
    name: 'cellarstream_topic_disagreements_total',
    help: 'How often a topic was found to lack events that were published, or to have other live keys: its list is read anew.',
    labels: ['resource'],
  },
  refused: {
    type: 'counter',
    name: 'cellarstream_single_reads_refused_total',
    help: 'Refetches of single records that the API refused.',
    labels: ['resource'],
  },
  firstReadRead: {
    type: 'gauge',
    name: 'cellarstream_first_read_records',
    help: 'Records that the initial snapshot has read; absent if the snapshot was done before this process.',
    labels: ['resource'],
  },
  firstReadExpected: {
    type: 'gauge',
    name: 'cellarstream_first_read_expected_records',
    help: 'Records that the initial snapshot is to read, as the API counts them.',
    labels: ['resource'],
  },
  firstReadDone: {
    type: 'gauge',
    name: 'cellarstream_first_read_complete',
    help: 'Whether the initial snapshot is done: 1 or 0; absent if it was done before this process.',
    labels: ['resource'],
  },
  images: {
    type: 'gauge',
    name: 'cellarstream_images_stored',
    help: 'Records that are published and not deleted: images in the store.',
    labels: ['resource'],
  },
  imagesRestored: {
    type: 'counter',
    name: 'cellarstream_images_restored_total',
    help: 'Images that were read back from Kafka.',
    labels: ['resource'],
  },
  imagesDiscarded: {
    type: 'counter',
    name: 'cellarstream_image_stores_discarded_total',
    help: 'How often the images were damaged and thrown away.',
    labels: [],
  },
  deadLetters: {
    type: 'counter',
    name: 'cellarstream_dead_letters_total',
    help: 'Records that went to dead letters.',
    labels: ['resource', 'reason'],
  },
  schemaId: {
    type: 'gauge',
    name: 'cellarstream_schema_id',
    help: 'The schema that events are written in.',
    labels: ['resource'],
  },
  schemaChanges: {
    type: 'counter',
    name: 'cellarstream_schema_changes_total',
    help: 'How often the schema has changed since this process began.',
    labels: ['resource'],
  },
  transactions: {
    type: 'counter',
    name: 'cellarstream_transactions_total',
    help: 'Transactions that have ended.',
    labels: ['resource', 'outcome'],
  },
  transactionSeconds: {
    type: 'histogram',
    name: 'cellarstream_transaction_duration_seconds',
    help: 'From the first message of a transaction to its end, with the images stored.',
    labels: ['resource'],
    buckets: TRANSACTION_SECONDS,
  },
  messages: {
    type: 'counter',
    name: 'cellarstream_kafka_messages_total',
    help: 'Messages of transactions that were committed, tombstones included and the cursor left out.',
    labels: ['resource'],
  },
  openings: {
    type: 'counter',
    name: 'cellarstream_resource_openings_total',
    help: 'How often a resource was opened, with its cursor in Kafka: once at the start, and after each failed commit.',
    labels: ['resource'],
  },
  takeovers: {
    type: 'counter',
    name: 'cellarstream_takeovers_total',
    help: 'How often a resource was taken over from another instance that had not announced its end.',
    labels: ['resource'],
  },
  retries: {
    type: 'counter',
    name: 'cellarstream_retries_total',
    help: 'Tries that failed and are made again after a pause.',
    labels: ['service', 'resource', 'code'],
    zeros: [
      {
        service: ['login'],
        resource: ['all'],
        code: ['API_UNREACHABLE', 'API_STATUS', 'API_KEY_REJECTED'],
      },
      {
        service: ['api'],
        code: ['API_UNREACHABLE', 'API_STATUS', 'API_ANSWER', 'QUOTA_EXCEEDED', 'TOKEN_REJECTED'],
      },
      { service: ['kafka'], code: ['KAFKA_UNREACHABLE', 'COMMIT_FAILED'] },
      { service: ['kafka'], resource: ['all'], code: ['KAFKA_UNREACHABLE'] },
      { service: ['registry'], code: ['REGISTRY_UNREACHABLE'] },
      { service: ['registry'], resource: ['all'], code: ['REGISTRY_UNREACHABLE'] },
      { service: ['state'], code: ['STATE_FOLDER', 'STATE_DAMAGED'] },
    ],
  },
  failed: {
    type: 'gauge',
    name: 'cellarstream_resource_failed',
    help: 'Whether a resource is stopped until somebody acts: 1 or 0.',
    labels: ['resource'],
    zeros: [{}],
  },
  failures: {
    type: 'counter',
    name: 'cellarstream_resource_failures_total',
    help: 'How often a resource was stopped; it is tried again each minute.',
    labels: ['resource', 'code'],
    zeros: [{ code: ['API_STATUS', 'CURSOR_UNREADABLE', 'KEY_FIELDS', 'REGISTRY_REFUSED'] }],
  },
  resyncs: {
    type: 'counter',
    name: 'cellarstream_resyncs_total',
    help: 'Resync requests.',
    labels: ['resource', 'result'],
  },
  signalsIgnored: {
    type: 'counter',
    name: 'cellarstream_signals_ignored_total',
    help: 'Messages in the topic of signals that are no signals, and are ignored.',
    labels: [],
  },
  signalFailures: {
    type: 'counter',
    name: 'cellarstream_signal_failures_total',
    help: 'How often signals could not be read or answered.',
    labels: [],
  },
} as const satisfies Record<string, Metric>;

export type MetricTable = typeof METRICS;

/**
 * What prom-client tells of the process that dashboards and alerts rely on; there is more of it, and
 * what there is depends on the system. With the label `account` too.
 */
export const PROCESS_METRICS = [
  ['process_start_time_seconds', 'gauge', 'When the process was started.'],
  ['process_cpu_seconds_total', 'counter', 'Time of processors used.'],
  ['process_resident_memory_bytes', 'gauge', 'Memory of the process.'],
  ['process_open_fds', 'gauge', 'Open files and connections.'],
  ['process_max_fds', 'gauge', 'Most open files and connections that are allowed.'],
  ['nodejs_heap_size_used_bytes', 'gauge', "Memory of JavaScript's objects."],
  ['nodejs_heap_size_total_bytes', 'gauge', 'Memory that is set aside for them.'],
  ['nodejs_external_memory_bytes', 'gauge', 'Memory of buffers.'],
  [
    'nodejs_eventloop_lag_p99_seconds',
    'gauge',
    'How long a timer of 50 ms took since the last scrape: of 100, at most one took longer.',
  ],
  ['nodejs_gc_duration_seconds', 'histogram', 'Pauses for the collection of garbage, by `kind`.'],
] as const satisfies readonly (readonly [name: string, type: MetricType, help: string])[];
