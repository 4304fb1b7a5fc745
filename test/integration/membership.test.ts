import { Kafka, logLevel } from 'kafkajs';
import { ReplaySubject, Subject } from 'rxjs';
import type { Subscription } from 'rxjs';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { membershipGroup } from '../../src/kafka/membership/group.ts';
import { membership } from '../../src/kafka/membership/membership.ts';
import type { Generation, Member } from '../../src/kafka/membership/membership.ts';
import { KafkaProxy } from '../support/proxy/kafka-proxy.ts';

/** The shortest that brokers allow by default. */
const SESSION_MS = 6_000;
const HEARTBEAT_MS = 500;
const SOON = { timeout: 10_000, interval: 50 };
/** A session, and what a rebalance takes then. */
const AFTER_A_SESSION = { timeout: SESSION_MS + 15_000, interval: 100 };

interface TestMember {
  readonly given: () => Generation | undefined;
  readonly all: readonly Generation[];
  readonly rejoin: () => void;
  readonly leave: () => Promise<void>;
  readonly errors: readonly unknown[];
}

/** A member that tells its name; the leader gives everybody the names of all. */
function join(group: string, name: () => string, brokers = inject('brokers')): TestMember {
  const kafka = new Kafka({ brokers, logLevel: logLevel.NOTHING });
  const leave$ = new ReplaySubject<void>(1);
  const rejoin$ = new Subject<void>();
  const all: Generation[] = [];
  const errors: unknown[] = [];
  const share = (members: readonly Member[]) => {
    const names = members.map(({ metadata }) => metadata.toString()).sort();
    return new Map(members.map(({ id }) => [id, Buffer.from(names.join())]));
  };
  let subscription: Subscription | undefined;
  const ended = new Promise<void>((resolve) => {
    subscription = membership({
      ...{ group: membershipGroup(kafka, group), assign: share, rejoin$, leave$ },
      sessionTimeoutMs: SESSION_MS,
      heartbeatMs: HEARTBEAT_MS,
      memberMetadata: () => Buffer.from(name()),
    }).subscribe({
      next: (generation) => all.push(generation),
      error: (error: unknown) => {
        errors.push(error);
        resolve();
      },
      complete: resolve,
    });
  });
  onTestFinished(() => subscription?.unsubscribe());
  return {
    given: () => all.at(-1),
    all,
    rejoin: () => rejoin$.next(),
    leave: () => {
      leave$.next();
      return ended;
    },
    errors,
  };
}

const textOf = (member: TestMember) => member.given()?.assignment.toString();
const all = (members: readonly TestMember[], text: string, within = SOON) =>
  expect.poll(() => members.map(textOf), within).toEqual(members.map(() => text));

describe('members of a group', () => {
  it('are given what one of them shares out, and hear soon who comes and who leaves', async () => {
    const [a, b] = [join('members', () => 'a'), join('members', () => 'b')];
    await all([a, b], 'a,b');
    const c = join('members', () => 'c');
    await all([a, b, c], 'a,b,c');
    const generations = [a, b, c].map((member) => member.given()!.number);
    expect(new Set(generations).size).toBe(1);
    expect([a, b, c].filter((member) => member.given()!.isLeader)).toHaveLength(1);

    const leader = [a, b, c].find((member) => member.given()!.isLeader)!;
    const others = [a, b, c].filter((member) => member !== leader);
    const left = performance.now();
    await leader.leave();
    await all(others, ['a', 'b', 'c'].filter((_, k) => [a, b, c][k] !== leader).join());
    expect(performance.now() - left).toBeLessThan(SESSION_MS);
    expect(Math.min(...others.map((member) => member.given()!.number))).toBeGreaterThan(
      generations[0]!,
    );
  });

  it('go on without one that says nothing any more, once its session is over', async () => {
    const proxy = await KafkaProxy.listen(inject('brokers')[0]!);
    onTestFinished(() => proxy.close());
    const lost = join('lost-member', () => 'lost', [proxy.address]);
    const here = join('lost-member', () => 'here');
    await all([lost, here], 'here,lost');
    proxy.tcp.fallSilent();
    await all([here], 'here', AFTER_A_SESSION);
    expect(textOf(lost)).toBe('here,lost'); // as long as nobody tells it otherwise
    proxy.tcp.answer();
    await all([lost, here], 'here,lost', AFTER_A_SESSION);
  });

  it('share out anew when one of them asks for it, with what each tells by then', async () => {
    let told = 'b';
    const [a, b] = [join('rejoin', () => 'a'), join('rejoin', () => told)];
    await all([a, b], 'a,b');
    told = 'changed';
    b.rejoin();
    await all([a, b], 'a,changed');
    a.rejoin();
    const before = a.given()!.number;
    await expect.poll(() => a.given()!.number, SOON).toBeGreaterThan(before - 1);
  });

  it('can not join a group of consumers, and say so', async () => {
    const kafka = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });
    const admin = kafka.admin();
    await admin.connect();
    await admin.createTopics({ topics: [{ topic: 'members-consumers', numPartitions: 1 }] });
    await admin.disconnect();
    const consumer = kafka.consumer({ groupId: 'consumers', allowAutoTopicCreation: false });
    onTestFinished(() => consumer.disconnect());
    await consumer.connect();
    await consumer.subscribe({ topic: 'members-consumers' });
    const joined = new Promise((resolve) => consumer.on(consumer.events.GROUP_JOIN, resolve));
    await consumer.run({ eachMessage: () => Promise.resolve() });
    await joined;
    const member = join('consumers', () => 'a');
    await expect.poll(() => member.errors, SOON).toHaveLength(1);
    expect(member.errors[0]).toMatchObject({ code: 'KAFKA_REFUSED' });
  });
});
