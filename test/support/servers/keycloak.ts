import { join } from 'node:path';
import { freeLoopbackPorts } from '../../../src/devstack/loopback-ports.ts';
import { cached } from '../../ecosystem/cache.ts';
import { byKey, jsonBody, startProgram, succeed } from './api-server.ts';
import type { ApiServer, ServedList, ServedRecord } from './api-server.ts';

const VERSION = '26.7.3';
export const REALM = 'cellar';
/** The client that the service logs in as: it may only view users. Its tokens live for 60 s. */
export const CLIENT = { id: 'reader', secret: 'secret-of-the-reader' };

const ADMIN = { id: 'writer', secret: 'secret-of-the-writer' };
/** Renewed well before its 60 s are over. */
const ADMIN_TOKEN_MS = 30_000;

/** The distribution, built once for a database in memory: a start takes a third of the time then. */
function installed(): string {
  const folder = cached(`keycloak-${VERSION}`, (to) => {
    const artifact = `org.keycloak:keycloak-quarkus-dist:${VERSION}:zip`;
    const unpack = `mvn -q -B dependency:unpack -Dartifact=${artifact} -DoutputDirectory="$0"`;
    const build = `"$0/keycloak-${VERSION}/bin/kc.sh" build --db=dev-mem --cache=local`;
    return ['bash', '-c', `cd "$0" && ${unpack} && rm -rf target && ${build}`, to]; // Maven writes into `target`
  });
  return join(folder, `keycloak-${VERSION}`);
}

/** Starts Keycloak with a realm. Its list `users` is in the order of user names, so new users come anywhere in it. */
export async function startKeycloak(): Promise<ApiServer> {
  const [port] = await freeLoopbackPorts(1);
  const url = `http://127.0.0.1:${port}`;
  const stop = await startProgram({
    name: 'keycloak',
    command: join(installed(), 'bin/kc.sh'),
    args: [
      ...['start', '--optimized', '--http-enabled=true', '--hostname-strict=false'],
      ...['--http-host=127.0.0.1', `--http-port=${port}`],
    ],
    env: {
      JDK_JAVA_OPTIONS: '-XX:TieredStopAtLevel=1', // its script chooses the garbage collector
      KC_BOOTSTRAP_ADMIN_CLIENT_ID: ADMIN.id,
      KC_BOOTSTRAP_ADMIN_CLIENT_SECRET: ADMIN.secret,
    },
    isUpAt: `${url}/realms/master`,
  });
  const admin = new Admin(url);
  try {
    await prepareRealm(admin);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, stop, lists: [usersOf(admin)] };
}

/** Requests with the token of the master realm, past the service. */
class Admin {
  readonly #url: string;
  #token = '';
  #until = 0;

  constructor(url: string) {
    this.#url = url;
  }

  async send(method: string, path: string, body?: unknown): Promise<Response> {
    const headers = { authorization: `Bearer ${await this.#current()}` };
    const init = body === undefined ? { method, headers } : jsonBody(method, body, headers);
    return succeed(`${this.#url}/admin/realms${path}`, init);
  }

  async get<Of>(path: string): Promise<Of> {
    return (await this.send('GET', path)).json() as Promise<Of>;
  }

  async #current(): Promise<string> {
    if (performance.now() < this.#until) return this.#token;
    const path = '/realms/master/protocol/openid-connect/token';
    const response = await succeed(this.#url + path, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: ADMIN.id,
        client_secret: ADMIN.secret,
      }),
    });
    this.#token = ((await response.json()) as { access_token: string }).access_token;
    this.#until = performance.now() + ADMIN_TOKEN_MS;
    return this.#token;
  }
}

async function prepareRealm(admin: Admin): Promise<void> {
  await admin.send('POST', '', { realm: REALM, enabled: true, accessTokenLifespan: 60 });
  const at = `/${REALM}`;
  await admin.send('POST', `${at}/clients`, {
    clientId: CLIENT.id,
    secret: CLIENT.secret,
    serviceAccountsEnabled: true,
    publicClient: false,
    standardFlowEnabled: false,
  });
  const idOf = async (client: string) => {
    const [found] = await admin.get<{ id: string }[]>(`${at}/clients?clientId=${client}`);
    return found!.id;
  };
  const [reader, management] = [await idOf(CLIENT.id), await idOf('realm-management')];
  const user = await admin.get<{ id: string }>(`${at}/clients/${reader}/service-account-user`);
  const role = await admin.get(`${at}/clients/${management}/roles/view-users`);
  await admin.send('POST', `${at}/users/${user.id}/role-mappings/clients/${management}`, [role]);
}

function usersOf(admin: Admin): ServedList {
  const users = `/${REALM}/users`;
  return {
    name: 'users',
    insert: async (number, chance) => {
      const username = `user-${String(chance.below(1_000_000)).padStart(6, '0')}-${number}`;
      const made = await admin.send('POST', users, { username, enabled: true });
      return made.headers.get('location')!.split('/').at(-1)!;
    },
    change: async (key, number) => {
      await admin.send('PUT', `${users}/${key}`, { firstName: `revision ${number}` });
    },
    remove: async (key) => {
      await admin.send('DELETE', `${users}/${key}`);
    },
    // `access` says what the caller may do: the service's client is another one, so it is left out.
    truth: async () => {
      const all = await admin.get<ServedRecord[]>(`${users}?max=-1&briefRepresentation=false`);
      return byKey(all);
    },
  };
}
