import { z } from 'zod';
import type { AccountConfig } from '../config/accounts.ts';
import { describeError } from '../core/errors.ts';
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
  /** Error because of which the account is not served; left out if there is none. */
  failed: z.string().optional(),
  /** Current figures of the account; left out if it is not running. */
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
 * State of an instance's accounts, as one message in the fleet's topic. A fenced instance can still write reports, so reports influence
 * only load balancing and what operators see.
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
 * Updates `reports`, the newest report of each instance by the instance's id, with a message of the fleet's topic: a report is stored, and
 * a tombstone removes the report. Other messages are ignored.
 */
export function applyReport(
  reports: Map<string, Report>,
  { key, value }: { readonly key: Buffer | string | null; readonly value: Buffer | null },
): void {
  const name = key?.toString() ?? '';
  if (!name.startsWith(PREFIX)) return;
  if (!value) {
    reports.delete(name.slice(PREFIX.length));
    return;
  }
  const report = parseReport(value);
  if (report) reports.set(report.instance, report);
}

function parseReport(value: Buffer): Report | undefined {
  try {
    return REPORT.safeParse(JSON.parse(value.toString())).data;
  } catch {
    return undefined; // not JSON
  }
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
  /** Current figures of the account; undefined if it is not running. */
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
