import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import type { Resource } from '../../../src/description/description.ts';
import { startSandbox } from '../../../src/sandbox/index.ts';
import type { Sandbox, SandboxOptions } from '../../../src/sandbox/index.ts';
import { runCli } from './cli.ts';
import type { Cli, LogLine } from './cli.ts';
import { atEnd } from './running-test.ts';

export type Env = Readonly<Record<string, string>>;

/** A sandbox for one test; with a quota that does not matter unless the test says otherwise. */
export async function sandboxForTest(options: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await startSandbox({
    quotaPerMinute: 1_000,
    loginQuotaPerMinute: 1_000,
    ...options,
  });
  atEnd(() => sandbox.close());
  return sandbox;
}

/** An empty folder for one test. */
export function folderForTest(): string {
  const folder = mkdtempSync(join(tmpdir(), 'cellarstream-test-'));
  atEnd(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The settings that `run` can't do without, and few partitions. */
export function connections(sandbox: Sandbox, prefix: string, state: string): Env {
  return {
    API_BASE_URL: sandbox.url,
    API_KEY: sandbox.apiKey,
    KAFKA_BROKERS: inject('brokers').join(','),
    SCHEMA_REGISTRY_URL: inject('registryUrl'),
    TOPIC_PREFIX: prefix,
    TOPIC_PARTITIONS: '2', // each costs its broker something with each commit
    STATE_DIR: state,
  };
}

/** {@link connections} of orders alone, with the quota of {@link sandboxForTest}; what is gone is so at once. */
export function settings(sandbox: Sandbox, prefix: string, state: string): Env {
  return {
    ...connections(sandbox, prefix, state),
    QUOTA_PER_MINUTE: '1000',
    POLL_INTERVAL_MS: '400', // polls without a pause would take most of the processor
    LOGIN_QUOTA_PER_MINUTE: '1000',
    DELETE_PROOF_MS: '0', // a list is not wrong by itself here
    RESOURCES: 'orders',
  };
}

/** `cellarstream ARGS`, killed at the end of the test if it still runs then. */
export function cliForTest(args: readonly string[], env: Env): Cli {
  const cli = runCli(args, env);
  atEnd(() => cli.end('SIGKILL'));
  return cli;
}

/** Resolves when the initial snapshot of a list is done; of whichever it is, where there is but one. */
export async function firstReadDone(service: Cli, resource?: Resource): Promise<void> {
  const isOf = (line: LogLine) => resource === undefined || line.resource === resource;
  await service.logged((line) => line.event === 'first-read' && line.done === true && isOf(line));
}
