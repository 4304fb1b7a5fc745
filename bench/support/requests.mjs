// @ts-check
// What the sandbox was asked, told apart.
import { mostInAnyWindow } from './statistics.mjs';

/** @typedef {Readonly<import('cellarstream/sandbox').Arrival>} Arrival */

const MINUTE_MS = 60_000;

/** A look at what is new: it names a window of modification dates. @param {Arrival} request */
export const isPoll = ({ query }) => new URLSearchParams(query).has('modifiedFromDate');

/** @param {Arrival} request */
export const isAnswered = ({ status }) => status === 200;

/** Requests that were answered, a minute. @param {readonly Arrival[]} requests @param {number} ms In which they came. */
export const perMinute = (requests, ms) => (requests.filter(isAnswered).length * MINUTE_MS) / ms;

/**
 * Requests a minute from the first at or behind a time to the one that is so many behind it: as a quota that was used
 * at one go comes back at one go, minutes by the clock hold more or less, by where they begin. NaN where there are not so many.
 *
 * @param {readonly Pick<Arrival, 'at'>[]} requests In the order in which they came.
 * @param {number} from
 * @param {number} count
 */
export function pace(requests, from, count) {
  const first = requests.findIndex(({ at }) => at >= from);
  const [began, ended] = [requests[first]?.at ?? NaN, requests[first + count]?.at ?? NaN];
  return (count * MINUTE_MS) / (ended - began);
}

/** Most requests in any minute. @param {readonly Arrival[]} requests */
export const maxInAMinute = (requests) =>
  mostInAnyWindow(
    requests.map(({ at }) => at),
    MINUTE_MS,
  );

/** Requests over the quota. @param {readonly Arrival[]} requests */
export const refused = (requests) => requests.filter(({ status }) => status === 429).length;
