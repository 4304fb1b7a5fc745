import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { serve } from './http-server.ts';

/** A request as it reached the token endpoint. */
export interface TokenRequest {
  readonly headers: IncomingMessage['headers'];
  readonly form: Readonly<Record<string, string>>;
}

/** An answer in place of a token. */
export interface OddAnswer {
  readonly status?: number;
  readonly body?: unknown;
  /** Sent as it is. */
  readonly text?: string;
}

/** An identity provider of a test: a token endpoint, and the keys that its tokens are signed with. */
export interface TokenEndpoint {
  readonly url: string;
  readonly keysUrl: string;
  readonly requests: readonly TokenRequest[];
  /** What the next requests are answered; null is no answer at all. Undefined: tokens. */
  answer: (() => OddAnswer | null) | undefined;
  lifeSeconds: number;
  /** What clients may do to authenticate. */
  auth: 'basic' | 'post' | 'both';
  /** Who the tokens are for. */
  audience: string;
  close(): Promise<void>;
}

export const CLIENT = { id: 'cellar stream', secret: 'se:cret %/+ü~ -qX7' } as const;
export const ISSUER = 'https://issuer.example';
export const AUDIENCE = 'kafka';

/** Making one takes some 100 ms. */
let made: ReturnType<typeof generateKeyPair> | undefined;
const keyPair = () => (made ??= generateKeyPair('RS256'));

/** @param port Default a free one. */
export async function startTokenEndpoint(port = 0): Promise<TokenEndpoint> {
  const { publicKey, privateKey } = await keyPair();
  const keys = {
    keys: [{ ...(await exportJWK(publicKey)), kid: 'one', alg: 'RS256', use: 'sig' }],
  };
  const requests: TokenRequest[] = [];

  const token = async (request: IncomingMessage, response: ServerResponse) => {
    const form = Object.fromEntries(new URLSearchParams(await text(request)));
    requests.push({ headers: request.headers, form });
    const odd = endpoint.answer?.();
    if (odd === null) return;
    if (odd) {
      response.writeHead(odd.status ?? 200, { 'content-type': 'application/json' });
      response.end(odd.text ?? JSON.stringify(odd.body));
      return;
    }
    const send = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    if (!isClient(endpoint.auth, request, form)) {
      send(401, { error: 'invalid_client', error_description: 'Client authentication failed' });
      return;
    }
    const life = endpoint.lifeSeconds;
    const value = await new SignJWT({ scope: form.scope ?? '' })
      .setProtectedHeader({ alg: 'RS256', kid: 'one' })
      .setSubject(CLIENT.id)
      .setIssuer(ISSUER)
      .setAudience(endpoint.audience)
      .setJti(String(requests.length))
      .setIssuedAt()
      .setExpirationTime(Math.floor(Date.now() / 1_000) + life)
      .sign(privateKey);
    send(200, { access_token: value, token_type: 'Bearer', expires_in: life });
  };
  const server = await serve((request, response) => {
    if (request.method === 'POST') void token(request, response);
    else response.end(JSON.stringify(keys));
  }, port);
  const endpoint: TokenEndpoint = {
    url: new URL('/realms/one/token', server.url).href,
    keysUrl: new URL('/realms/one/keys', server.url).href,
    requests,
    answer: undefined,
    lifeSeconds: 300,
    auth: 'both',
    audience: AUDIENCE,
    close: () => server.close(),
  };
  return endpoint;
}

/** Decodes what RFC 6749, section 2.3.1, encodes. */
function isClient(
  auth: TokenEndpoint['auth'],
  { headers: { authorization } }: IncomingMessage,
  form: Readonly<Record<string, string>>,
): boolean {
  const [scheme, pair = ''] = (authorization ?? '').split(' ');
  if (scheme === 'Basic') {
    const [id, secret] = Buffer.from(pair, 'base64').toString().split(':').map(decodeURIComponent);
    return auth !== 'post' && id === CLIENT.id && secret === CLIENT.secret;
  }
  return auth !== 'basic' && form.client_id === CLIENT.id && form.client_secret === CLIENT.secret;
}
