/** Value of an `authorization` or `proxy-authorization` header by HTTP Basic (RFC 7617). It holds the password: a secret. */
export function basicAuth(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}
