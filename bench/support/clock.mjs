// @ts-check
// One clock for all processes of a bench: ms that are never set back. Those of `performance` begin
// anew in each process.

const EPOCH = 'BENCH_CLOCK_EPOCH';

const own = () => Number(process.hrtime.bigint()) / 1e6;

/** Epoch ms at the clock's zero: that of the first process, which hands it on. */
const zero = Number((process.env[EPOCH] ??= String(Date.now() - own())));

/** Epoch ms, with fractions; the same in every process that a bench has started. */
export const now = () => zero + own();
