/**
 * Masks the credentials of a URL for display. Uses patterns instead of parsing, because errors show URLs that do not
 * parse. Removes everything up to the last @, because a password may contain one.
 */
export function maskUrl(url: string): string {
  return url
    .replace(/^([a-z][a-z0-9+.-]*:\/\/)(?:.*)@/is, '$1***@')
    .replace(/([?&][^=&#]*(?:pass|pwd|secret|token|key)[^=&#]*=)[^&#]*/gi, '$1***')
    .slice(0, 200)
}
