import { parseCursor } from '../../src/pipeline/checkpoint/cursor.ts';
import type { SimMessage } from './sim-broker.ts';
import type { SimProcess } from './sim-process.ts';

/**
 * One process at a time: a process that was replaced never has the task back, whoever was replaced
 * ends with `FENCED` in the end, and nobody else does; after its end it begins to commit nothing.
 *
 * With each take-over the generation rises above that of the newest event. (Not above those of
 * cursors that have come without one since: a process whose folder knows all events need not read the
 * cursor, and goes on from the one it remembers.)
 *
 * @param events what was published beside the cursors.
 */
export function checkInstances(
  cursors: readonly SimMessage[],
  events: readonly SimMessage[],
  processes: readonly SimProcess[],
): string[] {
  const violations: string[] = [];
  const replaced = new Set<string>();
  const withEvents = new Set(events.map(({ transaction }) => transaction));
  let last: { readonly instance: string; readonly generation: number } | undefined;
  let ofEvent = 0; // the generation of the newest one
  for (const { key, value, at, transaction } of cursors) {
    const { instance, generation } = parseCursor(value!.toString(), key!);
    const isClaim = instance !== last?.instance || generation !== last.generation;
    if (isClaim && generation <= ofEvent)
      violations.push(`generation ${generation} of ${instance} after ${ofEvent}`);
    if (last && instance !== last.instance) replaced.add(last.instance);
    if (replaced.has(instance)) violations.push(`${instance} took the task back`);
    const process = processes.find(({ name }) => name === instance);
    if (!process || at > lastWordOf(process)) violations.push(`${instance} wrote after its end`);
    last = { instance, generation };
    if (withEvents.has(transaction)) ofEvent = generation;
  }
  for (const process of processes) {
    const { name, state, isFenced, startedAt, endedAt } = process;
    const isAlone = processes.every(
      (other) => other === process || other.endedAt < startedAt || other.startedAt > endedAt,
    );
    if (isFenced && isAlone) violations.push(`${name} was fenced by nobody`);
    if (state === 'running' && name !== last?.instance)
      violations.push(`${name} does not know that ${last?.instance} has the task`);
  }
  return violations;
}

/** A step to a commit that was decided on is not called back by an error; a crash does. */
const STEP_MS = 10;

function lastWordOf({ state, endedAt }: SimProcess): number {
  return state === 'crashed' ? endedAt : endedAt + STEP_MS;
}
