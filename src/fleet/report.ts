import { z } from 'zod';
import type { Message } from '../sinks/sink.ts';

const NAME = z.string().min(1).max(200);
const COUNT = z.number().min(0);
// More may be told by a later version: what is not known here is passed over.
const FIGURES = z.object({
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
const OF_ACCOUNT = z.object({
  /** What it costs now. */
  weight: z.number().positive(),
  /** What its topics' names begin with, where its file says so. */
  prefix: z.string().optional(),
  /** Why it can't go on; left out where it can. */
  failed: z.string().optional(),
  /** Left out where it does not run. */
  figures: FIGURES.optional(),
});
const REPORT = z.object({
  type: z.literal('reports'),
  instance: NAME,
  name: NAME,
  at: z.iso.datetime(),
  /** Of those that it runs, or is to run. */
  accounts: z.record(NAME, OF_ACCOUNT),
});

/**
 * How its accounts are, as an instance tells it now and then in the fleet's topic: one message for all of them. Anybody can
 * write it: nothing is decided by it but how much there is to do.
 */
export type Report = z.infer<typeof REPORT>;
export type AccountReport = z.infer<typeof OF_ACCOUNT>;

/** No account has such a name. */
const PREFIX = 'instance/';

export function reportMessage(topic: string, report: Report): Message {
  return { topic, key: PREFIX + report.instance, value: Buffer.from(JSON.stringify(report)) };
}

/** Has the report of an instance forgotten. */
export function noReport(topic: string, instance: string): Message {
  return { topic, key: PREFIX + instance, value: null };
}

/** Takes up a message that is a report, or takes one back; what is neither is passed over. */
export function hearReport(
  reports: Map<string, Report>,
  { key, value }: { readonly key: Buffer | string | null; readonly value: Buffer | null },
): void {
  const name = key?.toString() ?? '';
  if (!name.startsWith(PREFIX)) return;
  if (!value) {
    reports.delete(name.slice(PREFIX.length));
    return;
  }
  const report = parsed(value);
  if (report) reports.set(report.instance, report);
}

function parsed(value: Buffer): Report | undefined {
  try {
    return REPORT.safeParse(JSON.parse(value.toString())).data;
  } catch {
    return undefined; // no JSON
  }
}
