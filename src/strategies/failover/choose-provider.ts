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
  /** Those that have failed since the last success. */
  readonly failedProviders: ReadonlySet<string>
  /** The operation has begun in this cycle, so whoever reads it goes on. */
  readonly isStarted: boolean
  readonly now: number
}

/** Who is asked next; or, when nobody is left, the one error that stands for all. */
export function chooseProvider<Item>(request: ChooseProviderRequest<Item>): ProviderChoice<Item> | SyncError {
  const { providers, operation, state, failedProviders: tried, now } = request
  const cursor = state.cursors[operation]
  const able = providers.filter(({ operations }) => operations === undefined || operations.includes(operation)).flatMap((provider) => {
    const resumption = findResumption(provider, cursor)
    return resumption === null ? [] : [{ provider, resumption }]
  })
  if (able.length === 0) return noProviderError(operation, cursor)
  const left = able.filter(({ provider }) => !tried.has(provider.name) && !isRateLimited(getHealth(state, provider.name), now))
  const isOpen = ({ provider }: ProviderChoice<Item>): boolean => getCircuitState(getHealth(state, provider.name), now) === 'open'
  const ranked = left.toSorted((a, b) => rankProvider(b.provider, request) - rankProvider(a.provider, request))
  // An open circuit is left alone for as long as there is anybody else.
  return ranked.find((choice) => !isOpen(choice)) ?? ranked[0] ?? allProvidersFailedError(able.map(({ provider }) => provider.name), request)
}

function rankProvider<Item>({ name }: Provider<Item>, { preferred, operation, state, isStarted: isUnderWay, now }: ChooseProviderRequest<Item>): number {
  const isCurrent = state.cursors[operation]?.metadata?.providerName === name
  // Not one that has just failed: a process that dies after every page would ask it for ever.
  if (isUnderWay && isCurrent && getHealth(state, name).failures === 0) return 1_000
  if (preferred === name) return 500
  // Of two that do as well, the one that can go on exactly where it is.
  return scoreHealth(getHealth(state, name), now) + (isCurrent ? 0.5 : 0)
}

function noProviderError(operation: string, cursor: CursorState | undefined): SyncError {
  if (cursor === undefined) return new SyncError('SYNC_INVALID', `failover: no provider offers \`${operation}\`.`)
  const kinds = [...new Set([cursor.primary, ...(cursor.alternatives ?? [])].map(({ type }) => type))].join(', ')
  return new SyncError('CURSOR_REJECTED', `failover: no provider can go on with \`${operation}\` from what is kept (${kinds}).`)
}

const RETRY_MIN_MS = 1_000

function allProvidersFailedError<Item>(names: readonly string[], { operation, state, now }: ChooseProviderRequest<Item>): SyncError {
  const healths = names.map((name) => getHealth(state, name))
  const codes = healths.map(({ lastError }) => lastError?.code ?? 'SOURCE_UNAVAILABLE')
  const told = names.map((name, at) => `${name}: ${codes[at]!}`).join(', ')
  // When the first of them may be asked again. While every circuit is open that is not worth staying for.
  const waits = healths.map((health) => Math.max(
    RETRY_MIN_MS,
    isRateLimited(health, now) ? health.waitUntil! - now : 0,
    getCircuitState(health, now) === 'open' ? health.openedAt! + CIRCUIT_OPEN_MS - now : 0,
  ))
  return new SyncError(pickErrorCode(codes), `failover: every provider of \`${operation}\` has failed (${told}).`, { retryAfterMs: Math.min(...waits) })
}

/** What all say; else what may pass by itself, if for any of them it may. */
function pickErrorCode(codes: readonly ErrorCode[]): ErrorCode {
  if (new Set(codes).size === 1) return codes[0]!
  return codes.find((code) => RETRYABLE_CODES.has(code)) ?? codes.at(-1)!
}

const RETRYABLE_CODES: ReadonlySet<ErrorCode> = new Set(['SOURCE_UNAVAILABLE', 'SOURCE_TIMEOUT', 'SOURCE_INVALID', 'RATE_LIMITED'])
