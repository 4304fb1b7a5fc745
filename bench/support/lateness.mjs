// @ts-check
// How late status changes are seen where several of one field may come as one event.

/**
 * @typedef {object} Change
 * @property {string} field Which one, of which part of which order.
 * @property {string | null} to
 * @property {number} at When it was made, or seen.
 */

/**
 * Lateness of each change that was made, ms: until the event that tells of it or of a later one of the
 * same field. What is undone before anybody looks has no event of its own: it waits for the next one, so
 * that lateness is rather told too large.
 *
 * @param {readonly Change[]} made In order.
 * @param {readonly Change[]} seen In order, of each field.
 * @returns {{ readonly delays: number[], readonly unseen: number }} `unseen`: nothing came after them.
 */
export function latenessOf(made, seen) {
  const events = byField(seen);
  const delays = [];
  let unseen = 0;
  for (const [field, changes] of byField(made)) {
    let place = 0;
    for (const { to, at } of events.get(field) ?? []) {
      const last = changes.findIndex(
        (change, nth) => nth >= place && change.to === to && change.at <= at,
      );
      for (; place <= last; place++) delays.push(at - (changes[place]?.at ?? NaN));
    }
    unseen += changes.length - place;
  }
  return { delays, unseen };
}

/** @param {readonly Change[]} changes */
function byField(changes) {
  /** @type {Map<string, Change[]>} */
  const groups = new Map();
  for (const change of changes) {
    const group = groups.get(change.field) ?? [];
    groups.set(change.field, group);
    group.push(change);
  }
  return groups;
}
