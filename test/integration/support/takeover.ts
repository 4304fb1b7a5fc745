import { inject, onTestFinished, vi } from 'vitest';
import type { Sandbox } from '../../../src/sandbox/index.ts';
import { KafkaProxy } from '../../support/proxy/kafka-proxy.ts';
import { TcpProxy } from '../../support/proxy/tcp-proxy.ts';
import type { Cli } from './cli.ts';
import { scaled } from '../../support/scale.ts';
import { cliForTest, connections, folderForTest, sandboxForTest } from './service.ts';
import type { Env } from './service.ts';

/** The list that is asked as often as it may be: in these pages an initial snapshot takes some minutes. */
const BUSY = 'inventory';
const RECORDS = 15_000;
const PAGE_SIZE = '50';
export const LIMITS = { list: 100, login: 10 };
const WINDOW_MS = 60_000;
/** Most of a minute's requests, so that a successor that knew of none would ask too many; or until the quota holds it back. */
const MAX_OF_IT = scaled(75, 130);
/** Till all that was asked before the fault is over for the quota; and for as long as the promise says. */
const SEEN_MS = scaled(75_000, 120_000);
const PATIENCE = { timeout: 170_000, interval: 20 };

/** What becomes of the first instance as the second is started, each with a folder of its own. */
export interface Fault {
  readonly name: string;
  /** Settings of either that are not those of the other tests. */
  readonly first?: Env;
  readonly second?: Env;
  /** Whether the sandbox counts all lists together. */
  readonly isShared?: boolean;
  /** Resolves when the second may start. */
  readonly strike: (first: Instance) => Promise<unknown>;
  /** What is done to the first one while the second runs. */
  readonly meanwhile?: (first: Instance) => Promise<unknown>;
}

/** A service, and what is between it and the others. */
export interface Instance {
  readonly cli: Cli;
  readonly toKafka: KafkaProxy;
  readonly toApi: TcpProxy;
}

export interface Takeover {
  /** Most requests to each endpoint, or to all lists, in any minute as the API counts. */
  readonly most: { readonly list: number; readonly login: number };
  readonly refused: number;
  /** From when the second was started to the next request of either, ms. */
  readonly firstAfterMs: number;
  /** The longest time without a request to the busy list from the fault on, ms. */
  readonly silenceMs: number;
  readonly requests: number;
}

/** The true limits, and one instance after the other at full use. */
export async function takeover(prefix: string, fault: Fault): Promise<Takeover> {
  const { isShared = false } = fault;
  const sandbox = await sandboxForTest({
    records: { inventory: RECORDS },
    quotaPerMinute: LIMITS.list,
    loginQuotaPerMinute: LIMITS.login,
    ...(isShared && { quotaScope: 'key' }),
  });
  const start = (env: Env = {}) => startBetween(sandbox, prefix, env);
  const times = () => sandbox.truth.requests(BUSY).map(({ at }) => at);
  const last = () => times().at(-1) ?? 0;

  const first = await start(fault.first);
  await vi.waitUntil(() => times().length >= MAX_OF_IT, PATIENCE);
  const struckAt = last();
  await fault.strike(first);
  const [endedAt, before] = [Date.now(), times().length];
  const second = await start(fault.second);
  await fault.meanwhile?.(first);
  await vi.waitUntil(() => last() > struckAt + SEEN_MS, { ...PATIENCE, timeout: 2 * SEEN_MS });
  await Promise.all([first.cli.end('SIGKILL'), second.cli.end('SIGTERM')]);

  const behind = times().slice(before);
  const gaps = behind.map((at, k) => at - (behind[k - 1] ?? endedAt));
  const { truth } = sandbox;
  return {
    most: {
      list: truth.mostInAnyWindow(BUSY, WINDOW_MS),
      login: truth.mostInAnyWindow('login', WINDOW_MS),
    },
    refused: truth.refused(),
    firstAfterMs: gaps[0] ?? Infinity,
    silenceMs: Math.max(...gaps),
    requests: times().length,
  };
}

async function startBetween(sandbox: Sandbox, prefix: string, env: Env): Promise<Instance> {
  const [broker] = inject('brokers');
  const toKafka = await KafkaProxy.listen(broker!);
  const { hostname, port } = new URL(sandbox.url);
  const toApi = await TcpProxy.listen({ target: { host: hostname, port: Number(port) } });
  onTestFinished(async () => void (await Promise.all([toKafka.close(), toApi.close()])));
  const cli = cliForTest(['run'], {
    ...connections(sandbox, prefix, folderForTest()),
    RESOURCES: BUSY,
    PAGE_SIZE,
    KAFKA_BROKERS: toKafka.address,
    API_BASE_URL: `http://${toApi.address}`,
    ...env,
  });
  return { cli, toKafka, toApi };
}
