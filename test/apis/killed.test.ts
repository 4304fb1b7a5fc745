import { describe, expect, it } from 'vitest';
import { atEnd } from '../integration/support/running-test.ts';
import { startJsonServer } from '../support/servers/json-server.ts';
import { CLIENT, REALM, startKeycloak } from '../support/servers/keycloak.ts';
import { startLocalstripe, STRIPE_KEY } from '../support/servers/localstripe.ts';
import { killWhileWritten } from './killed-service.ts';

describe('the service, killed while a real server is written to', () => {
  it('keeps its promises with json-server', async () => {
    const server = await startJsonServer();
    atEnd(server.stop);
    const violations = await killWhileWritten({
      ...{ prefix: 'json-server', server, example: 'json-server.yaml', env: {} },
      // A quarter of the writes are deletions, each proven by four requests: at 5 writes a second, more than the quota allows.
      ...{ rate: 2, quota: { most: 600, ms: 60_000 } },
    });
    expect(violations).toEqual([]);
  });

  it('keeps its promises with localstripe', async () => {
    const server = await startLocalstripe();
    atEnd(server.stop);
    const violations = await killWhileWritten({
      ...{ prefix: 'localstripe', server, example: 'stripe.yaml', env: { API_KEY: STRIPE_KEY } },
      ...{ rate: 5, quota: { most: 25, ms: 1_000 } },
    });
    expect(violations).toEqual([]);
  });

  it('keeps its promises with Keycloak', async () => {
    const server = await startKeycloak();
    atEnd(server.stop);
    const violations = await killWhileWritten({
      ...{ prefix: 'keycloak', server, example: 'keycloak.yaml' },
      env: {
        API_PARAM_REALM: REALM,
        API_CLIENT_ID: CLIENT.id,
        API_CLIENT_SECRET: CLIENT.secret,
      },
      ...{ rate: 5, quota: { most: 50, ms: 1_000 } },
      isFree: (path) => path.endsWith('/token'),
      // `access` says what the caller may do, and the service's client may only view.
      seen: (record) => ({ ...record, access: { manage: false } }),
    });
    expect(violations).toEqual([]);
  });
});
