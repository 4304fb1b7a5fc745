import { AsyncLocalStorage } from 'node:async_hooks';
import { aroundEach, onTestFailed, onTestFinished } from 'vitest';
import type { TestContext } from 'vitest';

type Work = () => unknown;

/** They mostly wait; on a small machine for each other, too: what one may take, and what it may wait for. */
export const TIMEOUT = { timeout: 600_000 };
export const PATIENCE_MS = 180_000;

const running = new AsyncLocalStorage<TestContext>();

/**
 * For a file whose tests run beside each other: what one of them has started ends with it. Vitest's own hooks know
 * only one test at a time, and so does its `expect.poll`: `vi.waitFor` takes its place there.
 */
export function besideEachOther(): void {
  aroundEach((run, context) => running.run(context, run));
}

/** Is done when the test is over that runs this. */
export function atEnd(work: Work): void {
  (running.getStore()?.onTestFinished ?? onTestFinished)(async () => void (await work()));
}

/** The same if it failed. */
export function atFailure(work: Work): void {
  (running.getStore()?.onTestFailed ?? onTestFailed)(async () => void (await work()));
}
