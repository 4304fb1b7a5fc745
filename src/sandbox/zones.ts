/** A time zone: minutes ahead of UTC, and daylight saving that ends once. */
export interface Zone {
  /** Minutes that local time is ahead of UTC; below 0 west of it. */
  readonly minutes: number;
  /** Until this time (epoch ms) local time is an hour further ahead. The hour before it comes twice. Default: no daylight saving. */
  readonly savingEndsAt?: number;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** How far local time is ahead of UTC at an instant, in ms. */
export function aheadAt({ minutes, savingEndsAt = -Infinity }: Zone, at: number): number {
  return minutes * MINUTE_MS + (at < savingEndsAt ? HOUR_MS : 0);
}

/** The instant that a local time stands for, both in epoch ms. In the hour that comes twice it is the first one. */
export function instantOfLocal(zone: Zone, local: number): number {
  const saving = local - zone.minutes * MINUTE_MS - HOUR_MS;
  return saving < (zone.savingEndsAt ?? -Infinity) ? saving : local - zone.minutes * MINUTE_MS;
}

const STAMP = /"(created_at|updated_at)":"(\d{4}-\d\d-\d\dT[\d:.]+Z)"/g;

/** The JSON of an answer whose records are stamped in local time, without a zone. */
export function withLocalStamps(text: string, zone: Zone): string {
  return text.replace(STAMP, (_, field: string, stamp: string) => {
    const at = Date.parse(stamp);
    const local = new Date(at + aheadAt(zone, at)).toISOString().slice(0, -1);
    return `"${field}":"${local}"`;
  });
}
