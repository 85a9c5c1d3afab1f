import { SyncError } from '../../contract/index.ts'

/**
 * Returns the URL that a flow ends at. Allowed are the URLs of the list and everything below them: `https://a.example/app/`
 * allows `https://a.example/app/settings?tab=2`, and `https://a.example/app` allows `https://a.example/app` and
 * `https://a.example/app/x`, but not `https://a.example/apple`. Anything else would make the flow an open redirect.
 */
export function checkReturnTo(returnTo: string, allowed: readonly string[]): URL {
  const url = parseUrl(returnTo)
  if (url !== null && allowed.some((text) => contains(parseUrl(text), url))) return url
  throw new SyncError(
    'CONNECTION_INVALID',
    'The URL in `returnTo` is not allowed. Add its origin or path to `connect.returnTo`.',
  )
}

/** Rejects an entry that would allow too much, such as one without a scheme. */
export function checkAllowedUrl(text: string): URL {
  const url = parseUrl(text)
  if (url === null || url.search !== '' || url.hash !== '')
    throw new SyncError(
      'ARGUMENT_INVALID',
      `\`connect.returnTo\` contains ${JSON.stringify(text)}, which is not an http or https URL without a query.`,
    )
  return url
}

function contains(allowed: URL | null, url: URL): boolean {
  if (allowed === null || allowed.origin !== url.origin) return false
  const path = allowed.pathname.endsWith('/') ? allowed.pathname : `${allowed.pathname}/`
  if (url.pathname !== allowed.pathname && !url.pathname.startsWith(path)) return false
  // A server may decode the path again.
  return !/%2e|%2f|%5c|\\/i.test(url.pathname)
}

function parseUrl(text: string): URL | null {
  // The parser accepts tabs and line breaks, which another parser may not remove.
  if (!URL.canParse(text) || /[\u0000-\u0020\u007f\\]/.test(text)) return null
  const url = new URL(text)
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:'
  return isWeb && url.username === '' && url.password === '' ? url : null
}
