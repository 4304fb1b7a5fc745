import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { startOnDocker } from '../../src/devstack/docker.ts';

const removed: string[] = [];

/** A container that runs, but can't be reached: nothing listens on its port. Its log ends when it is removed. */
class UnreachableContainer {
  readonly hostConfig = {};
  readonly #image: string;

  constructor(image: string) {
    this.#image = image;
  }

  withEnvironment() {
    return this;
  }

  withExposedPorts() {
    return this;
  }

  withWaitStrategy() {
    return this;
  }

  withStartupTimeout() {
    return this;
  }

  start() {
    const log = new PassThrough();
    log.write(`the log of ${this.#image}`);
    const stop = () => {
      if (!log.writableEnded) removed.push(this.#image);
      log.end();
      return Promise.resolve();
    };
    return Promise.resolve({ logs: () => Promise.resolve(log), stop });
  }
}

it('shows the log of a container that does not answer, and removes all containers', async () => {
  const engine = {
    ...{ isAvailable: true, host: 'localhost' },
    testcontainers: {
      GenericContainer: UnreachableContainer,
      Wait: { forLogMessage: () => undefined },
    },
  } as unknown as Parameters<typeof startOnDocker>[0];
  await expect(startOnDocker(engine, { readyTimeoutMs: 100 })).rejects.toMatchObject({
    code: 'SERVICES',
    message: expect.stringMatching(
      /^Kafka did not answer within 0.1 s; the end of its log:\nthe log of apache\/kafka:/,
    ) as string,
  });
  expect(removed).toHaveLength(2);
});
