/** The requests that tests have something to say of, by the numbers of Kafka's protocol. */
export const API_KEYS = {
  Produce: 0,
  Fetch: 1,
  ListOffsets: 2,
  Metadata: 3,
  FindCoordinator: 10,
  ApiVersions: 18,
  InitProducerId: 22,
  AddPartitionsToTxn: 24,
  EndTxn: 26,
} as const;
export type ApiName = keyof typeof API_KEYS;

const NAMES = new Map<number, ApiName>(
  Object.entries(API_KEYS).map(([name, key]) => [key, name as ApiName]),
);

/** The size that stands before each frame. */
const SIZE_BYTES = 4;

/** Puts frames together again, however their bytes were cut into chunks. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0);

  /** The frames that this chunk completes, each with its size before it. */
  push(chunk: Buffer): Buffer[] {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const frames: Buffer[] = [];
    while (bytes.length >= SIZE_BYTES) {
      const end = SIZE_BYTES + bytes.readInt32BE(0);
      if (bytes.length < end) break;
      frames.push(bytes.subarray(0, end));
      bytes = bytes.subarray(end);
    }
    this.#rest = bytes;
    return frames;
  }
}

/** A request of a client, as far as a test looks into it. */
export interface KafkaRequest {
  /** Undefined for those that are not in {@link API_KEYS}. */
  readonly api: ApiName | undefined;
  readonly version: number;
  readonly correlationId: number;
  /**
   * The text that begins the body of those that have one there: the transactional id, or whose
   * coordinator is looked for. Null where the protocol says so.
   */
  readonly id: string | null;
  /** All of it, with its size before it. */
  readonly frame: Buffer;
  /** Where in the frame the body begins. */
  readonly bodyAt: number;
}

/** Bodies that begin with a text: with the version from which they do, and on which they cease to. */
const ID_FIRST: Partial<Record<ApiName, readonly [number, number]>> = {
  Produce: [3, 9],
  FindCoordinator: [0, 3],
  InitProducerId: [0, 2],
  AddPartitionsToTxn: [0, 3],
  EndTxn: [0, 3],
};

export function readRequest(frame: Buffer): KafkaRequest {
  const api = NAMES.get(frame.readInt16BE(4));
  const version = frame.readInt16BE(6);
  const clientId = readText(frame, 12);
  const bodyAt = clientId.end;
  const [from, to] = (api && ID_FIRST[api]) ?? [0, 0];
  const id = version >= from && version < to ? readText(frame, bodyAt).text : null;
  return { api, version, correlationId: frame.readInt32BE(8), id, frame, bodyAt };
}

/** Which request a broker's answer is to. */
export function correlationOf(answer: Buffer): number {
  return answer.readInt32BE(4);
}

/** The code of an answer to `EndTxn` or `InitProducerId`; undefined for any other. */
export function errorCodeOf({ api }: KafkaRequest, answer: Buffer): number | undefined {
  const throttleEnd = 12;
  return api === 'EndTxn' || api === 'InitProducerId' ? answer.readInt16BE(throttleEnd) : undefined;
}

/**
 * Puts another port into the addresses of brokers that an answer tells of, so that clients come back
 * to a proxy. The hosts stay.
 *
 * @throws RangeError when the answer's version is one whose layout is not known here.
 */
export function withPort({ api, version }: KafkaRequest, answer: Buffer, port: number): Buffer {
  if (api !== 'Metadata' && api !== 'FindCoordinator') return answer;
  const [least, most] = api === 'Metadata' ? [3, 8] : [1, 2];
  if (version < least || version > most) throw new RangeError(`${api} v${version} is not known`);
  const changed = Buffer.from(answer);
  let at = 12; // size, correlation id, throttle time
  if (api === 'FindCoordinator') {
    at = readText(changed, at + 2).end; // error code and message
    putPort(changed, at, port);
    return changed;
  }
  const brokers = changed.readInt32BE(at);
  at += 4;
  for (let n = 0; n < brokers; n++) at = readText(changed, putPort(changed, at, port)).end; // rack
  return changed;
}

/** Sets how long the transactions may take that an `InitProducerId` speaks of, ms. */
export function setTransactionTimeout({ api, frame, bodyAt }: KafkaRequest, ms: number): void {
  if (api !== 'InitProducerId') throw new TypeError('only InitProducerId says how long');
  frame.writeInt32BE(ms, readText(frame, bodyAt).end);
}

/** At a broker's node id: @returns where its port ends. */
function putPort(answer: Buffer, nodeAt: number, port: number): number {
  const portAt = readText(answer, nodeAt + 4).end;
  const isSet = answer.readInt32BE(portAt) > 0; // else there is no such broker
  return isSet ? answer.writeInt32BE(port, portAt) : portAt + 4;
}

/** A text with its length before it; -1 is null. */
function readText(
  frame: Buffer,
  at: number,
): { readonly text: string | null; readonly end: number } {
  const length = frame.readInt16BE(at);
  const start = at + 2;
  if (length < 0) return { text: null, end: start };
  return { text: frame.toString('utf8', start, start + length), end: start + length };
}
