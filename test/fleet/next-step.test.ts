import { describe, expect, it } from 'vitest';
import { RELEASE_TIMEOUT_MS, nextStep } from '../../src/fleet/next-step.ts';
import type { StepInput } from '../../src/fleet/next-step.ts';

const owner = (instance: string, generation = 3) => ({ instance, name: instance, generation });
const word = (
  instance: string | undefined,
  releaseRequest?: { instance: string; generation: number },
) => ({
  owner: instance === undefined ? undefined : owner(instance),
  releaseRequest,
  updatedAt: 0,
  claimedAt: undefined,
  crashTimes: [],
  quarantinedAt: undefined,
});

/** Of `me`, in generation 4, beside `other`. */
function step(situation: Partial<StepInput>) {
  return nextStep({
    instance: 'me',
    phase: 'nothing',
    generation: 4,
    members: new Set(['me', 'other']),
    isAssigned: true,
    hasApiKeyConflict: false,
    account: undefined,
    releaseRequestedMs: undefined,
    ...situation,
  });
}

describe('an account that is given', () => {
  it('is claimed where nobody has it', () => {
    expect(step({})).toBe('claim');
    expect(step({ account: word(undefined) })).toBe('claim');
    expect(step({ account: word('gone') })).toBe('claim');
    expect(step({ account: word('me') })).toBe('claim');
    expect(step({ account: word(undefined), phase: 'warm' })).toBe('claim');
  });

  it('is made ready, then asked for, then claimed, where another member has it', () => {
    const others = { account: word('other') };
    expect(step(others)).toBe('warm');
    expect(step({ ...others, phase: 'warming' })).toBe('stay');
    expect(step({ ...others, phase: 'warm' })).toBe('ask');
    expect(step({ ...others, phase: 'warm', releaseRequestedMs: RELEASE_TIMEOUT_MS - 1 })).toBe(
      'stay',
    );
    expect(step({ ...others, phase: 'warm', releaseRequestedMs: RELEASE_TIMEOUT_MS })).toBe(
      'claim',
    );
    expect(step({ account: word(undefined), phase: 'warm', releaseRequestedMs: 10 })).toBe('claim');
  });

  it('has the reading of its images ended first where it is claimed meanwhile', () => {
    expect(step({ account: word(undefined), phase: 'warming' })).toBe('drop');
    expect(step({ account: word('gone'), phase: 'warming' })).toBe('drop');
    expect(step({ account: word('me'), phase: 'warming' })).toBe('drop');
  });

  it('is left to whoever has it by a generation that is not known here yet', () => {
    const newer = { ...word('newcomer'), owner: owner('newcomer', 5) };
    expect(step({ account: newer })).toBe('stay');
    expect(step({ account: newer, phase: 'warm', releaseRequestedMs: 60_000 })).toBe('stay');
  });

  it('goes on where it runs', () => {
    expect(step({ phase: 'running', account: word('me') })).toBe('stay');
    const ask = { instance: 'other', generation: 4 };
    expect(step({ phase: 'running', account: word('me', ask) })).toBe('stay');
  });
});

describe('an account that is given to another instance', () => {
  const away = { isAssigned: false, phase: 'running' } as const;

  it('goes on until that one asks', () => {
    expect(step({ ...away, account: word('me') })).toBe('stay');
    const ask = { instance: 'other', generation: 4 };
    expect(step({ ...away, account: word('me', ask) })).toBe('release');
  });

  it('is stopped where nobody is to run it, as another account has its key', () => {
    expect(step({ ...away, account: word('me'), hasApiKeyConflict: true })).toBe('drop');
    expect(step({ isAssigned: false, hasApiKeyConflict: true })).toBe('stay');
  });

  it('is not claimed any more where its claim has not come through', () => {
    expect(step({ ...away, account: word('other') })).toBe('drop');
    expect(step({ ...away, account: word(undefined) })).toBe('drop');
    expect(step({ ...away, account: { ...word('me'), isClaimPending: true } })).toBe('drop');
  });

  it('is not released to a target of another generation', () => {
    for (const generation of [3, 5]) {
      const ask = { instance: 'other', generation };
      expect(step({ ...away, account: word('me', ask) })).toBe('stay');
    }
  });

  it('is not read any further', () => {
    expect(step({ isAssigned: false, phase: 'warming' })).toBe('drop');
    expect(step({ isAssigned: false, phase: 'warm' })).toBe('drop');
    expect(step({ isAssigned: false })).toBe('stay');
  });
});

it('waits while something comes to its end', () => {
  expect(step({ phase: 'stopping' })).toBe('stay');
});
