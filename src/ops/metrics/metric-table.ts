import { statusFieldName } from '../../description/description.ts';
import type { ListDescription } from '../../description/description.ts';
import { STATUSES } from './metric-labels.ts';
import type { LabelName } from './metric-labels.ts';

export type MetricType = 'counter' | 'gauge' | 'histogram';

/**
 * Selection of series of a metric, by lists of label values: every combination of these values is one series. A label that is omitted
 * stands for all of its values.
 */
export type LabelGrid = Readonly<Partial<Record<LabelName, readonly string[]>>>;

export interface Metric {
  readonly type: MetricType;
  readonly name: string;
  readonly help: string;
  /** Labels of the metric, except `account`, which every metric has. */
  readonly labels: readonly LabelName[];
  /** Upper bounds of a histogram's buckets, in seconds. */
  readonly buckets?: readonly number[];
  /**
   * Returns the series that start with the value 0, so that the first event shows as an increase. If a grid omits the label `resource`, it
   * selects the series of all `lists`. Default: all series of a counter or histogram, none of a gauge.
   */
  readonly zeros?: (lists: readonly ListDescription[]) => readonly LabelGrid[];
}

// NoInfer: a metric without labels has none, instead of all that its table allows.
export const metricOf =
  <T extends MetricType>(type: T) =>
  <const L extends readonly string[] = readonly []>(
    name: string,
    help: string,
    labels: L | [] = [],
    more: Pick<Metric, 'buckets' | 'zeros'> = {},
  ) => ({ type, name, help, labels: labels as NoInfer<L>, ...more });
const counter = metricOf('counter');
const gauge = metricOf('gauge');
const histogram = metricOf('histogram');

const namesOf = (lists: readonly ListDescription[]) => lists.map(({ name }) => name);
const requestTargets = (lists: readonly ListDescription[]) => [
  { resource: [...namesOf(lists), 'login'] },
];

