import { InvalidArgumentError, Option } from 'commander';
import type { Command } from 'commander';
import { NAMED_FAULTS, withFault } from '../sandbox/named-faults.ts';
import type { SandboxOptions, Sort } from '../sandbox/index.ts';

export interface DemoFlags extends DataFlags {
  readonly accounts: number;
  readonly instances: number;
}

export interface SandboxFlags extends DataFlags {
  readonly host: string;
  readonly port: number;
  readonly apiKey: string;
  readonly accounts: number;
  /** Folder in which a settings file `<account>.env` is written for each account of the sandbox. Undefined: none are written. */
  readonly accountsDir?: string;
}

interface DataFlags {
  readonly orders: number;
  readonly rate: number;
  readonly seed: number;
  readonly sort: Sort;
  readonly latency: number;
  readonly quota: number;
  readonly drift?: true;
  /** Faults of the sandbox's simulated API, each as `NAME` or `NAME=VALUE`. */
  readonly fault: readonly string[];
}

/** Number of random changes between two irregularities that `--drift` makes, such as a new field; 15 s at the default rate. */
const DRIFT_EVERY = 30;

const SORTS = ['key-asc', 'key-desc', 'updated-asc', 'updated-desc'] as const satisfies Sort[];

export function sandboxFlags(command: Command): Command {
  return command
    .option('--orders <n>', 'number of orders at the start', count, 10_000)
    .option('--rate <n>', 'number of random changes a second', number, 2)
    .option('--seed <n>', 'seed of the random data: the same seed gives the same data', count, 1)
    .addOption(new Option('--sort <order>', 'order of the lists').choices(SORTS).default('key-asc'))
    .option('--latency <ms>', 'response time of the API, in milliseconds', number, 20)
    .option('--quota <n>', 'list requests that the API allows a minute, for each list', count, 100)
    .option(
      '--drift',
      `after every ${DRIFT_EVERY} random changes, makes one list irregular: a new field, numbers as text, ` +
        'a record without its key, or a page with duplicate records',
    )
    .option(
      '--fault <name[=value]>',
      `makes the API misbehave in a way that real APIs do; may be repeated. Names: ${Object.keys(NAMED_FAULTS).join(', ')}`,
      faults,
      [],
    );
}

export function sandboxOptions(flags: DataFlags): SandboxOptions {
  const { orders, rate, seed, sort, latency, quota, drift, fault } = flags;
  const options: SandboxOptions = {
    records: { orders },
    changesPerSecond: rate,
    seed,
    sort,
    latencyMs: latency,
    quotaPerMinute: quota,
    ...(drift && { driftEvery: DRIFT_EVERY }),
  };
  return fault.reduce(withFault, options);
}

/** Validates the value of one more `--fault` flag and appends it to the previous ones. */
function faults(text: string, before: readonly string[]): readonly string[] {
  try {
    withFault({}, text);
  } catch (error) {
    throw new InvalidArgumentError((error as RangeError).message);
  }
  return [...before, text];
}

export function count(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0)
    throw new InvalidArgumentError('a whole number is needed');
  return value;
}

/** Parses a flag's value as a whole number of at least 1. */
export function some(text: string): number {
  if (count(text) === 0) throw new InvalidArgumentError('at least 1 is needed');
  return Number(text);
}

/** Parses a flag's value as a port, or 0 for a free one. */
export function port(text: string): number {
  if (count(text) > 65_535) throw new InvalidArgumentError('a port from 0 to 65535 is needed');
  return Number(text);
}

function number(text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0)
    throw new InvalidArgumentError('a number >= 0 is needed');
  return value;
}
