import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Tethered } from '../../../src/devstack/tethered.ts';
import type { Chance } from '../chance.ts';

export type ServedRecord = Readonly<Record<string, unknown>>;

/** One list of a real server, written and read past the service and its proxy. */
export interface ServedList {
  readonly name: string;
  /** Inserts a record. Resolves with its key. `number` is not used twice. */
  readonly insert: (number: number, chance: Chance) => Promise<string>;
  /** Changes a record that is there. `number` is not used twice. */
  readonly change: (key: string, number: number) => Promise<void>;
  readonly remove: (key: string) => Promise<void>;
  /** Content of the server's database by key, as the list's responses show it. */
  readonly truth: () => Promise<ReadonlyMap<string, ServedRecord>>;
}

/** A server of another project, in a process of its own on the loopback. */
export interface ApiServer {
  readonly url: string;
  readonly lists: readonly ServedList[];
  readonly stop: () => Promise<void>;
}

export interface ServerProgram {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Address that answers with a status below 500 once the server is up. */
  readonly isUpAt: string;
  /** Called with the folder in which the program will run. */
  readonly prepare?: (folder: string) => void;
  /** Variables of its environment, beside those of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** How long a server may take to start on a busy machine, in ms. */
const START_MS = 240_000;

/** Starts a server in a temporary folder; resolves once it answers, with the function that ends it. It ends with this process, too. */
export async function startProgram(program: ServerProgram): Promise<() => Promise<void>> {
  const { name, command, args, isUpAt, prepare, env } = program;
  const tethered = await Tethered.start(join(tmpdir(), `cellarstream-${name}-`), {
    ...process.env,
    ...env,
  });
  const stop = () => tethered.end();
  try {
    prepare?.(tethered.folder);
    const running = await tethered.run(name, command, args);
    const until = performance.now() + START_MS;
    while (!(await isUp(isUpAt))) {
      if (running.ended !== undefined || performance.now() > until) {
        const how = running.ended ?? 'it does not answer';
        throw new Error(`${name} did not start (${how}): ${(await running.log()).slice(-2_000)}`);
      }
      await sleep(100); // between two looks
    }
    return stop;
  } catch (error) {
    await stop();
    throw error;
  }
}

async function isUp(url: string): Promise<boolean> {
  return fetch(url).then(
    async (response) => {
      await response.arrayBuffer();
      return response.status < 500;
    },
    () => false, // refused until the server listens
  );
}

/** Sends a request that must succeed; resolves with the response, whose body is not read yet. */
export async function succeed(url: string, init: RequestInit = {}): Promise<Response> {
  const response = await fetch(url, init);
  if (response.ok) return response;
  throw new Error(
    `${init.method ?? 'GET'} ${url}: ${response.status} ${(await response.text()).slice(0, 300)}`,
  );
}

export function jsonBody(method: string, body: unknown, headers: Record<string, string> = {}) {
  return {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  };
}

/** Records by the text of a field. */
export function byKey(records: readonly ServedRecord[], field = 'id'): Map<string, ServedRecord> {
  return new Map(records.map((record) => [String(record[field]), record]));
}
