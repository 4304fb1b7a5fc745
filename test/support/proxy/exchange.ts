import type { KafkaRequest } from './kafka-frames.ts';

/** One request on its way to the broker, in the hands of a {@link Fault}. */
export interface Exchange {
  readonly request: KafkaRequest;
  /** Gives the request to the broker; resolves with the answer, of which the client has nothing yet. */
  readonly forward: () => Promise<Answer>;
  /** Gives the client an answer; does nothing when its connection is gone. */
  readonly reply: (answer: Answer) => void;
  /** Keeps the connection to the broker until then, though the client closes its own. */
  readonly stay: (until: PromiseLike<unknown>) => void;
  /** Resets the connection that it came on. */
  readonly cut: () => void;
  /** Leaves all connections of the client in the dark: open, and dead. New ones are served. */
  readonly darken: () => void;
}

export interface Answer {
  readonly frame: Buffer;
  /** As {@link errorCodeOf} reads it; 0 is success. */
  readonly errorCode: number | undefined;
}

/** What becomes of one request. Faults are made of what an {@link Exchange} can do. */
export type Fault = (exchange: Exchange) => void | Promise<void>;

/** Nothing happens to it. */
export const pass: Fault = async ({ forward, reply }) => reply(await forward());

/** The broker does it, the client never hears of it: its connection is reset instead. */
export const loseAnswer: Fault = async ({ forward, cut }) => {
  await forward();
  cut();
};

/** The broker never gets it: the connection is reset. */
export const loseRequest: Fault = ({ cut }) => cut();

/** The broker does it, and all connections of the client are dead from then on without a sign. */
export const goDark: Fault = async ({ forward, darken }) => {
  await forward();
  darken();
};

/** Something to wait for; asked for when the request has come. */
export type Until = () => PromiseLike<unknown>;

/** The broker does it at once, and the client hears of it when that has happened. */
export const holdAnswer =
  (until: Until): Fault =>
  async ({ forward, reply }) => {
    const held = until();
    const answer = await forward();
    await held;
    reply(answer);
  };

/** The broker gets it when that has happened: perhaps long after the client has given it up. */
export const holdRequest =
  (until: Until): Fault =>
  async ({ forward, reply, stay }) => {
    const answer = Promise.resolve(until()).then(forward);
    stay(answer);
    reply(await answer);
  };
