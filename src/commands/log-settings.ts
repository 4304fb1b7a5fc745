import type { Config } from '../config/config.ts';
import type { LineLogger } from '../observe/log.ts';
import { settingWarnings } from '../config/setting-warnings.ts';

/** A line for each setting that is allowed, but may be a slip; the `source` is where they came from. */
export function logSettings(
  logger: LineLogger,
  config: Config,
  source: Parameters<typeof settingWarnings>[1],
): void {
  for (const { name, advice } of settingWarnings(config, source)) {
    logger.warn({ event: 'setting', setting: name }, `${name} ${advice}`);
  }
}
