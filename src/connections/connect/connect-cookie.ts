/** Reads a cookie of the request by name. */
export type ReadCookie = (name: string) => string | undefined

/**
 * The cookie that binds a link to a browser. Each session has its own, so two links of one browser do not replace each
 * other. With `__Host-`, no other host of the domain can have set it.
 */
export function createConnectCookie(id: string, secret: string, maxAgeMs: number, publicUrl: URL): string {
  const attributes = [
    `${nameOf(id, publicUrl)}=${secret}`,
    'Path=/',
    `Max-Age=${Math.ceil(maxAgeMs / 1_000)}`,
    'HttpOnly',
    // Lax, not Strict: the vendor redirects the browser back.
    'SameSite=Lax',
    ...(isSecure(publicUrl) ? ['Secure'] : []),
  ]
  return attributes.join('; ')
}

/** The secret of the browser; null if it has no cookie for the session. */
export function readBrowserSecret(id: string, readCookie: ReadCookie, publicUrl: URL): string | null {
  const secret = readCookie(nameOf(id, publicUrl))
  return secret === undefined || secret === '' ? null : secret
}

function nameOf(id: string, publicUrl: URL): string {
  return `${isSecure(publicUrl) ? '__Host-' : ''}tidemark_connect_${id.slice(0, 16)}`
}

function isSecure({ protocol }: URL): boolean {
  return protocol === 'https:'
}
