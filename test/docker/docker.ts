import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { runCli } from '../integration/support/cli.ts';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PROJECT = 'cellarstream-test';

/** Settings of a program on the host, as README.md has them for docker-compose.yml. */
export const ON_HOST = {
  KAFKA_BROKERS: 'localhost:9092',
  SCHEMA_REGISTRY_URL: 'http://localhost:8081/apis/ccompat/v7',
};

/** Runs `docker ARGS` in the project's root; resolves with what it prints on stdout. */
export async function docker(...args: readonly string[]): Promise<string> {
  const { stdout } = await run('docker', [...args], { cwd: ROOT, maxBuffer: 1e8 });
  return stdout.trim();
}

/** Runs `docker compose` with these files and a project name of the tests. */
export function compose(files: readonly string[], ...args: readonly string[]): Promise<string> {
  return docker('compose', '-p', PROJECT, ...files.flatMap((file) => ['-f', file]), ...args);
}

interface Replayed {
  readonly key: string;
  readonly op: string;
  readonly before: unknown;
  readonly after: unknown;
  readonly source: { readonly sequence: number };
}

/** All events of a list's topic, read from the host by `cellarstream replay`. */
export async function replayed(list: string): Promise<readonly Replayed[]> {
  const cli = runCli(['replay', list, '--to', 'latest'], ON_HOST);
  await cli.succeeded();
  const lines = cli.stdout().trim().split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as Replayed);
}

/** Expects that the events of each key follow each other: `before` is the previous `after`, and `source.sequence` rises. */
export function expectNoRepetition(events: readonly Replayed[]): void {
  const newest = new Map<string, Replayed>();
  for (const event of events) {
    const previous = newest.get(event.key);
    expect(event.before).toEqual(previous?.after ?? null);
    if (previous) expect(event.source.sequence).toBeGreaterThan(previous.source.sequence);
    newest.set(event.key, event);
  }
}

/** Body of the answer to a GET; with the status before it if that is not 200. */
export async function get(url: string): Promise<string> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(5_000) });
  const text = await answer.text();
  return answer.status === 200 ? text.trim() : `${answer.status} ${text}`;
}
