import { SyncError, type ErrorCode } from '../../contract/index.ts'
import { getCircuitState, isRateLimited, CIRCUIT_OPEN_MS, scoreHealth } from './circuit-breaker.ts'
import type { CursorState } from './cursors.ts'
import type { Provider } from './provider.ts'
import { findResumption, type Resumption } from './resumption.ts'
import { getHealth, type FailoverState } from './state.ts'

export interface ProviderChoice<Item> {
  readonly provider: Provider<Item>
  readonly resumption: Resumption
}

export interface ChooseProviderRequest<Item> {
  readonly providers: readonly Provider<Item>[]
  readonly preferred: string | undefined
  readonly operation: string
  readonly state: FailoverState
  /** Providers that have failed since the last success. */
  readonly failedProviders: ReadonlySet<string>
  /** The operation has begun in this cycle, so the current provider continues. */
  readonly isStarted: boolean
  readonly now: number
}

/** Returns the next provider, or one error for all of them when none is left. */
export function chooseProvider<Item>(request: ChooseProviderRequest<Item>): ProviderChoice<Item> | SyncError {
  const { providers, operation, state, failedProviders, now } = request
  const cursor = state.cursors[operation]
  const able = providers
    .filter(({ operations }) => operations === undefined || operations.includes(operation))
    .flatMap((provider) => {
      const resumption = findResumption(provider, cursor)
      return resumption === null ? [] : [{ provider, resumption }]
    })
  if (able.length === 0) return noProviderError(operation, cursor)
  const available = able.filter(
    ({ provider }) => !failedProviders.has(provider.name) && !isRateLimited(getHealth(state, provider.name), now),
  )
  const isOpen = ({ provider }: ProviderChoice<Item>): boolean =>
    getCircuitState(getHealth(state, provider.name), now) === 'open'
  const ranked = available.toSorted((a, b) => rankProvider(b.provider, request) - rankProvider(a.provider, request))
  // An open circuit is skipped as long as another provider is available.
  return (
    ranked.find((choice) => !isOpen(choice)) ??
    ranked[0] ??
    allProvidersFailedError(
      able.map(({ provider }) => provider.name),
      request,
    )
  )
}

function rankProvider<Item>(
  { name }: Provider<Item>,
  { preferred, operation, state, isStarted, now }: ChooseProviderRequest<Item>,
): number {
  const isCurrent = state.cursors[operation]?.metadata?.providerName === name
  // A provider that has just failed gets no priority: a process that crashes after every page would choose it forever.
  if (isStarted && isCurrent && getHealth(state, name).failures === 0) return 1_000
  if (preferred === name) return 500
  // Between equal scores, prefer the provider that can resume exactly.
  return scoreHealth(getHealth(state, name), now) + (isCurrent ? 0.5 : 0)
}

function noProviderError(operation: string, cursor: CursorState | undefined): SyncError {
  if (cursor === undefined) return new SyncError('SYNC_INVALID', `failover: no provider offers \`${operation}\`.`)
  const kinds = [...new Set([cursor.primary, ...(cursor.alternatives ?? [])].map(({ type }) => type))].join(', ')
  return new SyncError(
    'CURSOR_REJECTED',
    `failover: no provider supports the stored cursors of \`${operation}\` (${kinds}). Add a provider that does.`,
  )
}

const RETRY_MIN_MS = 1_000

function allProvidersFailedError<Item>(
  names: readonly string[],
  { operation, state, now }: ChooseProviderRequest<Item>,
): SyncError {
  const healths = names.map((name) => getHealth(state, name))
  const codes = healths.map(({ lastError }) => lastError?.code ?? 'SOURCE_UNAVAILABLE')
  const details = names.map((name, index) => `${name}: ${codes[index] ?? 'unknown'}`).join(', ')
  // The earliest time at which one provider may be tried again, after its rate limit or open circuit ends.
  const waits = healths.map((health) =>
    Math.max(
      RETRY_MIN_MS,
      isRateLimited(health, now) ? (health.waitUntil ?? now) - now : 0,
      getCircuitState(health, now) === 'open' ? (health.openedAt ?? now) + CIRCUIT_OPEN_MS - now : 0,
    ),
  )
  return new SyncError(
    pickErrorCode(codes),
    `failover: every provider of \`${operation}\` has failed (${details}). The next attempt retries.`,
    { retryAfterMs: Math.min(...waits) },
  )
}

/** The common code; otherwise a retryable one, if any provider returned one. */
function pickErrorCode(codes: readonly ErrorCode[]): ErrorCode {
  const [first] = codes
  if (first !== undefined && new Set(codes).size === 1) return first
  return codes.find((code) => RETRYABLE_CODES.has(code)) ?? codes.at(-1) ?? 'SOURCE_UNAVAILABLE'
}

const RETRYABLE_CODES: ReadonlySet<ErrorCode> = new Set([
  'SOURCE_UNAVAILABLE',
  'SOURCE_TIMEOUT',
  'SOURCE_INVALID',
  'RATE_LIMITED',
])
