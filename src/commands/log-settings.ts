import type { Config } from '../config/config.ts';
import type { LineLogger } from '../observe/log.ts';
import { settingWarnings } from '../config/setting-warnings.ts';

/** A line for each setting that is allowed, but may be a slip. */
export function logSettings(logger: LineLogger, config: Config): void {
  for (const { name, advice } of settingWarnings(config)) {
    logger.warn({ event: 'setting', setting: name }, `${name} ${advice}`);
  }
}
