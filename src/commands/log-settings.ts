import type { Config } from '../config/config.ts';
import type { LineLogger } from '../observe/log.ts';
import { settingWarnings } from '../config/setting-warnings.ts';

/** Logs a warning for each setting that is allowed but may be a mistake. `source` is where the settings of `config` were read from. */
export function logSettings(
  logger: LineLogger,
  config: Config,
  source: Parameters<typeof settingWarnings>[1],
): void {
  for (const { name, advice } of settingWarnings(config, source)) {
    logger.warn({ event: 'setting', setting: name }, `${name} ${advice}`);
  }
}
