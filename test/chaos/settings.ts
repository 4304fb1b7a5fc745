import { join } from 'node:path';

/**
 * What a run of chaos is told by the environment:
 *
 * - `CHAOS_SECONDS`: how long rounds go on; short runs leave out what takes long.
 * - `CHAOS_SEED`: the order of the faults.
 * - `CHAOS_FAULT`: only those with this in their names; of several, with `|` between.
 * - `CHAOS_REPORT`: a folder for what was found and measured, and for what the processes said.
 * - `CHAOS_BROKERS`: 1 or 3, the runs on so many brokers alone. Default both.
 * - `CHAOS_GO_ON=1`: what is found ends the run at its end only, so that all is seen.
 * - `CHAOS_REAUTH=1`: on three brokers the service logs in, and each of its connections again every three seconds.
 * - `CHAOS_API`: named faults of the sandbox (`sandbox --fault`) that are in force all the time, with `|` between. Default: as described.
 * - `CHAOS_FLEET`: accounts of the fleet's run, which is left out without it. `CHAOS_KILLS` and `CHAOS_RESTARTS`: how
 *   often an instance of it is killed, and all are restarted one after the other; default 10 and 5. `CHAOS_ORDERS`:
 *   so many each account has; default 300. `CHAOS_IMAGES`: of accounts that come behind that, with commas between, as
 *   `10000,1000000`; the instance of each is killed, too. Default none.
 */
export const SECONDS = Number(process.env.CHAOS_SECONDS ?? 60);
export const SEED = Number(process.env.CHAOS_SEED ?? 1);
export const ONLY = process.env.CHAOS_FAULT ?? '';
export const BROKERS = process.env.CHAOS_BROKERS ?? '';
export const API = (process.env.CHAOS_API ?? '').split('|').filter(Boolean);
export const IS_REAUTHENTICATED = process.env.CHAOS_REAUTH === '1';
export const GOES_ON = process.env.CHAOS_GO_ON === '1';
export const IS_SHORT = SECONDS < 600;

export const FLEET = {
  accounts: Number(process.env.CHAOS_FLEET ?? 0),
  kills: Number(process.env.CHAOS_KILLS ?? 10),
  restarts: Number(process.env.CHAOS_RESTARTS ?? 5),
  orders: Number(process.env.CHAOS_ORDERS ?? 300),
  images: (process.env.CHAOS_IMAGES ?? '').split(',').filter(Boolean).map(Number),
};

/** Of the run on so many brokers. */
export function reportOf(brokers: 1 | 3): string | undefined {
  const folder = process.env.CHAOS_REPORT;
  return folder === undefined ? undefined : brokers === 1 ? folder : join(folder, 'cluster');
}