export const METRICS = {
  build: gauge('cellarstream_build_info', 'Always 1: which version runs, on which Node.', [
    'version',
    'node',
  ]),
  ready: gauge('cellarstream_ready', 'Whether the service is ready, as /readyz says: 1 or 0.'),
  notReady: gauge(
    'cellarstream_not_ready',
    'Why the service is not ready: 1 for each cause that applies, else 0.',
    ['cause'],
  ),
  pollInterval: gauge(
    'cellarstream_poll_interval_seconds',
    'Pause between two polls, as POLL_INTERVAL_MS sets it; 0: polls as often as the quota allows.',
  ),
  requests: counter(
    'cellarstream_api_requests_total',
    'Requests to the API that have ended.',
    ['resource', 'status'],
    { zeros: (lists) => requestTargets(lists).map((each) => ({ ...each, status: STATUSES })) },
  ),
  requestSeconds: histogram(
    'cellarstream_api_request_duration_seconds',
    'Time from sending a request to the last byte of its response, or until it was given up.',
    ['resource'],
    { buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30], zeros: requestTargets },
  ),
  waitSeconds: histogram(
    'cellarstream_quota_wait_seconds',
    'How long a request waited for the quota.',
    ['resource'],
    { buckets: [0.01, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 300], zeros: requestTargets },
  ),
  quotaUsed: gauge(
    'cellarstream_quota_used_requests',
    'Requests that count against the quota now: those of the last minute, and those in flight.',
    ['resource'],
  ),
  quotaLimit: gauge(
    'cellarstream_quota_limit_requests',
    'The quota: most requests in any minute.',
    ['resource'],
  ),
  logins: counter('cellarstream_token_refreshes_total', 'Logins that gave a token.'),
  tokenIssued: gauge(
    'cellarstream_token_issued_timestamp_seconds',
    'When the API gave the current token, by the clock of this machine.',
  ),
  tokenExpiry: gauge(
    'cellarstream_token_expiry_timestamp_seconds',
    'When the current token expires, by the clock of this machine.',
  ),
  clockAhead: gauge(
    'cellarstream_api_clock_ahead_seconds',
    "How far the API's clock is ahead of this machine's, to a second, by the last login that shows it; 0 if the difference is less than two seconds plus the time of that login.",
  ),
  pagesDropped: counter(
    'cellarstream_pages_dropped_total',
    'Pages that were read ahead in vain, because the list had changed.',
    ['resource'],
  ),
  recordsRead: counter(
    'cellarstream_records_read_total',
    'Records that were read and compared with their published images.',
    ['resource', 'lane'],
  ),
  recordsUnchanged: counter(
    'cellarstream_records_unchanged_total',
    'Records that were read and had not changed.',
    ['resource', 'lane'],
  ),
  events: counter('cellarstream_events_published_total', 'Events of records, committed.', [
    'resource',
    'op',
  ]),
  statusChanges: counter(
    'cellarstream_status_changes_published_total',
    'Status changes of records, committed.',
    ['resource', 'subject', 'field'],
    {
      zeros: (lists) =>
        lists.flatMap(({ name, statuses }) =>
          (statuses?.subjects ?? []).map((subject) => ({
            resource: [name],
            subject: [subject.name],
            field: subject.fields.map(statusFieldName),
          })),
        ),
    },
  ),
  freshness: histogram(
    'cellarstream_freshness_seconds',
    'Time from the modification time of a record to the commit of its event, less the difference of the clocks; of records that were created, or updated with a new modification time, outside of the initial snapshot.',
    ['resource'],
    { buckets: [0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3_600, 21_600] },
  ),
  scans: counter(
    'cellarstream_scans_completed_total',
    'Scans that were completed and committed: of a window (`poll`), or of the whole list.',
    ['resource', 'lane'],
    {
      zeros: (lists) => [
        { resource: namesOf(lists.filter(({ dates }) => dates !== undefined)), lane: ['poll'] },
        { lane: ['first-read', 'sweep'] },
      ],
    },
  ),
  lastScan: gauge(
    'cellarstream_last_complete_scan_timestamp_seconds',
    'When the last complete scan was committed; absent before the first.',
    ['resource', 'lane'],
  ),
  troubles: counter(
    'cellarstream_scan_troubles_total',
    'Troubles of scans that may cost records or time.',
    ['resource', 'trouble'],
  ),
  staleAnswers: counter(
    'cellarstream_stale_answers_total',
    'Responses that showed records in an earlier state than the published one, or that came from a cache.',
    ['resource'],
  ),
  sweeps: counter('cellarstream_sweeps_total', 'Sweeps that have ended.', [
    'resource',
    'deletions',
  ]),
  deletesHeld: gauge(
    'cellarstream_deletes_held_records',
    'Records that are missing from the newest sweep, but too many to be published as deleted (DELETE_LIMIT_PERCENT); absent before the first sweep of this process has ended.',
    ['resource'],
  ),
  certificates: counter(
    'cellarstream_certificates_total',
    'Certificates of full scans that were published.',
    ['resource', 'proof'],
  ),
  readingLevel: gauge(
    'cellarstream_reading_level',
    'Evidence that the newest full scan read the whole list: 1 for its level, 0 for the others; absent before the first full scan of this process.',
    ['resource', 'level'],
  ),
  exactCertificate: gauge(
    'cellarstream_exact_certificate_timestamp_seconds',
    'When the newest exact certificate was published; before the first one of this process, when the process began.',
    ['resource'],
  ),
  topicDisagreements: counter(
    'cellarstream_topic_disagreements_total',
    'How often a topic lacked published events, or had other live keys than were published: its list is read again.',
    ['resource'],
  ),
  refused: counter(
    'cellarstream_single_reads_refused_total',
    'Refetches of single records that the API refused.',
    ['resource'],
  ),
  firstReadRead: gauge(
    'cellarstream_first_read_records',
    'Records that the initial snapshot has read; absent if the snapshot was done before this process.',
    ['resource'],
  ),
  firstReadExpected: gauge(
    'cellarstream_first_read_expected_records',
    'Records that the initial snapshot has to read in all, as the API counts them.',
    ['resource'],
  ),
  firstReadDone: gauge(
    'cellarstream_first_read_complete',
    'Whether the initial snapshot is done: 1 or 0; absent if it was done before this process.',
    ['resource'],
  ),
  images: gauge(
    'cellarstream_images_stored',
    'Records that are published and not deleted: images in the store.',
    ['resource'],
  ),
  imagesRestored: counter(
    'cellarstream_images_restored_total',
    'Images that were restored from Kafka.',
    ['resource'],
  ),
  imagesDiscarded: counter(
    'cellarstream_image_stores_discarded_total',
    'How often the image store was damaged and discarded.',
  ),
  deadLetters: counter('cellarstream_dead_letters_total', 'Records that went to dead letters.', [
    'resource',
    'reason',
  ]),
  schemaId: gauge('cellarstream_schema_id', 'Id of the schema that events are written with.', [
    'resource',
  ]),
  schemaChanges: counter(
    'cellarstream_schema_changes_total',
    'How often the schema has changed since this process began.',
    ['resource'],
  ),
  transactions: counter('cellarstream_transactions_total', 'Transactions that have ended.', [
    'resource',
    'outcome',
  ]),
  transactionSeconds: histogram(
    'cellarstream_transaction_duration_seconds',
    'Time from the first message of a transaction to its end, with the images stored.',
    ['resource'],
    { buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] },
  ),
  messages: counter(
    'cellarstream_kafka_messages_total',
    'Messages of transactions that were committed, tombstones included and the cursor left out.',
    ['resource'],
  ),
  openings: counter(
    'cellarstream_resource_openings_total',
    'How often a resource was opened, with its cursor in Kafka: once at the start, and after each failed commit.',
    ['resource'],
  ),
  takeovers: counter(
    'cellarstream_takeovers_total',
    'How often a resource was claimed from another instance that had not released it.',
    ['resource'],
  ),
  retries: counter(
    'cellarstream_retries_total',
    'Failed tries that are repeated after a pause.',
    ['service', 'resource', 'code'],
    {
      zeros: () => [
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
  ),
  failed: gauge(
    'cellarstream_resource_failed',
    'Whether a resource is stopped until an operator resolves its error: 1 or 0.',
    ['resource'],
    { zeros: () => [{}] },
  ),
  failures: counter(
    'cellarstream_resource_failures_total',
    'How often a resource was stopped by an error; it is retried each minute.',
    ['resource', 'code'],
    {
      zeros: () => [
        { code: ['API_STATUS', 'CURSOR_UNREADABLE', 'KEY_FIELDS', 'REGISTRY_REFUSED'] },
      ],
    },
  ),
  resyncs: counter('cellarstream_resyncs_total', 'Resync requests.', ['resource', 'result']),
  signalsIgnored: counter(
    'cellarstream_signals_ignored_total',
    'Messages in the signals topic that are not valid signals and are ignored.',
  ),
  signalFailures: counter(
    'cellarstream_signal_failures_total',
    'How often signals could not be read or answered.',
  ),
} satisfies Record<string, Metric>;

export type MetricTable = typeof METRICS;
