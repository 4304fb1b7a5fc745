/** The requests that tests have something to say of, by the numbers of Kafka's protocol. */
export const API_KEYS = {
  Produce: 0,
  Fetch: 1,
  ListOffsets: 2,
  Metadata: 3,
  FindCoordinator: 10,
  JoinGroup: 11,
  SyncGroup: 14,
  ApiVersions: 18,
  InitProducerId: 22,
  AddPartitionsToTxn: 24,
  EndTxn: 26,
  SaslAuthenticate: 36,
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
   * The text that begins the body of those that have one there: the transactional id, the group, or whose
   * coordinator is looked for. Null where the protocol says so.
   */
  readonly id: string | null;
  /** All of it, with its size before it. */
  readonly frame: Buffer;
  /** Where in the frame the body begins. */
  readonly bodyAt: number;
}

/**
 * Bodies that begin with a text: with the version from which they do, the one from which lengths are compact
 * and headers have tagged fields, and the last one that is known here.
 */
const ID_FIRST: Partial<Record<ApiName, readonly [from: number, compactFrom: number, to: number]>> =
  {
    Produce: [3, 9, 8],
    FindCoordinator: [0, 3, 2],
    JoinGroup: [0, 6, 5],
    SyncGroup: [0, 4, 3],
    InitProducerId: [0, 2, 5],
    AddPartitionsToTxn: [0, 3, 3],
    EndTxn: [0, 3, 4],
  };

export function readRequest(frame: Buffer): KafkaRequest {
  const api = NAMES.get(frame.readInt16BE(4));
  const version = frame.readInt16BE(6);
  const headerEnd = readText(frame, 12).end; // behind the client's id
  const [from, , to] = (api && ID_FIRST[api]) ?? [0, 0, -1];
  const request = { api, version, correlationId: frame.readInt32BE(8), id: null, frame };
  if (version < from || version > to) return { ...request, bodyAt: headerEnd };
  const bodyAt = isCompact(request) ? taggedEnd(frame, headerEnd) : headerEnd;
  return { ...request, bodyAt, id: idOf(request, bodyAt).text };
}

/** Whether an `EndTxn` commits; else it aborts. */
export function commits(request: KafkaRequest): boolean {
  if (request.api !== 'EndTxn') throw new TypeError('only EndTxn ends a transaction');
  const producer = 8 + 2; // id and epoch
  return request.frame.readInt8(idOf(request, request.bodyAt).end + producer) !== 0;
}

/** Which request a broker's answer is to. */
export function correlationOf(answer: Buffer): number {
  return answer.readInt32BE(4);
}

/**
 * The code of an answer to `EndTxn` or `InitProducerId`; of one to `Produce` (up to version 7) the first code that
 * is not 0, if a partition has one; undefined for any other.
 */
export function errorCodeOf(request: KafkaRequest, answer: Buffer): number | undefined {
  const { api, version } = request;
  if (api === 'Produce') {
    if (version < 3 || version > 7) return undefined;
    return producedCodes(answer, version).find((code) => code !== 0) ?? 0;
  }
  if (api !== 'EndTxn' && api !== 'InitProducerId') return undefined;
  const headerEnd = isCompact(request) ? taggedEnd(answer, 8) : 8;
  return answer.readInt16BE(headerEnd + 4); // behind the throttle time
}

/** Of each partition, in the order of the answer to a `Produce`. */
function producedCodes(answer: Buffer, version: number): number[] {
  const codes: number[] = [];
  // Behind the code: offset and append time, from version 5 on the log's start.
  const rest = version < 5 ? 16 : 24;
  let at = 8;
  const topics = answer.readInt32BE(at);
  at += 4;
  for (let t = 0; t < topics; t++) {
    at = readText(answer, at).end;
    const partitions = answer.readInt32BE(at);
    at += 4;
    for (let p = 0; p < partitions; p++) {
      codes.push(answer.readInt16BE(at + 4));
      at += 6 + rest;
    }
  }
  return codes;
}

/**
 * Puts other ports into the addresses of brokers that an answer tells of, so that clients come back
 * to a proxy. The hosts stay.
 *
 * @param portFor The port for a broker, by its `host:port`.
 * @throws RangeError when the answer's version is one whose layout is not known here.
 */
export function withPorts(
  { api, version }: KafkaRequest,
  answer: Buffer,
  portFor: (broker: string) => number,
): Buffer {
  if (api !== 'Metadata' && api !== 'FindCoordinator') return answer;
  const [least, most] = api === 'Metadata' ? [1, 8] : [1, 2];
  if (version < least || version > most) throw new RangeError(`${api} v${version} is not known`);
  const changed = Buffer.from(answer);
  if (api === 'FindCoordinator') {
    // Behind size, correlation id, throttle time and error code: a message.
    putPort(changed, readText(changed, 14).end, portFor);
    return changed;
  }
  let at = version < 3 ? 8 : 12; // the throttle time came with version 3
  const brokers = changed.readInt32BE(at);
  at += 4;
  for (let n = 0; n < brokers; n++) at = readText(changed, putPort(changed, at, portFor)).end; // rack
  return changed;
}

/** Sets how long the transactions may take that an `InitProducerId` speaks of, ms. */
export function setTransactionTimeout(request: KafkaRequest, ms: number): void {
  if (request.api !== 'InitProducerId') throw new TypeError('only InitProducerId says how long');
  request.frame.writeInt32BE(ms, idOf(request, request.bodyAt).end);
}

/** At a broker's node id: @returns where its port ends. */
function putPort(answer: Buffer, nodeAt: number, portFor: (broker: string) => number): number {
  const { text: host, end: portAt } = readText(answer, nodeAt + 4);
  const port = answer.readInt32BE(portAt);
  // Else there is no such broker.
  return port > 0 ? answer.writeInt32BE(portFor(`${host}:${port}`), portAt) : portAt + 4;
}

function isCompact({ api, version }: Pick<KafkaRequest, 'api' | 'version'>): boolean {
  const [, compactFrom] = (api && ID_FIRST[api]) ?? [0, Infinity];
  return version >= compactFrom;
}

/** The text that a body begins with. */
function idOf(request: Pick<KafkaRequest, 'api' | 'version' | 'frame'>, bodyAt: number): Text {
  return isCompact(request) ? readCompact(request.frame, bodyAt) : readText(request.frame, bodyAt);
}

/** Behind the tagged fields of a header: none is ever sent. */
function taggedEnd(frame: Buffer, at: number): number {
  if (frame[at] !== 0) throw new RangeError('tagged fields in a header are not known');
  return at + 1;
}

interface Text {
  readonly text: string | null;
  readonly end: number;
}

/** A text with one more than its length before it, in groups of seven bits; 0 is null. */
function readCompact(frame: Buffer, at: number): Text {
  let start = at;
  let length = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = frame[start++]!;
    length |= (byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  if (length === 0) return { text: null, end: start };
  const end = start + length - 1;
  return { text: frame.toString('utf8', start, end), end };
}

/** A text with its length before it; -1 is null. */
function readText(frame: Buffer, at: number): Text {
  const length = frame.readInt16BE(at);
  const start = at + 2;
  if (length < 0) return { text: null, end: start };
  return { text: frame.toString('utf8', start, start + length), end: start + length };
}
