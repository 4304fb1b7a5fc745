import * as real from '../../../src/streams/paging/anchors.ts';

export * from '../../../src/streams/paging/anchors.ts';

/** A page counts though it shows nothing that was read before: what moved in between is lost. */
export const joinPage: typeof real.joinPage = (at, data, options) => {
  const joint = real.joinPage(at, data, options);
  if (joint.anchored) return joint;
  const taken = real.joinPage({ ...at, offset: 0 }, data, options);
  return { ...taken, next: { ...taken.next, offset: at.offset + taken.next.step } };
};
