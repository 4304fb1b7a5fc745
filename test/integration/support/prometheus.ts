import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';
import { freeLoopbackPorts } from '../../../src/devstack/loopback-ports.ts';

/** An alert that fires. */
export interface FiringAlert {
  readonly alert: string;
  readonly instance: string;
  /** Undefined where it is about none. */
  readonly account: string | undefined;
}

/** A real Prometheus, which scrapes each second. */
export interface Prometheus {
  /** Scrapes this service too, as `instance`; `url` is where it listens. Default each second. */
  readonly add: (instance: string, url: string, everyS?: number) => void;
  /** Resolves when this service has answered once more. */
  readonly scraped: (instance: string) => Promise<void>;
  /** What fires just now. */
  readonly firing: () => Promise<readonly FiringAlert[]>;
  /** What has fired in the last `seconds`. */
  readonly fired: (seconds: number) => Promise<readonly FiringAlert[]>;
  readonly close: () => Promise<void>;
}

/** Whether there is one on the PATH. */
export const hasPrometheus = spawnSync('prometheus', ['--version']).status === 0;

/** @param folder Where it writes; empty. */
export async function startPrometheus(folder: string, rules: string): Promise<Prometheus> {
  const [port] = await freeLoopbackPorts(1);
  const address = `127.0.0.1:${port}`;
  const targets = join(folder, 'targets');
  mkdirSync(targets);
  const config = join(folder, 'prometheus.json'); // JSON is YAML
  writeFileSync(join(folder, 'alerts.yml'), rules);
  writeFileSync(
    config,
    JSON.stringify({
      global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
      rule_files: ['alerts.yml'],
      scrape_configs: [
        { job_name: 'cellarstream', file_sd_configs: [{ files: ['targets/*.json'] }] },
      ],
    }),
  );
  const child = spawn(
    'prometheus',
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=warn',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const ended = once(child, 'close');

  const ask = async <T>(path: string): Promise<T> => {
    const answer = await fetch(`http://${address}/${path}`);
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return ((await answer.json()) as { data: T }).data;
  };
  const query = <T>(expression: string) =>
    ask<{ result: readonly T[] }>(`api/v1/query?query=${encodeURIComponent(expression)}`);
  const isReady = () =>
    fetch(`http://${address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  await vi.waitUntil(async () => {
    if (child.exitCode !== null) throw new Error(`prometheus ended: ${said}`);
    return isReady();
  }, PATIENCE);

  return {
    add: (instance, url, everyS = 1) => {
      const unfinished = join(folder, `${instance}.json`);
      const { host } = new URL(url);
      const labels = { instance, __scrape_interval__: `${everyS}s` };
      writeFileSync(unfinished, JSON.stringify([{ targets: [host], labels }]));
      renameSync(unfinished, join(targets, `${instance}.json`)); // it looks at whole files alone
    },
    scraped: async (instance) => {
      const since = Date.now() / 1_000;
      await vi.waitUntil(async () => {
        interface Series {
          readonly value: readonly [at: number, value: string];
        }
        const { result } = await query<Series>(`timestamp(up{instance="${instance}"} == 1)`);
        return result.some(({ value }) => Number(value[1]) > since);
      }, PATIENCE);
    },
    firing: async () => {
      interface Alert {
        readonly state: string;
        readonly labels: Readonly<Record<string, string>>;
      }
      const { alerts } = await ask<{ alerts: readonly Alert[] }>('api/v1/alerts');
      return alerts.filter(({ state }) => state === 'firing').map(({ labels }) => firingOf(labels));
    },
    fired: async (seconds) => {
      interface Series {
        readonly metric: Readonly<Record<string, string>>;
      }
      const { result } = await query<Series>(
        `max_over_time(ALERTS{alertstate="firing"}[${Math.ceil(seconds)}s])`,
      );
      return result.map(({ metric }) => firingOf(metric));
    },
    close: async () => {
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const PATIENCE = { timeout: 20_000, interval: 50 };

function firingOf(labels: Readonly<Record<string, string>>): FiringAlert {
  const { alertname = '', instance = '', account } = labels;
  return { alert: alertname, instance, account };
}

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 };
type Unit = keyof typeof SECONDS;

/** What times are not shortened below, in seconds. */
export interface LeastTimes {
  /** A moment's weakness must not fire anything. */
  readonly forS: number;
  /** A range has to hold some scrapes. */
  readonly rangeS: number;
}

/**
 * The rules with all their times divided by `factor`: `for`, and the ranges of expressions with
 * their steps and offsets. Limits stay as they are: a count of 3 in 15 minutes becomes one of 3 in a
 * shorter time.
 */
export function hastened(rules: string, factor: number, { forS, rangeS }: LeastTimes): string {
  const shorter = (text: string, least: number) => {
    const [, count, unit] = /^(\d+)([smhd])$/.exec(text) ?? [];
    if (unit === undefined) throw new Error(`${text} is no time`);
    return `${Math.max(least, Math.round((Number(count) * SECONDS[unit as Unit]) / factor))}s`;
  };
  return rules
    .replace(
      /^( *for: )(\w+)$/gm,
      (_, before: string, time: string) => before + shorter(time, forS),
    )
    .replace(/\[(\w+)(?::(\w+))?\]/g, (_, range: string, step?: string) => {
      const steps = step === undefined ? '' : `:${shorter(step, 1)}`;
      return `[${shorter(range, rangeS)}${steps}]`;
    })
    .replace(
      /(offset )(\w+)/g,
      (_, before: string, time: string) => before + shorter(time, rangeS),
    );
}
