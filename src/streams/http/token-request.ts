// The request for a token, as the description states it: a login with credentials, or a token request of OAuth 2 (RFC 6749).

import { basicAuth, objectIn } from '../../core/http-text.ts';
import { loginOf, oauth2Of } from '../../description/description.ts';
import type {
  ApiDescription,
  LoginDescription,
  OAuth2Description,
} from '../../description/description.ts';
import { filled, filledBody, filledParameters } from '../../description/template.ts';
import type { Variables } from '../../description/template.ts';
import { isJson } from './http.ts';
import type { DescribedStatus, HttpRequest, HttpResponse } from './http.ts';
import { addressOf, headersOf } from './request-plan.ts';

/** Where a token is requested, and how the response is read. */
export interface TokenRequest {
  /** Noun for the server in messages. */
  readonly noun: 'login' | 'token endpoint';
  readonly url: URL;
  /** Name of the setting that `url` comes from, for messages. */
  readonly setting: string;
  /** JSON Pointer of the token in the response. */
  readonly token: string;
  readonly life: NonNullable<LoginDescription['life']>;
  /** Returns headers and body of the login request, in which the variables of the description have the given values. */
  readonly partsOf: (variables: Variables) => Required<Pick<HttpRequest, 'headers' | 'body'>>;
  /**
   * Returns whether a response shows that the server itself refused the credentials. Its refusals are JSON; those of a firewall or proxy in
   * front of it are HTML or text. `stated`: the meaning of the response's status according to the API's description.
   */
  readonly isRejection: (answer: HttpResponse, stated: Pick<DescribedStatus, 'meaning'>) => boolean;
}

const FORM = 'application/x-www-form-urlencoded';

/**
 * Returns the address that the description gives for the login or the token endpoint; undefined if it has neither, for example because
 * requests carry static credentials.
 *
 * @throws RangeError if a variable of the address has no value, or the address is not valid.
 */
export function loginUrlOf(
  { auth }: Pick<ApiDescription, 'auth'>,
  baseUrl: URL,
  parameters: Variables,
): URL | undefined {
  const login = loginOf({ auth });
  if (login) return addressOf(baseUrl, login.path, parameters);
  const url = oauth2Of({ auth })?.token_url;
  if (url === undefined) return undefined;
  if (url.startsWith('/')) return addressOf(baseUrl, url, parameters);
  const address = URL.parse(filled(url, parameters, encodeURIComponent) ?? '');
  if (address) return address;
  throw new RangeError(
    '`token_url` of the description is not a valid address once the values of the API_PARAM_ settings are inserted: correct `token_url` or these settings',
  );
}

/** Returns the OAuth 2 part of the description if it has the grant `refresh_token`; otherwise undefined. */
export function refreshGrantOf(
  description: Pick<ApiDescription, 'auth'>,
): OAuth2Description | undefined {
  const oauth2 = oauth2Of(description);
  return oauth2?.grant_type === 'refresh_token' ? oauth2 : undefined;
}

/**
 * Returns how the description requests a token.
 *
 * @param ownUrl The setting `API_LOGIN_URL`: the address to use instead of the one in the description.
 * @throws RangeError if the description has neither a login nor OAuth 2, a variable of the address has no value, or the address is not
 * valid.
 */
