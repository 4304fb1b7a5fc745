import { join } from 'node:path';
import { readDescription } from '../../src/description/read-description.ts';

/** Another API than the built-in one, with status fields in two of its three lists. */
export const DESK = readDescription(join(import.meta.dirname, 'desk.yaml'));
