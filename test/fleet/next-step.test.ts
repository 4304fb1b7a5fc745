import { describe, expect, it } from 'vitest';
import { ANSWER_WITHIN_MS, nextStep } from '../../src/fleet/next-step.ts';
import type { Situation } from '../../src/fleet/next-step.ts';

const owner = (instance: string, generation = 3) => ({ instance, name: instance, generation });
const word = (instance: string | undefined, ask?: { instance: string; generation: number }) => ({
  owner: instance === undefined ? undefined : owner(instance),
  ask,
  at: 0,
  takenAt: undefined,
  losses: [],
  quarantinedAt: undefined,
});

/** Of `me`, in generation 4, beside `other`. */
function step(situation: Partial<Situation>) {
  return nextStep({
    me: 'me',
    doing: 'nothing',
    generation: 4,
    members: new Set(['me', 'other']),
    isGiven: true,
    word: undefined,
    askedMs: undefined,
    ...situation,
  });
}

describe('an account that is given', () => {
  it('is claimed where nobody has it', () => {
    expect(step({})).toBe('claim');
    expect(step({ word: word(undefined) })).toBe('claim');
    expect(step({ word: word('gone') })).toBe('claim');
    expect(step({ word: word('me') })).toBe('claim');
    expect(step({ word: word(undefined), doing: 'warm' })).toBe('claim');
  });

  it('is made ready, then asked for, then claimed, where another member has it', () => {
    const others = { word: word('other') };
    expect(step(others)).toBe('warm');
    expect(step({ ...others, doing: 'warming' })).toBe('stay');
    expect(step({ ...others, doing: 'warm' })).toBe('ask');
    expect(step({ ...others, doing: 'warm', askedMs: ANSWER_WITHIN_MS - 1 })).toBe('stay');
    expect(step({ ...others, doing: 'warm', askedMs: ANSWER_WITHIN_MS })).toBe('claim');
    expect(step({ word: word(undefined), doing: 'warm', askedMs: 10 })).toBe('claim');
  });

  it('has the reading of its images ended first where it is claimed meanwhile', () => {
    expect(step({ word: word(undefined), doing: 'warming' })).toBe('drop');
    expect(step({ word: word('gone'), doing: 'warming' })).toBe('drop');
    expect(step({ word: word('me'), doing: 'warming' })).toBe('drop');
  });

  it('is left to whoever has it by a generation that is not known here yet', () => {
    const newer = { ...word('newcomer'), owner: owner('newcomer', 5) };
    expect(step({ word: newer })).toBe('stay');
    expect(step({ word: newer, doing: 'warm', askedMs: 60_000 })).toBe('stay');
  });

  it('goes on where it runs', () => {
    expect(step({ doing: 'running', word: word('me') })).toBe('stay');
    const ask = { instance: 'other', generation: 4 };
    expect(step({ doing: 'running', word: word('me', ask) })).toBe('stay');
  });
});

describe('an account that is given to another instance', () => {
  const away = { isGiven: false, doing: 'running' } as const;

  it('goes on until that one asks', () => {
    expect(step({ ...away, word: word('me') })).toBe('stay');
    const ask = { instance: 'other', generation: 4 };
    expect(step({ ...away, word: word('me', ask) })).toBe('release');
  });

  it('is stopped where nobody is to run it, as another account has its key', () => {
    expect(step({ ...away, word: word('me'), isTwin: true })).toBe('drop');
    expect(step({ isGiven: false, isTwin: true })).toBe('stay');
  });

  it('is not claimed any more where its claim has not come through', () => {
    expect(step({ ...away, word: word('other') })).toBe('drop');
    expect(step({ ...away, word: word(undefined) })).toBe('drop');
    expect(step({ ...away, word: { ...word('me'), isAnnounced: true } })).toBe('drop');
  });

  it('is not released to a target of another generation', () => {
    for (const generation of [3, 5]) {
      const ask = { instance: 'other', generation };
      expect(step({ ...away, word: word('me', ask) })).toBe('stay');
    }
  });

  it('is not read any further', () => {
    expect(step({ isGiven: false, doing: 'warming' })).toBe('drop');
    expect(step({ isGiven: false, doing: 'warm' })).toBe('drop');
    expect(step({ isGiven: false })).toBe('stay');
  });
});

it('waits while it is in no generation, and while something comes to its end', () => {
  expect(step({ generation: undefined })).toBe('stay');
  expect(step({ doing: 'stopping' })).toBe('stay');
});
