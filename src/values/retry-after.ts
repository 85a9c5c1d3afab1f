/** Longer than this nobody means it: ten years is a mistake, not a wish. */
const WAIT_MAX_MS = 24 * 60 * 60_000

/** A header is a few dozen characters; whatever is longer is not looked at. */
const HEADER_CHARS_MAX = 256

/**
 * How long an answer that is a rate limit asks to stay away: the longest of all its headers that say something.
 * Undefined when none does, or none that makes sense; the caller's own backoff decides then.
 */
export function rateLimitWaitMs(headers: Headers, nowMs: number, waitMaxMs: number = WAIT_MAX_MS): number | undefined {
  const until = createWaitUntil(headers, nowMs)
  return findLongestWait([...readRetryAfterWaits(headers, until), ...readResetWaits(headers, until), ...readStructuredWaits(headers)], waitMaxMs)
}

/** The same for every other failure: a budget that renews itself in an hour is no reason to wait an hour for a server that is down. */
export function retryAfterMs(headers: Headers, nowMs: number, waitMaxMs: number = WAIT_MAX_MS): number | undefined {
  return findLongestWait(readRetryAfterWaits(headers, createWaitUntil(headers, nowMs)), waitMaxMs)
}

/**
 * The pause that an answer announces for its account, by its status and headers alone: a rate limit, or a server that says
 * when it will be back. Undefined when the answer announces none.
 */
export function announcedPauseMs(status: number, headers: Headers, nowMs: number): number | undefined {
  const isLimit = status === 429 || (status === 403 && (headers.has('retry-after') || isBudgetExhausted(headers)))
  const ms = isLimit ? rateLimitWaitMs(headers, nowMs) : status >= 500 ? retryAfterMs(headers, nowMs) : undefined
  return ms === undefined || ms <= 0 ? undefined : ms
}

/** How long to wait for a moment that the body of an answer names. */
export function waitUntilMs(at: number, headers: Headers, nowMs: number): number {
  return createWaitUntil(headers, nowMs)(at)
}

/** The server's own time; null when it does not say. It may lower a horizon and never raises one. */
export function readServerTime(headers: Headers): number | null {
  return parseHttpDate(readHeader(headers, 'date') ?? '')
}

/** Whether the headers themselves say that a budget is used up. */
export function isBudgetExhausted(headers: Headers): boolean {
  return REMAINING_HEADERS.some((name) => parseNumber(readHeader(headers, name)) === 0) || [...parseRateLimitHeader(headers)].some(({ remaining }) => remaining === 0)
}

function findLongestWait(waits: readonly number[], waitMaxMs: number): number | undefined {
  return waits.length === 0 ? undefined : Math.min(Math.max(0, ...waits.map(Math.ceil)), waitMaxMs)
}

const REMAINING_HEADERS = ['x-ratelimit-remaining', 'x-rate-limit-remaining', 'ratelimit-remaining']

/** Each with the header that says what is left of the same budget: while something is, its reset is no reason to wait. */
const RESET_HEADERS = [
  ['x-ratelimit-reset', 'x-ratelimit-remaining'],
  ['x-rate-limit-reset', 'x-rate-limit-remaining'],
  ['ratelimit-reset', 'ratelimit-remaining'],
  ['x-ratelimit-reset-after', 'x-ratelimit-remaining'],
] as const

/** Until a moment that the answer names, in ms. Never less than `PAST_WAIT_MS`: a pause was announced. */
type WaitUntil = (at: number) => number

/** A pause that ends in the past by every clock is still a request to slow down. */
const ELAPSED_PAUSE_MS = 1_000

/** A Date header that differs by more is a cache's, a proxy's or a broken clock's, and is not used. */
const SKEW_MAX_MS = 10 * 60_000

/**
 * A moment in an answer belongs to the server's clock, which the Date header tells if it is near ours. Within the allowed
 * skew the longer of both waits is taken, because nobody knows which clock is right and an early request breaks the pause.
 */
function createWaitUntil(headers: Headers, nowMs: number): WaitUntil {
  const serverNowMs = readServerTime(headers) ?? nowMs
  const isPlausible = Math.abs(serverNowMs - nowMs) <= SKEW_MAX_MS
  return (at) => {
    const [ours, theirs] = [at - nowMs, at - serverNowMs]
    if (isPlausible) return Math.max(ours, theirs, ELAPSED_PAUSE_MS)
    // Behind our clock, the moment can only belong to a server whose clock is as far behind as its Date header.
    return Math.max(ours > 0 ? ours : theirs, ELAPSED_PAUSE_MS)
  }
}

/** Seconds, or a date. A header that was sent twice arrives as a list. */
function readRetryAfterWaits(headers: Headers, until: WaitUntil): number[] {
  const waits = (readHeader(headers, 'retry-after-ms') ?? '').split(',').map(parseNumber).filter((ms) => ms !== null)
  const text = readHeader(headers, 'retry-after')
  if (text === null) return waits
  const at = parseHttpDate(text)
  if (at !== null) return [...waits, until(at)]
  return [...waits, ...text.split(',').map(parseNumber).filter((seconds) => seconds !== null).map((seconds) => seconds * 1_000)]
}

function readResetWaits(headers: Headers, until: WaitUntil): number[] {
  return RESET_HEADERS.flatMap(([reset, remaining]) => {
    const value = parseNumber(readHeader(headers, reset))
    return value === null || (parseNumber(readHeader(headers, remaining)) ?? 0) > 0 ? [] : [resetWaitMs(value, until)]
  })
}

/** Told apart by magnitude: a moment in milliseconds, a moment in seconds, or a span of seconds. */
function resetWaitMs(value: number, until: WaitUntil): number {
  if (value >= 1e11) return until(value)
  return value >= 1e9 ? until(value * 1_000) : value * 1_000
}

function readStructuredWaits(headers: Headers): number[] {
  return [...parseRateLimitHeader(headers)].flatMap(({ remaining, seconds }) => (seconds === null || (remaining ?? 0) > 0 ? [] : [seconds * 1_000]))
}

/** RateLimit: "default";r=0;t=30, "daily";r=12;t=3600 */
function* parseRateLimitHeader(headers: Headers): Generator<{ remaining: number | null; seconds: number | null }> {
  for (const item of (readHeader(headers, 'ratelimit') ?? '').split(',')) {
    const parameters = new Map(item.split(';').slice(1).map((part) => part.split('=', 2).map((side) => side.trim()) as [string, string]))
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

/** Date.parse takes almost anything for a date, so the form is checked first. */
function parseHttpDate(text: string): number | null {
  if (!/^[A-Z][a-z]{2,8},? [\w :-]{10,40}$/.test(text)) return null
  const at = Date.parse(text.endsWith('GMT') || text.endsWith('UTC') ? text : `${text} GMT`)
  return Number.isNaN(at) ? null : at
}
