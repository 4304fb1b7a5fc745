import { randomUUID } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';
import { expect, vi } from 'vitest';
import type { TestFleet } from './fleet.ts';
import { atEnd } from './running-test.ts';

/** What an instance has said of an account in the fleet's topic. */
export interface Said {
  readonly type: string;
  readonly account: string;
  /** Who says it: the process, and its name. */
  readonly instance: string;
  readonly name: string;
  readonly generation?: number;
}

export interface FleetSaid {
  /** All of it, oldest first, committed or not: as instances read it. */
  readonly all: readonly Said[];
  /** Resolves with the first, past or to come, that fits. */
  readonly heard: (accept: (said: Said) => boolean) => Promise<Said>;
  /** Resolves when an instance runs so many accounts, with their names. */
  readonly runBy: (name: string, count: number) => Promise<readonly string[]>;
}

const SOON = { timeout: 60_000, interval: 10 };

/** Follows the fleet's topic, which must be there, from its beginning to the end of the test. */
export async function followFleet({ brokers, prefix }: TestFleet): Promise<FleetSaid> {
  const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING });
  const consumer = kafka.consumer({
    groupId: `test-fleet-${randomUUID()}`,
    readUncommitted: true,
    maxWaitTimeInMs: 100,
    allowAutoTopicCreation: false,
  });
  atEnd(() => consumer.disconnect());
  const all: Said[] = [];
  await consumer.connect();
  await consumer.subscribe({ topic: `${prefix}.fleet`, fromBeginning: true });
  await consumer.run({
    eachMessage: ({ message }) => {
      if (message.value) all.push(JSON.parse(String(message.value)) as Said); // else it is forgotten
      return Promise.resolve();
    },
  });
  const heard = async (accept: (said: Said) => boolean): Promise<Said> => {
    await vi.waitFor(() => expect(all.some(accept)).toBe(true), SOON);
    return all.find(accept)!;
  };
  const run = (name: string): string[] => {
    const owners = new Map<string, string>();
    for (const { type, account, name: who } of all) {
      if (type === 'runs') owners.set(account, who);
      if (type === 'released') owners.delete(account);
    }
    return [...owners].flatMap(([account, owner]) => (owner === name ? [account] : []));
  };
  const runBy = async (name: string, count: number): Promise<readonly string[]> => {
    await vi.waitFor(() => expect(run(name)).toHaveLength(count), SOON);
    return run(name);
  };
  return { all, heard, runBy };
}
