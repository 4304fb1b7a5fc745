import * as real from '../../../src/streams/diff/newest.ts';

export * from '../../../src/streams/diff/newest.ts';

/** Of two reads of a record the one that is looked at last counts, whichever was asked for first. */
export class NewestReads extends real.NewestReads {
  override judge(): real.Verdict {
    return 'newer';
  }
}
