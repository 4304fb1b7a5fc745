// @ts-check
// Where the time of an initial snapshot goes: the rows at the top of a profile of V8's.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { firstRead, firstReadOrders } from './first-read.mjs';
import { runOnce } from './run.mjs';

const ROWS = 25;

/**
 * @typedef {object} ProfileNode As V8 writes it.
 * @property {number} id
 * @property {{ readonly functionName: string, readonly url: string, readonly lineNumber: number }} callFrame
 * @property {readonly number[]} [children]
 */

/**
 * @typedef {object} Profile As V8 writes it.
 * @property {readonly ProfileNode[]} nodes
 * @property {readonly number[]} samples Ids of nodes.
 * @property {readonly number[]} timeDeltas µs before each sample.
 */

/** @typedef {{ readonly where: string, readonly percent: number }} Share */

/**
 * Runs an initial snapshot with a profile, and tells of it.
 *
 * @param {import('./run.mjs').Common} common
 * @returns {Promise<string>}
 */
export async function profile(common) {
  const folder = mkdtempSync(join(tmpdir(), 'cellarstream-profile-'));
  common.scope.add(() => rmSync(folder, { recursive: true, force: true }));
  const { failures } = await runOnce([profiled(folder)], common);
  if (failures.profile !== undefined) throw new Error(failures.profile);
  // Each thread writes one: that of the pipeline has the most in it.
  const profiles = readdirSync(folder).map(
    (file) => /** @type {Profile} */ (JSON.parse(readFileSync(join(folder, file), 'utf8'))),
  );
  const [busiest] = profiles.map(sharesOf).sort((a, b) => b.busyMs - a.busyMs);
  if (!busiest) throw new Error('the service has written no profile');
  return [
    `An initial snapshot of ${firstReadOrders(common)} orders, from the start of the process to its end: ${(busiest.busyMs / 1_000).toFixed(1)} s of its main thread.`,
    ...section('by itself', busiest.self),
    ...section(
      'with what it calls, without what all runs in',
      busiest.inclusive.filter((share) => !isFrame(share)),
    ),
  ].join('\n');
}

/** @param {string} folder @returns {import('./measure.mjs').Measure} */
const profiled = (folder) => ({
  name: 'profile',
  what: 'an initial snapshot with a profile',
  limit: '',
  form: 'named',
  figures: [],
  run: async (context) => {
    const { cpuMicros } = await firstRead(context, ['--cpu-prof', `--cpu-prof-dir=${folder}`]);
    return { cpuMicros };
  },
});

/** @param {string} title @param {readonly Share[]} shares */
function section(title, shares) {
  const rows = shares
    .slice(0, ROWS)
    .map(({ where, percent }) => `${percent.toFixed(1).padStart(6)} %  ${where}`);
  return ['', `${title}:`, ...rows];
}

/**
 * How much of a profile's busy time each function has: by itself, and with all that it calls. What is
 * called again by itself, over whatever others, counts once.
 *
 * @param {Profile} profile
 * @returns {{ busyMs: number, self: Share[], inclusive: Share[] }}
 */
export function sharesOf({ nodes, samples, timeDeltas }) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  /** @type {Map<number, number>} */
  const parents = new Map();
  for (const { id, children = [] } of nodes) for (const child of children) parents.set(child, id);
  /** @type {Map<number, number>} */
  const micros = new Map();
  samples.forEach((id, place) => micros.set(id, (micros.get(id) ?? 0) + (timeDeltas[place] ?? 0)));

  /** @type {Map<string, number>} */
  const self = new Map();
  /** @type {Map<string, number>} */
  const inclusive = new Map();
  const add = (
    /** @type {Map<string, number>} */ to,
    /** @type {string} */ where,
    /** @type {number} */ time,
  ) => to.set(where, (to.get(where) ?? 0) + time);
  let busy = 0;
  for (const [id, time] of micros) {
    const node = byId.get(id);
    if (!node || IDLE.has(node.callFrame.functionName)) continue;
    busy += time;
    add(self, nameOf(node), time);
    const seen = new Set();
    for (let at = /** @type {number | undefined} */ (id); at !== undefined; at = parents.get(at)) {
      const caller = byId.get(at);
      if (!caller || caller.callFrame.functionName === '(root)') continue;
      const where = nameOf(caller);
      if (!seen.has(where)) add(inclusive, where, time);
      seen.add(where);
    }
  }
  const shares = (/** @type {Map<string, number>} */ of) =>
    [...of]
      .map(([where, time]) => ({ where, percent: (100 * time) / busy }))
      .sort((a, b) => b.percent - a.percent);
  return { busyMs: busy / 1_000, self: shares(self), inclusive: shares(inclusive) };
}

const IDLE = new Set(['(idle)', '(root)']);

/** A function and its place, from the project's root or the package it is in. @param {ProfileNode} node */
function nameOf({ callFrame: { functionName, url, lineNumber } }) {
  const name = functionName || '(anonymous)';
  if (url === '') return name;
  const path = url.startsWith('file:') ? fileURLToPath(url) : url;
  const ofPackage = path.split('/node_modules/').at(-1) ?? path;
  const short = ofPackage === path ? path.replace(/^.*\/(?=dist\/)/, '') : ofPackage;
  return `${name} ${short}:${lineNumber + 1}`;
}

/** What everything runs in: the engine's own, Node's, and the pipes between the operators. @param {Share} share */
const isFrame = ({ where }) => !where.includes(' ') || / (node:|rxjs\/)/.test(where);
