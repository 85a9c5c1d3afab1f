import { HttpError } from '../server/http-error.ts'

/**
 * The path of a request below the prefix; null if it is elsewhere. A host such as Express removes the prefix itself, so
 * a path without it is accepted if `isStripped`.
 */
export function stripPrefix(url: string, prefix: string, isStripped: boolean): string | null {
  if (prefix === '') return url
  if (url === prefix || url.startsWith(`${prefix}?`)) return `/${url.slice(prefix.length)}`
  if (url.startsWith(`${prefix}/`)) return url.slice(prefix.length)
  return isStripped ? url : null
}

export function notMountedError(prefix: string): HttpError {
  return new HttpError('NOT_FOUND', `Not found. Tidemark serves the paths below ${prefix}.`)
}

export function notOpenError(): HttpError {
  return new HttpError('SERVICE_UNAVAILABLE', 'The store cannot be opened. Retry, and see the log of the server.')
}
