import { readFileSync } from 'node:fs';

const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');

/** Of this package. */
export const VERSION = (JSON.parse(text) as { version: string }).version;

/** Sent as `user-agent` with every HTTP request: firewalls in front of APIs refuse requests without one. */
export const USER_AGENT = `cellarstream/${VERSION}`;
