import { fileURLToPath } from 'node:url';
import type { ApiDescription } from '../description.ts';
import { readDescription } from '../read-description.ts';

/**
 * Description of the built-in API, read from `wine.yaml` by the same code as any other description. It has no `settingUses`, because users
 * do not have that file.
 */
export const WINE: ApiDescription = {
  ...readDescription(fileURLToPath(new URL('wine.yaml', import.meta.url))),
  settingUses: {},
};
