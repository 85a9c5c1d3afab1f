import type { SyncError } from '../contract/index.ts'

/** Decides which redirects are followed, and how. */
export interface RedirectPolicy<Request> {
  readonly max: number
  /** The request that a redirect leads to; null if the response is final. Throws if the redirect is not allowed. */
  resolve(response: Response, request: Request): Request | null
  tooMany(request: Request): SyncError
}

/** Sends a request and follows redirects as far as the policy allows. `send` must not follow them itself. */
export async function followRedirects<Request>(
  first: Request,
  send: (request: Request) => Promise<Response>,
  policy: RedirectPolicy<Request>,
): Promise<Response> {
  let request = first
  for (let redirects = 0; ; redirects++) {
    const response = await send(request)
    let next: Request | null
    try {
      next = policy.resolve(response, request)
      if (next === null) return response
      if (redirects === policy.max) throw policy.tooMany(request)
    } catch (error) {
      await discardBody(response)
      throw error
    }
    await discardBody(response)
    request = next
  }
}

/** The target of a redirect; `url` is null if it cannot be parsed. Null for any other response. */
export function readRedirect(response: Response, base: URL): { readonly url: URL | null } | null {
  const location = response.headers.get('location')
  if (!REDIRECT_STATUSES.has(response.status) || location === null) return null
  return { url: URL.canParse(location, base.href) ? new URL(location, base) : null }
}

const REDIRECT_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

/** A connection with an unread response would stay occupied. */
async function discardBody(response: Response): Promise<void> {
  await response.body?.cancel().catch(() => {})
}
