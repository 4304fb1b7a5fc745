// Runs the experiments on one list, within a fixed number of requests.

import { describeError } from '../core/errors.ts';
import { CLAIMS } from '../description/format.ts';
import type { Measured } from '../description/format.ts';
import { EXPERIMENTS, LAST_EXPERIMENT } from './experiments.ts';
import type { Experiment, Facts } from './experiments.ts';
import { replyText } from './replies.ts';
import type { Measurement, Question, Reply, Verdict } from './replies.ts';

/**
 * Maximum number of requests that `check --measure` sends for a list. If it is smaller, some experiments are not made; if it is larger, a
 * measurement uses up a small quota.
 */
export const MAX_REQUESTS = 15;
/** Page size for lists whose description states no greatest page size (`limit`), in records. */
const USUAL_SIZE = 100;

export interface MeasureListOptions extends Pick<Facts, 'list' | 'times' | 'unitMs'> {
  /** Sends one request. Resolves also if the API refuses it, with the HTTP status as `refusedWith`. Rejects after any other failure. */
  readonly ask: (question: Question) => Promise<Reply>;
  readonly pause: (ms: number) => Promise<void>;
  /** Returns the current time by this machine's clock, in epoch ms. */
  readonly now: () => number;
}

/**
 * Tests a list's description against the API by experiments. An experiment that fails is reported as `not measured`. Throws if the list's
 * first page can't be read.
 */
export async function measureList(options: MeasureListOptions): Promise<readonly Measurement[]> {
  const { list, times, unitMs, pause, now } = options;
  const size = list.limit ?? USUAL_SIZE;
  let left = MAX_REQUESTS;
  const ask = (question: Question): Promise<Reply> => {
    left -= 1;
    return options.ask(question);
  };
  // The page that all others are compared with; it is requested a second time if the first attempt fails.
  const front = { offset: 0, pageSize: size };
  const first = await ask(front).catch(() => ask(front));
  if (first.refusedWith !== undefined)
    throw new Error(
      `the API refused the request for the first page with status ${first.refusedWith}, so nothing was measured for this list: correct \`path\` and \`query\` of the list in the description, or give the credentials the right to read it`,
    );
  const startedAt = now();
  const facts = { list, times, unitMs, size, first, total: first.total, now: startedAt };

  const inapplicable: Measurement[] = [];
  const run = async (experiment: Experiment, spare: number): Promise<Measurement[]> => {
    const { name, afterMs = 0, ifRefused, judge } = experiment;
    const finding = (verdict: Verdict, text: string, claim = experiment.claim): Measurement => {
      return { claim, verdict, measured: `${name}: ${text}` };
    };
    try {
      const questions = experiment.questions(facts);
      if (typeof questions === 'string') {
        inapplicable.push(finding('not measured', questions));
        return [];
      }
      if (questions.length > left - spare)
        return [finding('not measured', `no request is left of ${MAX_REQUESTS}`)];
      if (afterMs > 0) await pause(Math.max(0, startedAt + afterMs - now()));
      const replies: Reply[] = [];
      for (const question of questions) replies.push(await ask(question));
      if (questions[0]?.isTotal) facts.total = replies[0]!.total;
      const refusal = replies.find(({ refusedWith }) => refusedWith !== undefined);
      if (refusal && ifRefused) return [finding(ifRefused, replyText(refusal))];
      const judged = [judge(facts, replies)].flat();
      return judged.map(({ verdict, measured, claim }) => finding(verdict, measured, claim));
    } catch (error) {
      return [finding('not measured', describeError(error))];
    }
  };
  const found: Measurement[] = [];
  for (const experiment of EXPERIMENTS) found.push(...(await run(experiment, 1)));
  found.push(...(await run(LAST_EXPERIMENT, 0)));
  // One reason for each claim that no experiment applies to.
  for (const each of inapplicable) {
    if (!found.some(({ claim }) => claim === each.claim)) found.push(each);
  }
  return found;
}

/**
 * Returns the property `measured` of a description: for each list, the names of the refuted and of the not refuted claims. A claim of which
 * nothing was measured is left out.
 */
export function measuredOf(
  lists: ReadonlyMap<string, readonly Measurement[]>,
  date: string,
): Measured {
  const summary = [...lists].map(([name, measurements]) => {
    const verdicts = (claim: string) =>
      measurements.filter((each) => each.claim === claim).map(({ verdict }) => verdict);
    const refuted = CLAIMS.filter((claim) => verdicts(claim).includes('refuted'));
    // A claim with a warning counts as not refuted.
    const notRefuted = CLAIMS.filter(
      (claim) =>
        !refuted.includes(claim) && verdicts(claim).some((verdict) => verdict !== 'not measured'),
    );
    return [name, { refuted, notRefuted }] as const;
  });
  return { date, lists: Object.fromEntries(summary) };
}
