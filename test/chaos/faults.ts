import { cpSync, rmSync, statSync, truncateSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RESOURCES } from '../../src/sandbox/index.ts';
import type { FaultSpec } from '../../src/sandbox/index.ts';
import type { Cli } from '../integration/support/cli.ts';
import type { Chance } from '../support/chance.ts';
import type { World } from './world.ts';

/** Something that goes wrong, and is over when `strike` resolves. */
export interface Fault {
  readonly name: string;
  /** Too long for the short run: it stands still, or waits for a whole window of the quota after it. */
  readonly isLong?: true;
  readonly strike: (world: World, chance: Chance) => Promise<void>;
}

const APIS_FAULTS_MS = 7_000;
/** So often damaged images may end the service before they are thrown away. */
const MAX_CRASHES = 3;
/** Longer than a marker may be apart from its file, and longer than many writes. */
const COPY_MS = 11_000;
const PIECES = 20;

/** The same wrong answers for a while, to every list and the login, a part of the requests. */
function answers(name: string, ...specs: readonly FaultSpec[]): Fault {
  return {
    name,
    strike: async ({ sandbox }) => {
      const lift = specs.map((spec) => sandbox.fault({ probability: 0.25, ...spec }));
      await sleep(APIS_FAULTS_MS).finally(() => lift.forEach((end) => end()));
    },
  };
}

/** Answers that never come in time, a few of them: until the service has given them up. */
function lateAnswers(name: string, spec: FaultSpec): Fault {
  return {
    name,
    isLong: true,
    strike: async ({ sandbox, service }) => {
      const retries = () =>
        service.lines().filter(({ event, what }) => event === 'retry' && isApi(what)).length;
      const before = retries();
      const lift = sandbox.fault({ ...spec, times: 3 });
      const isGivenUp = until(() => retries() > before, 60_000, `${name}: nothing is given up`);
      await isGivenUp.finally(lift);
    },
  };
}

/** The process is killed, something happens to its folder, and it is started again. */
function afterDeath(
  name: string,
  happens: (world: World, chance: Chance) => void,
  { crashes = 0, ...more }: Pick<Fault, 'isLong'> & { readonly crashes?: number } = {},
): Fault {
  return {
    name,
    ...more,
    strike: async (world, chance) => {
      await world.service.end('SIGKILL');
      happens(world, chance);
      world.restart(crashes);
    },
  };
}

/** The service, once it has ended by itself as one that was replaced. */
async function ended(replaced: Cli): Promise<void> {
  const code = await replaced.ended;
  if (code !== 1 || !replaced.stderr().includes('another instance has claimed this account'))
    throw new Error(`the replaced process ended with ${code}: ${replaced.stderr().slice(-500)}`);
}

