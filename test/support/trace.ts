/** The categories of Chromium's trace in which tasks of a page are told. */
export const TASKS = ['disabled-by-default-devtools.timeline', 'toplevel', '__metadata'];

interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  /** Of the thread's own time, microseconds. */
  readonly tdur?: number;
  readonly args?: { readonly name?: string };
}

/**
 * The longest task of any page's main thread, by that thread's own time, ms: while others have the processor it stands still.
 *
 * @throws where the trace tells of no task.
 */
export function longestTaskMs(trace: Buffer): number {
  const { traceEvents } = JSON.parse(trace.toString()) as { traceEvents: readonly TraceEvent[] };
  const placeOf = ({ pid, tid }: TraceEvent) => `${pid}/${tid}`;
  const isMain = ({ name, args }: TraceEvent) =>
    name === 'thread_name' && args?.name === 'CrRendererMain';
  const main = new Set(traceEvents.filter(isMain).map(placeOf));
  const tasks = traceEvents.filter(
    (each) => each.name.endsWith('RunTask') && main.has(placeOf(each)) && each.tdur !== undefined,
  );
  if (tasks.length === 0) throw new Error('the trace tells of no task of a page');
  return Math.max(...tasks.map(({ tdur }) => tdur! / 1_000));
}
