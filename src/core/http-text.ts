// Texts that the HTTP clients of the API, of token endpoints and of the registry send and read in the same way.

/** Value of an `authorization` or `proxy-authorization` header by HTTP Basic (RFC 7617). It holds the password: a secret. */
export function basicAuth(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

/** Parses a JSON object or array; undefined for any other text, such as a web page. The caller reports what it expected instead. */
export function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch {
    // not JSON
  }
  return undefined;
}
