import { protocolReader } from './protocol-reader.ts';
import type { ProtocolReader } from './protocol-reader.ts';
import { NO_TAGS } from './protocol-writer.ts';

/** A request, and how its answer is read: https://kafka.apache.org/protocol#protocol_messages */
export interface Call<T> {
  readonly name: string;
  readonly key: number;
  readonly version: number;
  /** Newer requests and answers carry fields by their numbers: here always none. */
  readonly isFlexible?: true;
  readonly body: Buffer;
  readonly read: (answer: ProtocolReader) => T;
  /** Where an answer says for how long the broker reads nothing more of this client. Default in front. */
  readonly saysThrottle?: 'behind';
}

/** What a broker said, and for how long it reads nothing more of this client, ms. */
export interface Answer<T> {
  readonly value: T;
  readonly throttleMs: number;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

export function nameOf({ host, port }: Address): string {
  return `${host}:${port}`;
}

/** What a call is read from: what comes behind the number that tells which call it answers. */
export function readAnswer<T>(call: Call<T>, bytes: Buffer): Answer<T> {
  const answer = protocolReader(bytes);
  if (call.isFlexible) answer.int8(); // no tags
  if (call.saysThrottle === 'behind')
    return { value: call.read(answer), throttleMs: answer.int32() };
  const throttleMs = answer.int32();
  return { value: call.read(answer), throttleMs };
}

/** What a call has behind the name of the client. */
export function bodyOf({ isFlexible, body }: Call<unknown>): Buffer {
  return isFlexible ? Buffer.concat([NO_TAGS, body]) : body;
}
