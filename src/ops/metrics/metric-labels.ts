import { statusFieldName } from '../../description/description.ts';
import type { ApiDescription } from '../../description/description.ts';
import type { ErrorCode } from '../../core/errors.ts';
import type { Committed, Lane, Resynced } from '../../observe/hooks.ts';
import { READING_LEVELS } from '../../schemas/events/certificate.ts';
import type { Certificate } from '../../schemas/events/certificate.ts';
import type { Operation } from '../../streams/diff/change.ts';
import type { RejectReason } from '../../streams/records/records.ts';
import { CAUSES } from '../status/causes.ts';
import { SCAN_TROUBLES } from '../status/warnings.ts';

export interface Label {
  /** Meaning of the label, in Markdown. */
  readonly help: string;
  /**
   * Possible values of the label, besides {@link OTHER}. Undefined if they depend on the API's description (see {@link labelValues}), or if
   * any value is allowed.
   */
  readonly values?: readonly string[];
}

/** Label value for all unknown values, so that input from outside cannot create an unbounded number of series. */
export const OTHER = 'other';

/** Values of the label `status` whose series start at 0. `none` stands for a request without a response. */
export const STATUSES = [
  ...['200', '400', '401', '403', '404', '408', '429', '500', '502', '503', '504'],
  'none',
] as const;
const STATUS_CLASSES = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const;

export function statusLabel(status: number | undefined): string {
  if (status === undefined) return 'none';
  const text = String(status);
  if (STATUSES.some((known) => known === text)) return text;
  return `${Math.floor(status / 100)}xx`; // an unknown class becomes OTHER in boundedLabel
}

export const LABELS = {
  account: { help: '`ACCOUNT_NAME`' },
  version: { help: 'the version of Cellarstream' },
  node: { help: 'the version of Node' },
  resource: {
    help: 'the list; `login` for requests and quotas of the login; `all` for what concerns no single list: a quota that all lists share, a wait of the whole service',
  },
  status: {
    help: "the response's HTTP status, the class of a rare one, or `none` when there was no response",
    values: [...STATUSES, ...STATUS_CLASSES],
  },
  lane: {
    help: 'what a record was read for: a poll, the initial snapshot, a sweep, a refetch of single records, a resync request',
    values: valuesOf<Lane>({ poll: 0, 'first-read': 0, sweep: 0, reread: 0, resync: 0 }),
  },
  op: {
    help: '`r`: read by the initial snapshot or published again; `c`: created; `u`: updated; `d`: deleted',
    values: valuesOf<Operation>({ r: 0, c: 0, u: 0, d: 0 }),
  },
  subject: { help: 'the kind of object that has the status' },
  field: { help: 'the name of the status field in that object' },
  trouble: {
    help: '`stepped-back`: a page has no anchor, the previous page is read again; `adrift`: too many steps back, the scan starts over; `expired`: the server refused the cursor of the next page, the scan starts over; `shifted`: a page repeats records of the page before it although pages do not overlap, records may be missing; `reordered`: the list has no total order; `short`: fewer records than the total of the list; `unsettled`: still so after the last repetition, records may be missing; `endless`: the server reports a next page forever, the scan ends; `gap`: a record was left out, as every page with it fails; `misplaced`: the server changes `offset`, the list is read in pages whose offset is a multiple of their size; `blind`: these can not overlap; `smaller`: large pages fail, smaller ones are requested; `cut`: the API seems to serve only the first part of the list, so that its last records are found by polls alone',
    values: SCAN_TROUBLES,
  },
  service: {
    help: 'what did not answer',
    values: ['login', 'api', 'kafka', 'registry', 'state'],
  },
  code: {
    help: 'the code of the error',
    values: valuesOf<ErrorCode>({
      SETTINGS: 0,
      API_KEY_REJECTED: 0,
      TOKEN_REJECTED: 0,
      QUOTA_EXCEEDED: 0,
      LEASE_OVER: 0,
      NO_PERMITS: 0,
      API_STATUS: 0,
      API_ANSWER: 0,
      API_UNREACHABLE: 0,
      TLS_REFUSED: 0,
      KAFKA_UNREACHABLE: 0,
      COMMIT_FAILED: 0,
      FENCED: 0,
      KAFKA_REFUSED: 0,
      KEY_FIELDS: 0,
      CURSOR_UNREADABLE: 0,
      TOPIC_SETTINGS: 0,
      TOPIC_CHANGED: 0,
      POSITION: 0,
      VALUE_UNREADABLE: 0,
      REGISTRY_UNREACHABLE: 0,
      REGISTRY_REFUSED: 0,
      STATE_LOCKED: 0,
      STATE_FOLDER: 0,
      STATE_DAMAGED: 0,
      SERVICES: 0,
    }),
  },
  outcome: {
    help: '`failed`: the transaction ended with any other error. Such an error does not say whether Kafka aborted or committed the transaction, so the service reads the outcome back; `fenced`: another producer has fenced this one, or the transaction took too long',
    values: valuesOf<Committed['outcome']>({ committed: 0, failed: 0, fenced: 0 }),
  },
  reason: {
    help: 'why a record can not be published',
    values: valuesOf<RejectReason>({
      'not-an-object': 0,
      'no-key': 0,
      'conflicting-duplicate': 0,
      'too-large': 0,
      unreadable: 0,
    }),
  },
  proof: {
    help: 'how much the certificate proves: see [certificates.md](certificates.md)',
    values: valuesOf<Certificate['proof']>({ exact: 0, complete: 0, unsettled: 0 }),
  },
  deletions: {
    help: 'whether the sweep proves which records were deleted; `never`: no sweep of the list can, by its description',
    values: ['known', 'unknown', 'never'],
  },
  level: {
    help: 'the evidence that a full scan read the whole list: see [what-can-be-promised.md](what-can-be-promised.md#levels-of-a-full-scan)',
    values: READING_LEVELS,
  },
  result: {
    help: 'the state of the resync request',
    values: valuesOf<Resynced['status']>({ begun: 0, done: 0, refused: 0, failed: 0 }),
  },
  cause: {
    help: 'why the service is not ready',
    values: CAUSES,
  },
} as const satisfies Record<string, Label>;

export type LabelName = keyof typeof LABELS;

/** Allowed values of labels, besides {@link OTHER}. Labels without an entry may have any value. */
export type LabelValues = Readonly<Partial<Record<string, readonly string[]>>>;

/** Returns the allowed values of all labels for an API with this description, by the label's name. */
export function labelValues({ lists }: ApiDescription): LabelValues {
  const subjects = lists.flatMap(({ statuses }) => statuses?.subjects ?? []);
  const fields = subjects.flatMap((subject) => subject.fields.map(statusFieldName));
  return {
    ...Object.fromEntries(
      Object.entries<Label>(LABELS).map(([name, { values }]) => [name, values]),
    ),
    resource: [...lists.map(({ name }) => name), 'login', 'all'],
    subject: [...new Set(subjects.map(({ name }) => name))],
    field: [...new Set(fields)],
  };
}

export function boundedLabel(allowed: LabelValues, name: string, value: string): string {
  const values = allowed[name];
  return values === undefined || values.includes(value) ? value : OTHER;
}

/** Returns all members of the union type `T` as an array. They are the keys of `values`, so that the compiler reports a missing one. */
function valuesOf<T extends string>(values: Readonly<Record<T, 0>>): readonly T[] {
  return Object.keys(values) as T[];
}
