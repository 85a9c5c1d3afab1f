/** A longer wait is a mistake of the server. */
const WAIT_MAX_MS = 24 * 60 * 60_000

/** Headers are a few dozen characters long; longer values are ignored. */
const HEADER_CHARS_MAX = 256

/**
 * The wait that a rate limit response requests: the longest of all its headers. Undefined if there is no valid one; the
 * caller's own backoff then decides.
 */
export function rateLimitWaitMs(headers: Headers, nowMs: number, waitMaxMs: number = WAIT_MAX_MS): number | undefined {
  const until = createWaitUntil(headers, nowMs)
  return findLongestWait(
    [...readRetryAfterWaits(headers, until), ...readResetWaits(headers, until), ...readStructuredWaits(headers)],
    waitMaxMs,
  )
}

/**
 * The same for every other failure: a quota that renews in an hour is no reason to wait an hour for a server that is
 * down.
 */
export function retryAfterMs(headers: Headers, nowMs: number, waitMaxMs: number = WAIT_MAX_MS): number | undefined {
  return findLongestWait(readRetryAfterWaits(headers, createWaitUntil(headers, nowMs)), waitMaxMs)
}

/**
 * The pause that a response announces for its account, by its status and headers alone: a rate limit, or a server that
 * gives a retry time. Undefined if the response announces none.
 */
export function announcedPauseMs(status: number, headers: Headers, nowMs: number): number | undefined {
  const isLimit = status === 429 || (status === 403 && (headers.has('retry-after') || isBudgetExhausted(headers)))
  const ms = isLimit ? rateLimitWaitMs(headers, nowMs) : status >= 500 ? retryAfterMs(headers, nowMs) : undefined
  return ms === undefined || ms <= 0 ? undefined : ms
}

/** The wait until a time given in the body of a response. */
export function waitUntilMs(at: number, headers: Headers, nowMs: number): number {
  return createWaitUntil(headers, nowMs)(at)
}

/** The server's own time; null without a header. It may lower a horizon, but never raises one. */
export function readServerTime(headers: Headers): number | null {
  return parseHttpDate(readHeader(headers, 'date') ?? '')
}

/** Returns whether the headers report an exhausted quota. */
export function isBudgetExhausted(headers: Headers): boolean {
  return (
    REMAINING_HEADERS.some((name) => parseNumber(readHeader(headers, name)) === 0) ||
    [...parseRateLimitHeader(headers)].some(({ remaining }) => remaining === 0)
  )
}

function findLongestWait(waits: readonly number[], waitMaxMs: number): number | undefined {
  return waits.length === 0 ? undefined : Math.min(Math.max(0, ...waits.map(Math.ceil)), waitMaxMs)
}

const REMAINING_HEADERS = ['x-ratelimit-remaining', 'x-rate-limit-remaining', 'ratelimit-remaining']

/** Each reset header with the header for the remaining quota: while some remains, the reset is no reason to wait. */
const RESET_HEADERS = [
  ['x-ratelimit-reset', 'x-ratelimit-remaining'],
  ['x-rate-limit-reset', 'x-rate-limit-remaining'],
  ['ratelimit-reset', 'ratelimit-remaining'],
  ['x-ratelimit-reset-after', 'x-ratelimit-remaining'],
] as const

/** The wait until a time in the response, in ms. Never less than `ELAPSED_PAUSE_MS`, because a pause was announced. */
type WaitUntil = (at: number) => number

/** A pause that ends in the past by every clock is still a request to slow down. */
const ELAPSED_PAUSE_MS = 1_000

/** A Date header with a larger difference comes from a cache, a proxy or a broken clock, and is ignored. */
const SKEW_MAX_MS = 10 * 60_000

/**
 * A time in a response is relative to the server's clock, which the Date header shows if it is close to ours. Within
 * the allowed skew the longer wait is used: either clock may be wrong, and an early request violates the pause.
 */
function createWaitUntil(headers: Headers, nowMs: number): WaitUntil {
  const serverNowMs = readServerTime(headers) ?? nowMs
  const isPlausible = Math.abs(serverNowMs - nowMs) <= SKEW_MAX_MS
  return (at) => {
    const [ours, theirs] = [at - nowMs, at - serverNowMs]
    if (isPlausible) return Math.max(ours, theirs, ELAPSED_PAUSE_MS)
    // A time before our clock can only come from a server whose clock is as far behind as its Date header.
    return Math.max(ours > 0 ? ours : theirs, ELAPSED_PAUSE_MS)
  }
}

/** Seconds, or a date. A header that was sent twice arrives as a list. */
function readRetryAfterWaits(headers: Headers, until: WaitUntil): number[] {
  const waits = (readHeader(headers, 'retry-after-ms') ?? '')
    .split(',')
    .map(parseNumber)
    .filter((ms) => ms !== null)
  const text = readHeader(headers, 'retry-after')
  if (text === null) return waits
  const at = parseHttpDate(text)
  if (at !== null) return [...waits, until(at)]
  return [
    ...waits,
    ...text
      .split(',')
      .map(parseNumber)
      .filter((seconds) => seconds !== null)
      .map((seconds) => seconds * 1_000),
  ]
}

function readResetWaits(headers: Headers, until: WaitUntil): number[] {
  return RESET_HEADERS.flatMap(([reset, remaining]) => {
    const value = parseNumber(readHeader(headers, reset))
    return value === null || (parseNumber(readHeader(headers, remaining)) ?? 0) > 0 ? [] : [resetWaitMs(value, until)]
  })
}

/** Distinguished by magnitude: a time in milliseconds, a time in seconds, or a number of seconds. */
function resetWaitMs(value: number, until: WaitUntil): number {
  if (value >= 1e11) return until(value)
  return value >= 1e9 ? until(value * 1_000) : value * 1_000
}

function readStructuredWaits(headers: Headers): number[] {
  return [...parseRateLimitHeader(headers)].flatMap(({ remaining, seconds }) =>
    seconds === null || (remaining ?? 0) > 0 ? [] : [seconds * 1_000],
  )
}

/** RateLimit: "default";r=0;t=30, "daily";r=12;t=3600 */
function* parseRateLimitHeader(headers: Headers): Generator<{ remaining: number | null; seconds: number | null }> {
  for (const item of (readHeader(headers, 'ratelimit') ?? '').split(',')) {
    const parameters = new Map(
      item
        .split(';')
        .slice(1)
        .map((part) => part.split('=', 2).map((side) => side.trim()) as [string, string]),
    )
    yield { remaining: parseNumber(parameters.get('r')), seconds: parseNumber(parameters.get('t')) }
  }
}

function readHeader(headers: Headers, name: string): string | null {
  const text = headers.get(name)
  return text === null || text.length > HEADER_CHARS_MAX ? null : text
}

function parseNumber(text: string | null | undefined): number | null {
  return text !== null && text !== undefined && /^-?\d{1,20}(?:\.\d{1,20})?$/.test(text.trim()) ? Number(text) : null
}

/** Date.parse accepts almost any text, so the form is checked first. */
function parseHttpDate(text: string): number | null {
  if (!/^[A-Z][a-z]{2,8},? [\w :-]{10,40}$/.test(text)) return null
  const at = Date.parse(text.endsWith('GMT') || text.endsWith('UTC') ? text : `${text} GMT`)
  return Number.isNaN(at) ? null : at
}
