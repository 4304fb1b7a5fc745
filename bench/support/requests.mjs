// @ts-check
// What the sandbox was asked, told apart.
import { mostInAnyWindow } from './statistics.mjs';

/** @typedef {Readonly<import('cellarstream/sandbox').Arrival>} Arrival */

const MINUTE_MS = 60_000;

/** A look at what is new: it names a window of modification dates. @param {Arrival} request */
export const isPoll = ({ query }) => new URLSearchParams(query).has('modifiedFromDate');

/** Requests that were answered, a minute. @param {readonly Arrival[]} requests @param {number} ms In which they came. */
export const perMinute = (requests, ms) =>
  (requests.filter(({ status }) => status === 200).length * MINUTE_MS) / ms;

/** Most requests in any minute. @param {readonly Arrival[]} requests */
export const mostInAMinute = (requests) => mostInAnyWindow(requests.map(({ at }) => at), MINUTE_MS); // prettier-ignore

/** Requests over the quota. @param {readonly Arrival[]} requests */
export const refused = (requests) => requests.filter(({ status }) => status === 429).length;
