import { z } from 'zod';
import type { Message } from '../sinks/sink.ts';

const NAME = z.string().min(1).max(200);
/** More may be told by a later version: what is not known here is passed over. */
const OF_ACCOUNT = z.object({
  /** What it costs now. */
  weight: z.number().positive(),
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

/** Whether there is something to tell that was not told yet. */
export function isNews(now: Report['accounts'], before: Report['accounts'] = {}): boolean {
  const accounts = Object.entries(now);
  if (accounts.length !== Object.keys(before).length) return true;
  return accounts.some(([account, { weight }]) => before[account]?.weight !== weight);
}