export const FAULTS: readonly Fault[] = [
  afterDeath('process killed', () => undefined),
  {
    name: 'process killed again while it starts',
    strike: async (world, chance) => {
      for (let k = 0; k < 2; k++) {
        await world.service.end('SIGKILL');
        world.restart();
        await sleep(chance.below(1_500));
      }
      await world.service.end('SIGKILL');
      world.restart();
    },
  },
  {
    name: 'process stopped and started',
    strike: async (world) => {
      const code = await world.service.end('SIGTERM');
      if (code !== 0) throw new Error(`ended with ${code} after SIGTERM`);
      world.restart();
    },
  },
  {
    name: 'process paused for 20 s',
    isLong: true,
    strike: async ({ service }) => {
      service.process.kill('SIGSTOP');
      await sleep(20_000);
      service.process.kill('SIGCONT');
    },
  },
  {
    name: 'process paused, replaced, and woken after 20 s',
    isLong: true,
    strike: async (world) => {
      const zombie = world.service;
      zombie.process.kill('SIGSTOP');
      world.state = world.newFolder();
      world.restart();
      await Promise.all([world.ready(), sleep(20_000)]);
      zombie.process.kill('SIGCONT');
      await ended(zombie);
    },
  },
  {
    name: 'two instances at once',
    isLong: true,
    strike: async (world) => {
      const first = world.service;
      world.state = world.newFolder();
      world.restart();
      await ended(first);
    },
  },
  {
    name: 'broker killed and started',
    strike: async (world, chance) => {
      const kafka = world.broker(chance);
      await kafka.kill();
      await kafka.start();
    },
  },
  {
    name: 'broker gone for 30 s',
    isLong: true,
    strike: async (world, chance) => {
      const kafka = world.broker(chance);
      await kafka.kill();
      await sleep(30_000);
      await kafka.start();
    },
  },
  {
    name: 'broker paused for 30 s',
    isLong: true,
    strike: async (world, chance) => {
      const kafka = world.broker(chance);
      kafka.pause();
      await sleep(30_000);
      kafka.resume();
    },
  },
  {
    name: 'registry gone for 10 s, while a list gets a new field',
    strike: async ({ services: { registry }, sandbox }, chance) => {
      await registry.kill();
      sandbox.addField('customers', `since_${chance.below(1_000_000)}`, 'today', { existing: 3 });
      await sleep(10_000);
      await registry.start();
    },
  },
  {
    name: 'API gone for 10 s',
    strike: async ({ tap }) => {
      await tap.down();
      await sleep(10_000);
      await tap.up();
    },
  },
  {
    name: 'connections reset',
    strike: async ({ tap }, chance) => {
      for (let k = 0; k < 12; k++) {
        await sleep(100 + chance.below(600));
        tap.reset();
      }
    },
  },
  answers('answers cut off in mid-JSON', { kind: 'truncate' }),
  {
    name: '401 in the middle of a chain of pages',
    strike: async ({ sandbox }) => {
      sandbox.revokeTokens();
      await sleep(2_000);
      sandbox.fault({ kind: 'status', status: 401, endpoint: 'orders', every: 3, times: 2 });
      sandbox.fault({ kind: 'status', status: 401, endpoint: 'products', times: 1 });
      await sleep(4_000);
      sandbox.revokeTokens();
    },
  },
  answers('429 with Retry-After', { kind: 'status', status: 429, headers: { 'retry-after': '2' } }),
  answers('429 without Retry-After', { kind: 'status', status: 429 }),
  answers(
    '500, and 502 with HTML',
    { kind: 'status', status: 500 },
    {
      kind: 'status',
      status: 502,
      body: '<h1>Bad Gateway</h1>',
      headers: { 'content-type': 'text/html' },
    },
  ),
  answers('200 with HTML', { kind: 'garbage' }),
  answers('403 with HTML, as of a firewall', { kind: 'firewall' }),
  answers('400 to every token', { kind: 'status', status: 400, probability: 1 }),
  answers('pages from a cache', { kind: 'cached', ms: 20_000 }),
  answers('504 to large pages', {
    kind: 'status',
    status: 504,
    body: '<h1>Gateway Time-out</h1>',
    headers: { 'content-type': 'text/html' },
    pageSizeOver: 200,
    probability: 1,
  }),
  {
    name: '500 to every page with one of the orders',
    strike: async ({ sandbox }, chance) => {
      const holding = chance.pick([...sandbox.truth.keys('orders')]);
      const lift = sandbox.fault({ kind: 'status', status: 500, endpoint: 'orders', holding });
      sandbox.change('orders', holding, { notes: `seen ${chance.below(1_000)}` });
      await sleep(20_000).finally(lift);
    },
  },
  // undici counts ticks of half a second, which a busy process makes longer: its 30 s may take a few more.
  lateAnswers('answers slower than the timeout', { kind: 'slow', ms: 45_000 }),
  lateAnswers('answers that stop half-way', { kind: 'stall' }),
  afterDeath(
    'state folder deleted',
    ({ state }) => rmSync(state, { recursive: true, force: true }),
    { isLong: true },
  ),
  afterDeath(
    'images truncated',
    ({ state }, chance) => {
      const file = join(state, 'images.mdb');
      truncateSync(file, chance.below(statSync(file).size));
    },
    { crashes: MAX_CRASHES },
  ),
  {
    name: 'images put back that were copied while they were written',
    strike: async (world) => {
      const copy = world.newFolder();
      cpSync(join(world.state, 'images.mdb-open'), join(copy, 'images.mdb-open'));
      await copySlowly(join(world.state, 'images.mdb'), join(copy, 'images.mdb'));
      await world.service.end('SIGKILL');
      cpSync(copy, world.state, { recursive: true });
      world.restart(MAX_CRASHES);
    },
  },
  {
    name: 'state folder of an earlier time',
    isLong: true,
    strike: async (world) => {
      await world.service.end('SIGKILL');
      const earlier = world.newFolder();
      cpSync(world.state, earlier, { recursive: true });
      world.restart();
      await world.ready();
      await sleep(12_000);
      await world.service.end('SIGKILL');
      rmSync(world.state, { recursive: true, force: true });
      cpSync(earlier, world.state, { recursive: true });
      world.restart();
    },
  },
  {
    name: 'disk full for 10 s',
    strike: async (world) => {
      await world.service.end('SIGKILL');
      const kib = Math.ceil(statSync(join(world.state, 'images.mdb')).size / 1_024);
      // No file may grow beyond what the images have now: all writes behind that fail.
      const full = world.launch(world.state, `ulimit -f ${kib}`);
      // Pages that are free in the file take some: new records come until they are used up.
      const more = setInterval(() => {
        for (let k = 0; k < 200; k++) world.sandbox.create('orders');
      }, 1_000);
      const isFull = () =>
        full.lines().some(({ event, what }) => event === 'retry' && what === 'state folder');
      await until(isFull, 60_000, 'the disk is not full').finally(() => clearInterval(more));
      await sleep(10_000);
      if (full.process.exitCode !== null) throw new Error('a full disk has ended the service');
      await full.end('SIGKILL');
      world.restart();
    },
  },
];

function isApi(what: unknown): boolean {
  return what === 'login' || (RESOURCES as readonly unknown[]).includes(what);
}

/** A piece after the other, as a backup does that is not alone on its disk. */
async function copySlowly(from: string, to: string): Promise<void> {
  const [source, target] = await Promise.all([open(from), open(to, 'w')]);
  try {
    const { size } = await source.stat();
    const piece = Buffer.alloc(Math.ceil(size / PIECES));
    for (let k = 0; k < PIECES; k++) {
      const { bytesRead } = await source.read(piece, 0, piece.length, k * piece.length);
      await target.write(piece, 0, bytesRead);
      await sleep(COPY_MS / PIECES);
    }
  } finally {
    await Promise.all([source.close(), target.close()]);
  }
}

export async function until(
  isSo: () => boolean,
  withinMs: number,
  otherwise: string,
): Promise<void> {
  const end = performance.now() + withinMs;
  while (!isSo()) {
    if (performance.now() > end) throw new Error(otherwise);
    await sleep(100);
  }
}
