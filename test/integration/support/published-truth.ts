import { setTimeout as sleep } from 'node:timers/promises';
import type { SandboxAccount } from '../../../src/sandbox/index.ts';
import { checkOrders } from './checker.ts';
import { readTopic } from './topic-reader.ts';

const PATIENCE_MS = 150_000;

/** Resolves when the topic's last images are what a sandbox that stands still says. */
export async function publishedTruth(
  brokers: readonly string[],
  registryUrl: string,
  prefix: string,
  sandbox: Pick<SandboxAccount, 'truth'>,
): Promise<void> {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const violations = await readTopic(brokers, registryUrl, `${prefix}.orders`).then(
      (events) => checkOrders(events, sandbox).violations,
      (error: unknown) => {
        if (isAbsent(error)) return ['the topic is not there yet'];
        throw error;
      },
    );
    if (violations.length === 0) return;
    if (performance.now() > until) {
      throw new Error(
        `${violations.length} violations remain: ${violations.slice(0, 5).join('\n')}`,
      );
    }
    await sleep(500); // between two looks
  }
}

/** A service on a busy machine has not made it yet, or its partitions have no leaders yet. */
function isAbsent(error: unknown): boolean {
  return error instanceof Error && NOT_YET.test(error.message);
}

const NOT_YET = /does not host this topic-partition|not the leader|no leader for this/;
