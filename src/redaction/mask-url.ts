/**
 * A URL as it may be shown. By pattern and not by parsing, because it is the URLs that do not parse that get shown in
 * errors; everything up to the last @ goes, since a password may contain one.
 */
export function maskUrl(url: string): string {
  return url
    .replace(/^([a-z][a-z0-9+.-]*:\/\/)(?:.*)@/is, '$1***@')
    .replace(/([?&][^=&#]*(?:pass|pwd|secret|token|key)[^=&#]*=)[^&#]*/gi, '$1***')
    .slice(0, 200)
}
