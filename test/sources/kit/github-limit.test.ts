import { expect, test } from 'vitest'
import type { SyncContext } from '../../../src/contract/index.ts'
import { githubStars } from '../../../src/sources/github-stars/source.ts'
import { github } from '../../../src/sources/github/source.ts'

const SECONDARY = {
  message: 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
  documentation_url: 'https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits',
}

const sources = {
  'github-stars': githubStars({ token: 'TOKEN' }).delta,
  github: github({ token: 'TOKEN', owner: 'octo' }).issues.execute,
}

async function refusal(
  source: keyof typeof sources,
  body: unknown,
  status: number,
  headers: Record<string, string> = {},
): Promise<unknown> {
  const context = {
    fetch: async () => Response.json(body, { status, headers }),
    clock: { now: () => 0, sleep: async () => {} },
    secrets: { get: () => 'x' },
    signal: new AbortController().signal,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    cycle: { id: 1, mode: 'replace', startedAt: 0, page: 1 },
  } as unknown as SyncContext
  return sources[source](undefined, context).then(
    () => null,
    (error: unknown) => error,
  )
}

for (const source of ['github-stars', 'github'] as const) {
  test(`XD1 ${source}: a secondary limit without Retry-After is a rate limit of a minute, not a rejected token`, async () => {
    for (const status of [403, 429])
      expect(await refusal(source, SECONDARY, status)).toMatchObject({ code: 'RATE_LIMITED', retryAfterMs: 60_000 })
    expect(await refusal(source, SECONDARY, 403, { 'retry-after': '5' })).toMatchObject({
      code: 'RATE_LIMITED',
      retryAfterMs: 5_000,
    })
    expect(await refusal(source, { message: 'Resource not accessible by integration' }, 403)).toMatchObject({
      code: 'AUTH_REJECTED',
    })
  })
}
