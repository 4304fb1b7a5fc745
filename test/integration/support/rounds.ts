import { vi } from 'vitest';
import type { Resource, Sandbox } from '../../../src/sandbox/index.ts';
import type { Cli, LogLine } from './cli.ts';
import { PATIENCE_MS } from './running-test.ts';

const PATIENCE = { timeout: PATIENCE_MS };

/**
 * Resolves when a sweep that began after now has been dealt with. The service needs
 * `LOG_LEVEL=debug`.
 */
export async function swept(service: Cli, resource: Resource): Promise<void> {
  const isSwept = (line: LogLine) => line.event === 'swept' && line.resource === resource;
  const ended = () => service.lines().filter(isSwept);
  const before = ended().length;
  // The next to end may have begun before.
  await service.logged((line) => isSwept(line) && ended().indexOf(line) > before);
}

/** Resolves when so many list requests have come since now: what was read is read again. */
export async function requested(sandbox: Sandbox, resource: Resource, count = 6): Promise<void> {
  const before = sandbox.truth.requests(resource).length;
  await vi.waitUntil(() => sandbox.truth.requests(resource).length >= before + count, PATIENCE);
}
