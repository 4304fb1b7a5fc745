// The credentials that a description uses, and their settings.

import { loginOf, oauth2Of } from './description.ts';
import type { ApiDescription } from './description.ts';
import { variablesIn } from './template.ts';
import type { Json } from './template.ts';

/** Names of the settings for an account's credentials, by the description's variable. Such variables are allowed only in `auth`. */
export const CREDENTIALS = {
  api_key: 'API_KEY',
  username: 'API_USERNAME',
  password: 'API_PASSWORD',
  client_id: 'API_CLIENT_ID',
  client_secret: 'API_CLIENT_SECRET',
  refresh_token: 'API_REFRESH_TOKEN',
} as const;

/** Name of a variable whose value is a credential. */
export type CredentialName = keyof typeof CREDENTIALS;
/** Values of the credentials that a description uses, by the name of the variable. */
export type Credentials = Readonly<Partial<Record<CredentialName, string>>>;

export function isCredential(variable: string): variable is CredentialName {
  return Object.hasOwn(CREDENTIALS, variable);
}

/** Returns the names of the credentials that `auth` refers to, each once, in the order of {@link CREDENTIALS}. */
export function credentialsIn(auth: ApiDescription['auth']): CredentialName[] {
  const used = new Set(variablesIn(auth as Json));
  return (Object.keys(CREDENTIALS) as CredentialName[]).filter((name) => used.has(name));
}

/** Returns whether requests carry a token that a login or a token endpoint of OAuth 2 issues. */
export function hasLogin({ auth }: Pick<ApiDescription, 'auth'>): boolean {
  return (loginOf({ auth }) ?? oauth2Of({ auth })) !== undefined;
}

/**
 * Returns words for messages about a description's credentials. `noun`: `API key` or `credentials`. `settings`: the names of the settings
 * with the credentials, or `auth in API_DESCRIPTION` if `auth` uses no settings.
 */
export function credentialWords(auth: ApiDescription['auth']) {
  const used = credentialsIn(auth);
  return {
    noun: used.join() === 'api_key' ? 'API key' : 'credentials',
    settings: used.map((name) => CREDENTIALS[name]).join(', ') || 'auth in API_DESCRIPTION',
  };
}
