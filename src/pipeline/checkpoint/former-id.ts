import type { TaskMemory } from '../../state/store.ts';
import { parseCursor } from './cursor.ts';
import type { Cursor } from './cursor.ts';
import { asLeftBy, claim, expectMine, readCursor } from './ownership.ts';
import type { KnownCursor, TakeOver } from './ownership.ts';
import type { TaskPlace } from '../task-place.ts';

/**
 * Takes a task from a process that writes under its former id, where the newest cursor is of one: to open the task's own id
 * would not fence that. The claim is committed under the former id too, so nobody else has opened it in between; and a
 * process that was fenced finds the claim, and stops, where it would else open its id again.
 *
 * Once the cursor is written under the task's own id the former one is let be: it may be that of another account.
 *
 * @throws CellarstreamError `FENCED` when another process has opened the former id meanwhile: it is left to that one.
 */
export async function leaveFormerId(
  options: TakeOver,
  known: KnownCursor | undefined,
  memory: TaskMemory | undefined,
): Promise<void> {
  const { log, instance, ownership } = options;
  const { task, cursorTopic, formerId } = options.place;
  if (formerId === undefined) return;
  const found = known ?? (await readCursor(options, memory));
  if (!isOfFormerId(found, options.place)) return;
  const sink = await log.open(formerId);
  try {
    // From here on what is read is final, unless somebody has gone on to the new id already.
    const final = asLeftBy(sink, options);
    const newest = (await expectMine(final, found)) ?? (await readCursor(final, found));
    if (!isOfFormerId(newest, options.place)) return;
    const cursor = parseCursor(newest.cursor, task);
    ownership.predecessor ??= cursor.instance;
    const mine: Cursor = { ...cursor, instance, generation: cursor.generation + 1 };
    const value = Buffer.from(JSON.stringify(mine));
    await claim(
      ownership,
      async () => void (await sink.commit([{ topic: cursorTopic, key: task, value }])),
    );
  } finally {
    await sink.close().catch(() => undefined); // what was committed is, and the first error says more
  }
}

/** That a cursor is written under the task's own id; nothing where it has had no other. */
export function writtenAs({
  place: { transactionalId, formerId },
  instance,
}: TakeOver): Pick<Cursor, 'writer'> {
  return formerId === undefined ? {} : { writer: { instance, transactionalId } };
}

function isOfFormerId(
  found: KnownCursor,
  { task, transactionalId }: TaskPlace,
): found is KnownCursor & { readonly cursor: string } {
  if (found.cursor === null) return false; // nobody has written any
  const { instance, writer } = parseCursor(found.cursor, task);
  return writer?.instance !== instance || writer.transactionalId !== transactionalId;
}
