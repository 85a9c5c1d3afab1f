import { isSyncError } from '../../contract/index.ts'

/** Why an authorization failed. The user may try again. */
export type ConnectFailure =
  | { readonly kind: 'declined' | 'vendor-error' | 'code-refused' | 'client-refused' | 'credentials-refused' }
  | { readonly kind: 'unavailable' | 'wrong-issuer' | 'invalid-answer' | 'changed' }
  | { readonly kind: 'other-account'; readonly expected: string; readonly found: string }

/** The sentence on the page. It never quotes the vendor's text. */
export function describeFailure(title: string, failure: ConnectFailure): string {
  switch (failure.kind) {
    case 'declined':
      return `You did not grant access at ${title}. Nothing was connected.`
    case 'vendor-error':
      return `${title} reported an error. Nothing was connected. Try again.`
    case 'code-refused':
      return `${title} did not accept the authorization, perhaps because it took too long. Try again.`
    case 'client-refused':
      return `${title} does not accept the registration of this app. Contact the support of the app.`
    case 'credentials-refused':
      return `${title} did not accept these credentials. Check them, and their permissions.`
    case 'unavailable':
      return `${title} did not answer. Try again in a minute.`
    case 'invalid-answer':
      return `${title} gave an answer that could not be read. Nothing was connected.`
    case 'wrong-issuer':
      return `The answer came from another server than ${title}. Nothing was connected.`
    case 'changed':
      return 'The connection was changed at the same time. Try again.'
    case 'other-account':
      return `This connection belongs to the account ${failure.expected}, but you signed in as ${failure.found}. Nothing was changed. Sign in to ${title} as ${failure.expected}, or add another connection.`
    default:
      return failure satisfies never
  }
}

/** The failure that an error of a request means; null for errors that are none of the vendor's. */
export function toFailure(error: unknown): ConnectFailure | null {
  if (!isSyncError(error)) return null
  switch (error.code) {
    case 'AUTH_REJECTED':
    case 'SOURCE_FORBIDDEN':
      return { kind: 'credentials-refused' }
    case 'SOURCE_UNAVAILABLE':
    case 'SOURCE_TIMEOUT':
    case 'RATE_LIMITED':
      return { kind: 'unavailable' }
    case 'SOURCE_INVALID':
    case 'CONNECTOR_FAILED':
      return { kind: 'invalid-answer' }
    default:
      return null
  }
}
