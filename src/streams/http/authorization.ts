// How requests to the API are authorized: the only place that knows the kinds of `auth` in a description.

import { CellarstreamError } from '../../core/errors.ts';
import type { ErrorContext } from '../../core/errors.ts';
import { basicAuth } from '../../core/http-text.ts';
import { credentialWords } from '../../description/credentials.ts';
import type { ApiDescription } from '../../description/description.ts';
import { filled } from '../../description/template.ts';
import type { Variables } from '../../description/template.ts';
import type { PlannedRequest } from './request-plan.ts';

/**
 * Returns the request with credentials added: the static ones of the description if it has any, otherwise `token` as a bearer token. With
 * `auth: none`, the request is returned unchanged.
 */
export type Authorize = (
  request: PlannedRequest,
  token: { readonly text: string },
) => PlannedRequest;

/** Returns the request with the token in an `Authorization` header. */
export const bearer: Authorize = (request, { text }) =>
  withHeader(request, 'authorization', `Bearer ${text}`);

/**
 * Returns how requests are authorized, according to `auth` of the description.
 *
 * @param variables Returns the values of credentials and parameters. Called for each request, so that no copy of a secret is held.
 */
export function authorization(auth: ApiDescription['auth'], variables: () => Variables): Authorize {
  const fill = (template: string) => filled(template, variables()) ?? '';
  if (auth === 'none') return (request) => request;
  if ('bearer' in auth) return (request) => bearer(request, { text: fill(auth.bearer) });
  if ('basic' in auth) {
    const [user, password] = auth.basic;
    return (request) => withHeader(request, 'authorization', basicAuth(fill(user), fill(password)));
  }
  if ('header' in auth) {
    return (request) => withHeader(request, auth.header.toLowerCase(), fill(auth.value));
  }
  if ('query' in auth) return (request) => withParameter(request, auth.query, fill(auth.value));
  return bearer;
}

function withHeader(request: PlannedRequest, name: string, value: string): PlannedRequest {
  return { ...request, headers: { ...request.headers, [name]: value } };
}

/**
 * Returns the request with a query parameter set. A new parameter is appended to the existing query string, to preserve the
 * percent-encoding of the other parameters.
 */
function withParameter(request: PlannedRequest, name: string, value: string): PlannedRequest {
  const url = new URL(request.url);
  if (url.searchParams.has(name)) url.searchParams.set(name, value);
  else
    url.search += `${url.search === '' ? '?' : '&'}${new URLSearchParams({ [name]: value }).toString()}`;
  return { ...request, url };
}

/**
 * Returns a function that removes the credential from the address of a next page. Some APIs repeat the credential there, and such addresses
 * are stored and logged. Returns undefined if no credential is sent in the query.
 */
export function credentialRemover(
  auth: ApiDescription['auth'],
): ((address: string) => string) | undefined {
  if (typeof auth !== 'object' || !('query' in auth)) return undefined;
  const isCredential = (part: string) => new URLSearchParams(part).has(auth.query);
  return (address) => {
    const [, path = '', query, fragment = ''] =
      /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(address) ?? [];
    const kept = query?.split('&').filter((part) => !isCredential(part)) ?? [];
    return `${path}${kept.length > 0 ? `?${kept.join('&')}` : ''}${fragment}`;
  };
}

/**
 * Returns the error for credentials that the API refused.
 *
 * @param who Server that refused, such as `the login at https://api.example/login`.
 * @param options.context Context of the error. Its `canPass` has to be true if the API accepted the credentials before: the error is then
 * retryable.
 */
export function rejection(
  who: string,
  auth: ApiDescription['auth'],
  options: { readonly answered: string; readonly advice?: string; readonly context: ErrorContext },
): CellarstreamError {
  const { answered, context, advice = '' } = options;
  const { noun, settings } = credentialWords(auth);
  const before = context.canPass === true ? ', which it has accepted before' : '';
  return new CellarstreamError(
    'API_KEY_REJECTED',
    `${who} refused the ${noun} (${answered})${before}: check ${settings}${advice}`,
    { context },
  );
}