export function tokenRequestOf(
  { auth, headers }: Pick<ApiDescription, 'auth' | 'headers'>,
  baseUrl: URL,
  parameters: Variables,
  ownUrl?: URL,
): TokenRequest {
  const usualUrl = loginUrlOf({ auth }, baseUrl, parameters);
  if (!usualUrl)
    throw new RangeError(
      'no token can be requested, because the description has neither a login nor OAuth 2 in `auth`',
    );
  const url = ownUrl ?? usualUrl;
  const settingOf = (usual: string) => (url.href === usualUrl.href ? usual : 'API_LOGIN_URL');
  const common = headersOf(headers, parameters);
  const login = loginOf({ auth });
  if (login) {
    const { refused, life = {}, token } = login;
    return {
      ...{ noun: 'login', url, token, life },
      setting: settingOf('API_BASE_URL'),
      partsOf: (variables) => loginParts(login, common, variables),
      isRejection: (answer, { meaning }) =>
        (refused ?? refusalsIn(meaning)).includes(answer.status) && isJson(answer),
    };
  }
  const oauth2 = oauth2Of({ auth })!;
  const isOfBase = oauth2.token_url.startsWith('/');
  return {
    ...{ noun: 'token endpoint', url, token: '/access_token' },
    life: { jwt: true }, // only without `expires_in`
    setting: settingOf(isOfBase ? 'API_BASE_URL' : 'token_url in API_DESCRIPTION'),
    partsOf: (variables) => oauth2Parts(oauth2, common, variables),
    isRejection: (answer, { meaning }) =>
      refusalsIn(meaning).includes(answer.status) && isJson(answer) && !isTemporary(answer),
  };
}

/**
 * Returns the HTTP statuses by which a server may refuse the credentials of a login: 400, 401 and 403. Returns none if `meaning`, the
 * description's meaning for the status received, is set and is not `token`.
 */
function refusalsIn(meaning: DescribedStatus['meaning']): readonly number[] {
  return meaning === undefined || meaning === 'token' ? [400, 401, 403] : [];
}

/** Returns headers and body of a login request. */
function loginParts(
  { body = null, form }: LoginDescription,
  headers: Readonly<Record<string, string>>,
  variables: Variables,
): ReturnType<TokenRequest['partsOf']> {
  const [type, text] = form
    ? [FORM, new URLSearchParams(filledParameters(form, variables)).toString()]
    : ['application/json', JSON.stringify(filledBody(body, variables))];
  return { headers: { ...headers, 'content-type': type }, body: text };
}

/**
 * Returns headers and body of a token request. By default the client authenticates with HTTP Basic, with percent-encoded id and secret (RFC
 * 6749, section 2.3.1). If the description says so, or the client has no secret, the body has the credentials instead.
 */
function oauth2Parts(
  oauth2: OAuth2Description,
  headers: Readonly<Record<string, string>>,
  variables: Variables,
): ReturnType<TokenRequest['partsOf']> {
  const { grant_type, client_id, client_secret, scope, refresh_token } = oauth2;
  const isBasic = client_secret !== undefined && oauth2.client_auth !== 'body';
  const form = filledParameters(
    {
      grant_type,
      ...(grant_type === 'refresh_token' && refresh_token !== undefined && { refresh_token }),
      ...(scope !== undefined && { scope }),
      ...(!isBasic && { client_id, ...(client_secret !== undefined && { client_secret }) }),
    },
    variables,
  );
  const [id, secret] = [client_id, client_secret ?? ''].map((text) =>
    encodeURIComponent(filled(text, variables) ?? ''),
  );
  return {
    headers: {
      ...headers,
      accept: 'application/json',
      'content-type': FORM,
      ...(isBasic && { authorization: basicAuth(id!, secret!) }),
    },
    body: new URLSearchParams(form).toString(),
  };
}

/** OAuth error codes that mean that a later request may succeed. Messages show only these codes and {@link REFUSALS}. */
const TEMPORARY = new Set(['temporarily_unavailable', 'server_error', 'slow_down']);
const REFUSALS = new Set([
  ...['invalid_request', 'invalid_client', 'invalid_grant', 'invalid_scope'],
  ...['unauthorized_client', 'unsupported_grant_type', 'access_denied'],
]);

/** Returns the error code in the response of a token endpoint, if it is a known one: other texts may contain a secret. */
export function oauthError({ text }: HttpResponse): string | undefined {
  const code = objectIn(text)?.error;
  return typeof code === 'string' && (TEMPORARY.has(code) || REFUSALS.has(code)) ? code : undefined;
}

/** Returns whether the token endpoint states that a later request may succeed. */
export function isTemporary(answer: HttpResponse): boolean {
  return TEMPORARY.has(oauthError(answer) ?? '');
}
