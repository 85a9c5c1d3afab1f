import type { Clock, SourceContext } from './kit/ports.ts'
import { SeededRandom } from './kit/seeded-random.ts'
import { SimulatedOrdersTopic } from './kafka/simulated-orders-topic.ts'
import { createSimulatorFetch } from './kit/simulator-fetch.ts'
import { ManualClock } from './kit/manual-clock.ts'
import type { SimulatorPorts } from './kit/simulator.ts'
import { openSimulatedSystem, type SimulatedSystemName } from './simulated-systems.ts'

/** Options of `realOrSimulated`. */
export interface RealOrSimulatedOptions {
  /** The secret for the real account. */
  readonly unless: string
  /** When the simulated account was opened. The account is a pure function of this time. */
  readonly since: string
}

/** It was filled before that: long ago, but within the retention of an event log. */
const FILLED_AGO_MS = 20 * 86_400_000
/**
 * Interval and maximum number of writes; after that the account is idle. Fewer than half of the records are ever
 * replaced, which would exceed the delete limit of a sweep.
 */
export const WRITE_EVERY_MS = 5_000
const WRITES_MAX = 400

/**
 * For a worker that should run before it has an account: until the secret is set, a source reads a simulated account in this
 * process, and the real one from then on. A later read returns the same account with the writes made since.
 *
 * `const simulated = realOrSimulated('stripe', { unless: 'STRIPE_KEY', since: '2026-01-31T12:00:00Z' })`, then `simulated(account.customers)`
 */
export function realOrSimulated(
  name: SimulatedSystemName | 'kafka',
  { unless, since }: RealOrSimulatedOptions,
): <Source extends object>(source: Source) => Source {
  const open = (context: SourceContext): Partial<SourceContext> | Promise<Partial<SourceContext>> =>
    name === 'kafka' ? openKafkaTopics(Date.parse(since), context) : openAccount(name, Date.parse(since), context)
  let opened: ReturnType<typeof open> | undefined
  return replaceContextUnless(unless, (context) => (opened ??= open(context)))
}

/** The arguments a source receives instead of the real ones, on every call while the secret is not set. */
export function replaceContextUnless(
  unless: string,
  instead: (context: SourceContext) => Partial<SourceContext> | Promise<Partial<SourceContext>>,
): <Source extends object>(source: Source) => Source {
  const contextFor = async (context: SourceContext): Promise<SourceContext> =>
    isSecretSet(unless, context) ? context : { ...context, ...(await instead(context)) }
  return (source) =>
    Object.fromEntries(
      Object.entries(source).map(([part, value]) => [part, wrap(part, value, contextFor)]),
    ) as typeof source
}

type ContextFor = (context: SourceContext) => Promise<SourceContext>

/** The context is the last argument of every method of a source; only `range` has none, and returns such a method. */
function wrap(name: string, value: unknown, contextFor: ContextFor): unknown {
  if (typeof value !== 'function') return value
  const ask = value as (...given: unknown[]) => unknown
  const wrapped =
    name === 'range'
      ? (...given: unknown[]): unknown => wrap('execute', ask(...given), contextFor)
      : async (...given: unknown[]): Promise<unknown> =>
          ask(...given.slice(0, -1), await contextFor(given.at(-1) as SourceContext))
  const own = Object.entries(value).map(([member, part]) => [member, wrap(member, part, contextFor)])
  return Object.assign(wrapped, Object.fromEntries(own))
}

/** Number of writes by now of an account opened at `sinceMs`; and the time of the nth. */
export function countWritesBy(nowMs: number, sinceMs: number): number {
  return Math.max(0, Math.min(WRITES_MAX, Math.floor((nowMs - sinceMs) / WRITE_EVERY_MS) + 1))
}

export function writeTimeMs(n: number, sinceMs: number): number {
  return sinceMs + n * WRITE_EVERY_MS
}

function isSecretSet(secret: string, { secrets }: SourceContext): boolean {
  try {
    return secrets.get(secret) !== ''
  } catch {
    return false
  }
}

function openAccount(
  name: SimulatedSystemName,
  sinceMs: number,
  { clock }: SourceContext,
): Pick<SourceContext, 'fetch' | 'secrets'> {
  const { world, catchUp } = openCaughtUp(name, sinceMs, clock, (ports) => openSimulatedSystem(name, ports))
  const ask = createSimulatorFetch(world)
  return {
    fetch: (input, init) => {
      catchUp()
      return ask(input, init)
    },
    secrets: { get: (secret) => world.secret?.(secret) ?? 'simulated' },
  }
}

/** Does not use `fetch`: the source needs the address of a broker. */
async function openKafkaTopics(sinceMs: number, { clock }: SourceContext): Promise<Pick<SourceContext, 'secrets'>> {
  const { world } = openCaughtUp('kafka', sinceMs, clock, (ports, catchUp) => new SimulatedOrdersTopic(ports, catchUp))
  const brokers = (await world.listen()).join(',')
  return { secrets: { get: () => brokers } }
}

interface WritableSystem {
  write(n: number): void
}

/**
 * A simulated system that can be brought up to date: `catchUp` makes the writes due since the last call, each at its
 * own time.
 */
function openCaughtUp<World extends WritableSystem>(
  name: string,
  sinceMs: number,
  real: Clock,
  open: (ports: SimulatorPorts, catchUp: () => void) => World,
): { world: World; catchUp: () => void } {
  const clock = new ManualClock(sinceMs - FILLED_AGO_MS)
  // Every write has its own random draws: interleaved requests must not change later writes.
  let chances = new SeededRandom(0, name)
  const random = { next: () => chances.next() }
  let writes = 0
  const catchUp = (): void => {
    const nowMs = real.now()
    for (; writes < countWritesBy(nowMs, sinceMs); writes++) {
      clock.advance(Math.max(0, writeTimeMs(writes, sinceMs) - clock.now()))
      chances = new SeededRandom(writes + 1, name)
      world.write(writes)
    }
    clock.advance(Math.max(0, nowMs - clock.now()))
  }
  const world = open(
    { clock: { now: () => clock.now(), sleep: (ms, signal) => real.sleep(ms, signal) }, random },
    catchUp,
  )
  return { world, catchUp }
}
