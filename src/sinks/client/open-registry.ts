import type { Dispatcher } from 'undici';
import type { RegistryConfig } from '../../config/config.ts';
import type { AccessTokens } from '../../core/access-tokens.ts';
import { clientTokens } from '../../core/client-tokens.ts';
import type { ClientCredentials } from '../../core/client-tokens.ts';
import { createRegistry } from '../../schemas/registry/registry.ts';
import type { Registry } from '../../schemas/registry/registry.ts';
import { tokenConnections } from './token-connections.ts';

/** The schema registry of a configuration, with its login. Connects to nothing yet. */
export function openRegistry(config: RegistryConfig): Registry {
  const { url, auth, headers, ca, client, proxies } = config;
  const revealed = Object.entries(headers).map(([name, value]) => [name, value.reveal()] as const);
  const options = {
    url,
    headers: Object.fromEntries(revealed),
    ca,
    cert: client?.cert,
    key: client?.key.reveal(),
    proxies,
  };
  switch (auth?.kind) {
    case undefined:
      return createRegistry(options);
    case 'basic': {
      const { username, password } = auth;
      return createRegistry({ ...options, username, password: password.reveal() });
    }
    case 'bearer':
      return createRegistry({ ...options, token: auth.token.reveal() });
    case 'oauth': {
      const connections = tokenConnections(ca, proxies);
      const token = tokensOf(auth.credentials, connections);
      const registry = createRegistry({ ...options, token });
      const close = async () => {
        await registry.close();
        await connections.destroy();
      };
      return { ...registry, close };
    }
  }
}

function tokensOf(credentials: ClientCredentials, dispatcher: Dispatcher): AccessTokens {
  const errors = {
    settings: 'SCHEMA_REGISTRY_OAUTH',
    ca: 'SCHEMA_REGISTRY_CA_FILE',
    unreachable: 'REGISTRY_UNREACHABLE',
    refused: 'REGISTRY_REFUSED',
  } as const;
  return clientTokens({ credentials, errors, dispatcher });
}
