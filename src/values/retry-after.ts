/** Longer than this nobody means it: ten years is a mistake, not a wish. */
const WAIT_MAX_MS = 24 * 60 * 60_000

/** A header is a few dozen characters; whatever is longer is not looked at. */
const HEADER_CHARS_MAX = 256

/**
 * How long an answer that is a rate limit asks to stay away: the longest of all its headers that say something.
 * Undefined when none does, or none that makes sense; the caller's own backoff decides then.
 */
export function limitWaitMs(headers: Headers, nowMs: number, waitMaxMs: number = WAIT_MAX_MS): number | undefined {
  const until = untilBy(headers, nowMs)
  return longest([...retryAfters(headers, until), ...resets(headers, until), ...structured(headers)], waitMaxMs)
}

/** The same for every other failure: a budget that renews itself in an hour is no reason to wait an hour for a server that is down. */
export function retryAfterMs(headers: Headers, nowMs: number, waitMaxMs: number = WAIT_MAX_MS): number | undefined {
  return longest(retryAfters(headers, untilBy(headers, nowMs)), waitMaxMs)
}

/**
 * The pause that an answer announces for its account, by its status and headers alone: a rate limit, or a server that says
 * when it will be back. Undefined when the answer announces none.
 */
export function announcedPauseMs(status: number, headers: Headers, nowMs: number): number | undefined {
  const isLimit = status === 429 || (status === 403 && (headers.has('retry-after') || saysExhausted(headers)))
  const ms = isLimit ? limitWaitMs(headers, nowMs) : status >= 500 ? retryAfterMs(headers, nowMs) : undefined
  return ms === undefined || ms <= 0 ? undefined : ms
}

/** How long to wait for a moment that the body of an answer names. */
export function waitUntilMs(at: number, headers: Headers, nowMs: number): number {
  return untilBy(headers, nowMs)(at)
}

/** The server's own time; null when it does not say. It may lower a horizon and never raises one. */
export function serverTimeOf(headers: Headers): number | null {
  return httpDate(read(headers, 'date') ?? '')
}

/** Whether the headers themselves say that a budget is used up. */
export function saysExhausted(headers: Headers): boolean {
  return REMAINING.some((name) => number(read(headers, name)) === 0) || [...limits(headers)].some(({ remaining }) => remaining === 0)
}

function longest(waits: readonly number[], waitMaxMs: number): number | undefined {
  return waits.length === 0 ? undefined : Math.min(Math.max(0, ...waits.map(Math.ceil)), waitMaxMs)
}

const REMAINING = ['x-ratelimit-remaining', 'x-rate-limit-remaining', 'ratelimit-remaining']

/** Each with the header that says what is left of the same budget: while something is, its reset is no reason to wait. */
const RESETS = [
  ['x-ratelimit-reset', 'x-ratelimit-remaining'],
  ['x-rate-limit-reset', 'x-rate-limit-remaining'],
  ['ratelimit-reset', 'ratelimit-remaining'],
  ['x-ratelimit-reset-after', 'x-ratelimit-remaining'],
] as const

/** Until a moment that the answer names, in ms. Never less than `PAST_WAIT_MS`: a pause was announced. */
type Until = (at: number) => number

/** A pause that ends in the past by every clock is still a request to slow down. */
const PAST_WAIT_MS = 1_000

/** A Date header that differs by more is a cache's, a proxy's or a broken clock's, and is not used. */
const SKEW_MAX_MS = 10 * 60_000

/**
 * A moment in an answer belongs to the server's clock, which the Date header tells if it is near ours. Within the allowed
 * skew the longer of both waits is taken, because nobody knows which clock is right and an early request breaks the pause.
 */
function untilBy(headers: Headers, nowMs: number): Until {
  const serverNowMs = serverTimeOf(headers) ?? nowMs
  const isPlausible = Math.abs(serverNowMs - nowMs) <= SKEW_MAX_MS
  return (at) => {
    const [ours, theirs] = [at - nowMs, at - serverNowMs]
    if (isPlausible) return Math.max(ours, theirs, PAST_WAIT_MS)
    // Behind our clock, the moment can only belong to a server whose clock is as far behind as its Date header.
    return Math.max(ours > 0 ? ours : theirs, PAST_WAIT_MS)
  }
}

/** Seconds, or a date. A header that was sent twice arrives as a list. */
function retryAfters(headers: Headers, until: Until): number[] {
  const waits = (read(headers, 'retry-after-ms') ?? '').split(',').map(number).filter((ms) => ms !== null)
  const text = read(headers, 'retry-after')
  if (text === null) return waits
  const at = httpDate(text)
  if (at !== null) return [...waits, until(at)]
  return [...waits, ...text.split(',').map(number).filter((seconds) => seconds !== null).map((seconds) => seconds * 1_000)]
}

function resets(headers: Headers, until: Until): number[] {
  return RESETS.flatMap(([reset, remaining]) => {
    const value = number(read(headers, reset))
    return value === null || (number(read(headers, remaining)) ?? 0) > 0 ? [] : [resetWaitMs(value, until)]
  })
}

/** Told apart by magnitude: a moment in milliseconds, a moment in seconds, or a span of seconds. */
function resetWaitMs(value: number, until: Until): number {
  if (value >= 1e11) return until(value)
  return value >= 1e9 ? until(value * 1_000) : value * 1_000
}

function structured(headers: Headers): number[] {
  return [...limits(headers)].flatMap(({ remaining, seconds }) => (seconds === null || (remaining ?? 0) > 0 ? [] : [seconds * 1_000]))
}

/** RateLimit: "default";r=0;t=30, "daily";r=12;t=3600 */
function* limits(headers: Headers): Generator<{ remaining: number | null; seconds: number | null }> {
  for (const item of (read(headers, 'ratelimit') ?? '').split(',')) {
    const parameters = new Map(item.split(';').slice(1).map((part) => part.split('=', 2).map((side) => side.trim()) as [string, string]))
    yield { remaining: number(parameters.get('r')), seconds: number(parameters.get('t')) }
  }
}

function read(headers: Headers, name: string): string | null {
  const text = headers.get(name)
  return text === null || text.length > HEADER_CHARS_MAX ? null : text
}

function number(text: string | null | undefined): number | null {
  return text !== null && text !== undefined && /^-?\d{1,20}(?:\.\d{1,20})?$/.test(text.trim()) ? Number(text) : null
}

/** Date.parse takes almost anything for a date, so the form is checked first. */
function httpDate(text: string): number | null {
  if (!/^[A-Z][a-z]{2,8},? [\w :-]{10,40}$/.test(text)) return null
  const at = Date.parse(text.endsWith('GMT') || text.endsWith('UTC') ? text : `${text} GMT`)
  return Number.isNaN(at) ? null : at
}
