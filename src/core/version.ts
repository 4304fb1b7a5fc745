import { readFileSync } from 'node:fs';

const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');

/** Version of this package, from its package.json. */
export const VERSION = (JSON.parse(text) as { version: string }).version;

/** Value of the `user-agent` header of HTTP requests. Some firewalls in front of APIs refuse requests without such a header. */
export const USER_AGENT = `cellarstream/${VERSION}`;
