import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { frame } from '../support/proxy/frame-of.ts';
import type { Part } from '../support/proxy/frame-of.ts';
import { FrameReader } from '../support/proxy/kafka-frames.ts';

/** Whose coordinator is looked for: numbers of Kafka's protocol. */
const KINDS = { group: 0, transaction: 1 } as const;

/** Longer than an election takes. */
const PATIENCE_MS = 30_000;
const BETWEEN_TRIES_MS = 200;
const ANSWER_MS = 3_000;

/**
 * Which node coordinates a group or a transactional id now, as any of these brokers says.
 *
 * @throws Error when none of them says so in half a minute.
 */
export function coordinatorOf(
  brokers: readonly string[],
  kind: keyof typeof KINDS,
  id: string,
): Promise<number> {
  const FIND_COORDINATOR = 10;
  return fromAny(brokers, `the coordinator of ${id}`, async (broker) => {
    const answer = await ask(broker, header(FIND_COORDINATOR, 1, id, [1, KINDS[kind]]));
    // Behind size, correlation id and throttle time: code, message, node.
    const messageLength = answer.readInt16BE(14);
    return answer.readInt16BE(12) === 0
      ? answer.readInt32BE(16 + Math.max(0, messageLength))
      : undefined;
  });
}

/** Which node is the active controller: the leader of the quorum. What Metadata names is any broker. */
export function activeController(brokers: readonly string[]): Promise<number> {
  const DESCRIBE_QUORUM = 55;
  const NO_TAGS = Buffer.of(0);
  const topic = Buffer.from('__cluster_metadata');
  return fromAny(brokers, 'the active controller', async (broker) => {
    // Compact: of a text and of an array the length is one more than it is.
    const body: Part[] = [
      ...[NO_TAGS, Buffer.of(1 + 1), Buffer.of(1 + topic.length), topic, Buffer.of(1 + 1)],
      ...([[4, 0], NO_TAGS, NO_TAGS, NO_TAGS] as const),
    ];
    const answer = await ask(broker, header(DESCRIBE_QUORUM, 0, ...body));
    // Behind size, correlation id and tags: code; one topic, its name; one partition, its number and code.
    const leader = answer.readInt32BE(9 + 2 + 1 + 1 + topic.length + 1 + 4 + 2);
    return answer.readInt16BE(9) === 0 && leader >= 0 ? leader : undefined;
  });
}

function header(api: number, version: number, ...body: readonly Part[]): Buffer {
  return frame([2, api], [2, version], [4, 1], 'chaos', ...body);
}

/** One request on a connection of its own. */
async function ask(broker: string, bytes: Buffer): Promise<Buffer> {
  const [host = '', port] = broker.split(':');
  const socket = connect(Number(port), host);
  const signal = AbortSignal.timeout(ANSWER_MS);
  try {
    await once(socket, 'connect', { signal });
    socket.write(bytes);
    const answers = new FrameReader();
    for (;;) {
      const [chunk] = (await once(socket, 'data', { signal })) as [Buffer];
      const [answer] = answers.push(chunk);
      if (answer) return answer;
    }
  } finally {
    socket.destroy();
  }
}

/** The first answer of any broker; again and again, while elections go on. */
async function fromAny(
  brokers: readonly string[],
  what: string,
  answer: (broker: string) => Promise<number | undefined>,
): Promise<number> {
  const until = performance.now() + PATIENCE_MS;
  let cause: unknown;
  while (performance.now() < until) {
    for (const broker of brokers) {
      try {
        const found = await answer(broker);
        if (found !== undefined) return found;
      } catch (error) {
        cause = error; // it is down, perhaps: another may know
      }
    }
    await sleep(BETWEEN_TRIES_MS);
  }
  throw new Error(`no broker knows ${what}`, { cause });
}
