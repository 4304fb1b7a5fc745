import { describe, expect, it, vi } from 'vitest';
import { Body, BodyPool } from '../../../src/streams/http/body.ts';

describe('a body', () => {
  it('is an error to look at once it was given back, which is told once', () => {
    const onGivenBack = vi.fn();
    const body = new Body(Buffer.from('a page'), onGivenBack);
    expect(body.bytes.toString()).toBe('a page');
    body.giveBack();
    body.giveBack();
    expect(() => body.bytes).toThrow('after giveBack() had released its memory');
    expect(onGivenBack).toHaveBeenCalledTimes(1);
  });
});

describe('the memory of bodies', () => {
  it('is used again for one of about the same size', () => {
    const pool = new BodyPool();
    const memory = pool.take(300_000);
    expect(memory.length).toBeGreaterThanOrEqual(300_000);
    pool.giveBack(memory);
    expect(pool.take(2_000_000)).not.toBe(memory);
    expect(pool.take(320_000)).toBe(memory);
    expect(pool.take(320_000)).not.toBe(memory); // it is not free
  });

  it('is kept up to a limit, and not for small bodies', () => {
    const pool = new BodyPool();
    const small = pool.take(100);
    pool.giveBack(small);
    expect(pool.take(100)).not.toBe(small);
    const taken = Array.from({ length: 7 }, () => pool.take(4_000_000));
    for (const memory of taken) pool.giveBack(memory);
    const again = new Set(Array.from({ length: 7 }, () => pool.take(4_000_000)));
    expect(taken.filter((memory) => again.has(memory))).toHaveLength(5);
  });
});
