import { describe, expect, it } from 'vitest';
import { LogicalClock } from '../../../src/streams/http/logical-clock.ts';

describe('LogicalClock', () => {
  it('gives every beginning and end a place of its own, in their order', () => {
    const clock = new LogicalClock();
    const [a, b] = [clock.begin(), clock.begin()];
    const [spanB, spanA] = [clock.answered(b), clock.answered(a)];
    const c = clock.begin();
    const spanC = clock.answered(c);
    const places = [a, b, spanB.end, spanA.end, c, spanC.end];
    expect(places).toEqual([...places].sort((x, y) => x - y));
    expect(new Set(places)).toHaveLength(6);
    expect([spanA.begin, spanB.begin, spanC.begin]).toEqual([a, b, c]);
  });

  it('knows the oldest read that is not settled, answered or not', () => {
    const clock = new LogicalClock();
    expect(clock.oldest()).toBe(Infinity);
    const [a, b, c] = [clock.begin(), clock.begin(), clock.begin()];
    expect(clock.oldest()).toBe(a);
    clock.answered(a);
    expect(clock.oldest()).toBe(a);
    clock.settle(b);
    expect(clock.oldest()).toBe(a);
    clock.settle(a);
    expect(clock.oldest()).toBe(c);
    clock.settle(c);
    expect(clock.oldest()).toBe(Infinity);
  });

  it('may be told twice that a read is settled', () => {
    const clock = new LogicalClock();
    const [a, b] = [clock.begin(), clock.begin()];
    clock.settle(a);
    clock.settle(a);
    expect(clock.oldest()).toBe(b);
  });

  it('tells when the last open read is settled, and once each time', () => {
    const clock = new LogicalClock();
    let idle = 0;
    clock.onIdle(() => (idle += 1));
    const [a, b] = [clock.begin(), clock.begin()];
    clock.settle(b);
    expect(idle).toBe(0);
    clock.settle(a);
    clock.settle(a);
    expect(idle).toBe(1);
    clock.settle(clock.begin());
    expect(idle).toBe(2);
  });

  it('knows whether another open read had begun before one ended', () => {
    const clock = new LogicalClock();
    const a = clock.begin();
    const alone = clock.answered(a);
    const b = clock.begin();
    expect(clock.overlaps(alone)).toBe(false); // b begins behind it
    const c = clock.begin();
    const [spanB, spanC] = [clock.answered(b), clock.answered(c)];
    expect([clock.overlaps(spanB), clock.overlaps(spanC)]).toEqual([true, true]);
    clock.settle(a);
    clock.settle(b);
    expect([clock.overlaps(spanB), clock.overlaps(spanC)]).toEqual([true, false]);
    clock.settle(c);
    expect(clock.overlaps(spanB)).toBe(false);
  });

  it('keeps a read open for as long as it is held, settled or not', () => {
    const clock = new LogicalClock();
    let idle = 0;
    clock.onIdle(() => (idle += 1));
    const [a, b] = [clock.begin(), clock.begin()];
    const letGo = [clock.hold(a), clock.hold(b)];
    clock.settle(a);
    expect(clock.oldest()).toBe(a);
    letGo[0]!();
    expect(clock.oldest()).toBe(b);
    letGo[1]!(); // before it is settled
    expect([clock.oldest(), idle]).toEqual([b, 0]);
    clock.settle(b);
    expect([clock.oldest(), idle]).toEqual([Infinity, 1]);
  });
});
