import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { AccountConfig } from '../config/accounts.ts';
import { describeError } from '../core/errors.ts';
import { objectIn } from '../core/http-text.ts';
import type { AccountFigures } from '../observe/fleet-view.ts';
import { shortened } from '../ops/status/shortened.ts';
import type { Message } from '../sinks/sink.ts';

const NAME = z.string().min(1).max(200);
const COUNT = z.number().min(0);
// Later versions may add fields; unknown ones are ignored.
const FIGURES: z.ZodType<AccountFigures> = z.object({
  at: z.number(),
  ready: z.boolean(),
  reasons: z.array(z.string()).readonly(),
  causes: z.array(z.string()).readonly(),
  lagMs: COUNT.nullable(),
  lookedAt: z.number().nullable(),
  quota: z.object({ name: z.string(), used: COUNT, limit: COUNT }).nullable(),
  eventsPerSecond: COUNT,
  firstRead: z.object({ read: COUNT, total: COUNT }).nullable(),
});
const ACCOUNT_REPORT = z.object({
  /** Load of the account: 1 normally, more while initial snapshots run, less in quarantine. */
  weight: z.number().positive(),
  /** Prefix of the account's topics, if its file sets `TOPIC_PREFIX`. */
  prefix: z.string().optional(),
  /** Error because of which the account is not served, at most {@link MAX_TEXT} characters; left out if there is none. */
  failed: z.string().optional(),
  /** Summary of the account's readiness, lag, use of the quota, and progress; left out if the account is not running. */
  figures: FIGURES.optional(),
});
const REPORT = z.object({
  type: z.literal('reports'),
  instance: NAME,
  name: NAME,
  at: z.iso.datetime(),
  /** Accounts that the instance serves or that are assigned to it, by account name. */
  accounts: z.record(NAME, ACCOUNT_REPORT),
});

/**
 * Message in the fleet's topic with the state of an instance's accounts, mainly for load balancing and for operators. It does not prove
 * ownership: a fenced instance can still write it.
 */
export type Report = z.infer<typeof REPORT>;
export type AccountReport = z.infer<typeof ACCOUNT_REPORT>;

/** Prefix of the Kafka keys of reports. The key of any other message is an account name, which contains no slash. */
const PREFIX = 'instance/';

export function reportMessage(topic: string, report: Report): Message {
  return { topic, key: PREFIX + report.instance, value: Buffer.from(JSON.stringify(report)) };
}

export function reportTombstone(topic: string, instance: string): Message {
  return { topic, key: PREFIX + instance, value: null };
}

/**
 * Applies a message of the fleet's topic to `reports`, which has the newest report of each instance, by instance id. A tombstone removes
 * the instance's report. Messages other than reports are ignored.
 */
export function applyReport(
  reports: Map<string, Report>,
  { key, value }: { readonly key: Buffer | string | null; readonly value: Buffer | null },
): void {
  const name = key?.toString() ?? '';
  if (!name.startsWith(PREFIX)) return;
  if (!value) return void reports.delete(name.slice(PREFIX.length));
  const report = REPORT.safeParse(objectIn(value.toString())).data;
  if (report) reports.set(report.instance, report);
}

/**
 * Maximum length of a text in a report, in characters. It keeps the report of a thousand failing accounts below half of a message's maximum
 * size.
 */
const MAX_TEXT = 200;

export interface AccountReportInput {
  readonly config: Pick<AccountConfig, 'account' | 'topics'>;
  readonly weight: number;
  /** Error because of which the account is not served; undefined if there is none. */
  readonly error: unknown;
  /** Summary of the account's readiness, lag, use of the quota, and progress; undefined if the account is not running. */
  readonly figures: AccountFigures | undefined;
}

/** Builds the short report on one account. Of the reasons why the account is not ready, only the first is included. */
export function accountReport(input: AccountReportInput): AccountReport {
  const { config, weight, error, figures } = input;
  const { prefix, sharedPrefix } = config.topics;
  return {
    weight,
    ...(prefix !== `${sharedPrefix}.${config.account}` && { prefix }),
    ...(error !== undefined && { failed: shortened(describeError(error), MAX_TEXT) }),
    ...(figures && {
      figures: {
        ...figures,
        reasons: figures.reasons.slice(0, 1).map((reason) => shortened(reason, MAX_TEXT)),
        eventsPerSecond: Math.round(figures.eventsPerSecond * 100) / 100,
      },
    }),
  };
}

/**
 * Whether the accounts' state `now` differs notably from `before`, the state in the last report. Small changes of measured values do not
 * count.
 */
export function isReportable(now: Report['accounts'], before: Report['accounts'] = {}): boolean {
  const accounts = Object.entries(now);
  if (accounts.length !== Object.keys(before).length) return true;
  return accounts.some(([account, report]) => hasChanged(report, before[account]));
}

function hasChanged(now: AccountReport, before: AccountReport | undefined): boolean {
  if (now.weight !== before?.weight || now.failed !== before.failed) return true;
  if (now.prefix !== before.prefix) return true;
  if (!now.figures || !before.figures) return now.figures !== before.figures;
  const [a, b] = [now.figures, before.figures];
  return (
    a.ready !== b.ready ||
    !isDeepStrictEqual([a.causes, a.reasons], [b.causes, b.reasons]) ||
    a.quota?.name !== b.quota?.name ||
    differsNotably(a.lagMs, b.lagMs, 1_000) ||
    (a.lookedAt === null) !== (b.lookedAt === null) ||
    differsNotably(a.eventsPerSecond, b.eventsPerSecond, 1) ||
    Math.abs(quotaShare(a) - quotaShare(b)) > 0.1 ||
    (a.firstRead === null) !== (b.firstRead === null) ||
    Math.abs(firstReadShare(a) - firstReadShare(b)) > 0.05
  );
}

function quotaShare({ quota }: AccountFigures): number {
  return quota && quota.limit > 0 ? quota.used / quota.limit : 0;
}

function firstReadShare({ firstRead }: AccountFigures): number {
  return firstRead && firstRead.total > 0 ? firstRead.read / firstRead.total : 0;
}

/**
 * Whether two figures differ notably: exactly one of them is null, or they differ by more than `least` and by more than half of the larger
 * one.
 */
function differsNotably(a: number | null, b: number | null, least: number): boolean {
  if (a === null || b === null) return a !== b;
  return Math.abs(a - b) > Math.max(least, Math.max(a, b) / 2);
}
