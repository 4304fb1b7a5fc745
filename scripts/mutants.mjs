// Breaks the product on purpose, one way after the other, in a copy, and shows which test notices.
// node scripts/mutants.mjs [part of a name]: exits with 1 when a break goes unnoticed.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Each: what is broken, in which file, what stands there, and what comes in its place. */
const MUTANTS = [
  ['images are stored before the commit', 'src/sinks/task-log.ts', 'const next: Cursor = { ...cursor, ...progress, instance };', 'await store.put(images, memory, notes);\n      const next: Cursor = { ...cursor, ...progress, instance };'],
  ['the cursor is not read back after a lost commit', 'src/sinks/task-log.ts', 'if (moved || known.cursor === null) {', 'if (known.cursor === null) {'],
  ['images that the store has not seen are not read back', 'src/sinks/task-log.ts', 'restored += images.length;', 'restored += images.length; images.length = 0;'],
  ['a replaced process takes the task back', 'src/sinks/task-log.ts', '!== options.instance)', '=== "nobody")'],
  ['the sequence begins again with each process', 'src/resource-events.ts', 'let { firstRead, since, sequence } = log.cursor;', 'let { firstRead, since } = log.cursor;\n  let sequence = 0;'],
  ['no lookback', 'src/streams/poll.ts', 'const lookback = deep ?', 'const lookback = 0 && deep ?'],
  ['the next window begins at the newest record of this one', 'src/streams/poll.ts', 'since = Math.min(mark ?? since, reached);', 'since = clock.newest() ?? reached;'],
  ['the window goes by the date header alone', 'src/streams/server-clock.ts', 'return Math.max(Math.min(then, date), date - MOST_BEHIND_MS - step);', 'return date;'],
  ['polls wait for the end of the first read', 'src/resource-reads.ts', 'began$.next((startedAt', 'if (done) began$.next((startedAt'],
  ['a page counts without an anchor', 'src/streams/anchors.ts', 'let anchored = at.offset === 0;', 'let anchored = true;'],
  ['pages do not overlap', 'src/streams/anchors.ts', 'const step = Math.max(1, data.length - overlap);', 'const step = Math.max(1, data.length);'],
  ['the last answer wins', 'src/streams/newest.ts', "if (!last || span.begin > last.end) return 'newer';", "if (last || !last) return 'newer';"],
  ['a deletion is published without a look at who saw the key since', 'src/resource-events.ts', 'log.isUnseen(key, reading.gone!.since)', '!log.isUnseen(key, Infinity) || true'],
  ['an order that a sweep has missed is not asked for', 'src/sweep-readings.ts', 'return isGone ? { ...read, gone: { keys: [key], since } } : read;', 'return { ...read, gone: { keys: [key], since } };'],
  ['one sweep is enough for all', 'src/streams/sweep-progress.ts', 'return isProven ? number - 1 : undefined;', 'return number;'],
  ['an empty list proves absence', 'src/streams/sweep-progress.ts', "const proof = isEmpty ? 'nothing'", "const proof = isEmpty && false ? 'nothing'"],
  ['what sweeps saw is not marked', 'src/resource-events.ts', "bySweep: step?.kind === 'page' };", "bySweep: false };"],
  ['no tombstone', 'src/sinks/messages.ts', "return change.op === 'd' ? [message, { topic, key: change.key, value: null }] : [message];", 'return [message];'],
  ['an image stays after a deletion', 'src/publisher.ts', 'images.push({ key, sequence, image });', 'if (image) images.push({ key, sequence, image });'],
  ['older images are compared without a look at their schema', 'src/schema-book.ts', 'if (schemaId === now) return bytes;', 'if (schemaId === now || true) return bytes;'],
  ['a schema is used before it is registered', 'src/schema-book.ts', 'if (after === before) return;', 'if (after === before || before) return;'],
  ['a token bucket that refills while it drains', 'src/streams/token-bucket.ts', 'wait: (now) => (times.length < most ? 0 : times[0]! + windowMs - now),', 'wait: (now) => (times.length < most ? 0 : times[0]! + windowMs / 2 - now),'],
  ['a token bucket for each subscription', 'src/streams/token-bucket.ts', 'all.add(now);\n      next.starts.add(now);', 'next.starts.add(now);'],
  ['a retry does not go back through the quota', 'src/streams/request.ts', 'take(1), // no start is spent while there is no token\n        limit,', 'take(1), // no start is spent while there is no token'],
  ['a refused token is kept', 'src/streams/request.ts', 'tokens.refuse(token);', 'void token;'],
  ['a status change of a first read is published', 'src/streams/order-status.ts', "if (op === 'r' || op === 'd' || !after) return [];", "if (op === 'd' || !after) return [];"],
  ['fulfilments are matched by their places', 'src/streams/identity.ts', "fulfillment_info: 'fulfillment_id',", "fulfillment_info: 'nothing',"],
  ['the same bad record is reported at every read', 'src/streams/known-rejects.ts', 'return news;', 'return true;'],
  ['null and absent are the same', 'src/schemas/record-codec.ts', 'odd.nulls.push(pointer + field.step);', 'void field;'],
  ['what a field can not hold is dropped', 'src/schemas/record-codec.ts', 'else odd.unmapped.set(at, canonicalJson(item));', 'else void at;'],
]; // prettier-ignore

const root = fileURLToPath(new URL('..', import.meta.url));
const only = process.argv[2] ?? '';
const work = mkdtempSync(join(tmpdir(), 'cellarstream-mutants-'));
const LEFT_OUT = new Set(['node_modules', '.git', 'coverage', '.cellarstream']);

/**
 * The simulation first: it is quick and sees the most; then the unit tests.
 *
 * @type {{ name: string, args: string[], env: Record<string, string> }[]}
 */
const SUITES = [
  { name: 'simulation', args: ['--project', 'sim'], env: { SIM_SEEDS: '120' } },
  { name: 'unit tests', args: ['--project', 'unit'], env: {} },
];

try {
  cpSync(root, work, { recursive: true, filter: (path) => !LEFT_OUT.has(basename(path)) });
  symlinkSync(join(root, 'node_modules'), join(work, 'node_modules'), 'junction');
  let unnoticed = 0;
  for (const [name, file, from, to] of MUTANTS.filter(([name]) => name.includes(only))) {
    const path = join(work, file);
    const text = readFileSync(path, 'utf8');
    if (text.split(from).length !== 2) throw new Error(`${file} has not just one: ${from}`);
    writeFileSync(
      path,
      text.replace(from, () => to),
    );
    const seen = SUITES.find(fails);
    writeFileSync(path, text);
    if (!seen) unnoticed += 1;
    console.log(seen ? `noticed    ${name}  (${seen.name})` : `UNNOTICED  ${name}`);
  }
  console.log(`${unnoticed} unnoticed`);
  process.exitCode = unnoticed > 0 ? 1 : 0;
} finally {
  rmSync(work, { recursive: true, force: true });
}

/** @param {(typeof SUITES)[number]} suite */
function fails({ args, env }) {
  const vitest = join(work, 'node_modules/vitest/vitest.mjs');
  const { status } = spawnSync(process.execPath, [vitest, 'run', '--bail', '1', ...args], {
    cwd: work,
    env: { ...process.env, ...env },
    stdio: 'ignore',
  });
  return status !== 0;
}
