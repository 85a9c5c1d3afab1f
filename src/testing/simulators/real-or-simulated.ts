import type { Clock, SyncContext } from '../../contract/index.ts'
import { RandomStream } from '../simulation/random-stream.ts'
import { SimulatedOrdersTopic } from './kafka/simulated-orders-topic.ts'
import { createSimulatorFetch } from './kit/simulator-fetch.ts'
import { ManualClock } from './kit/manual-clock.ts'
import type { SimulatorPorts } from './kit/simulator.ts'
import { openSimulatedSystem, type SimulatedSystemName } from './simulated-systems.ts'

export interface RealOrSimulatedOptions {
  /** The secret that leads to the real one. */
  readonly unless: string
  /** When the simulated account was opened. The same moment, the same account: its whole life follows from it. */
  readonly since: string
}

/** Before that it was filled: long ago, and not so long that a log of events has forgotten it. */
const FILLED_AGO_MS = 20 * 86_400_000
/** Something is written so often, until so much was: then the account rests. Less than half of it is ever replaced, which would stop a sweep. */
export const WRITE_EVERY_MS = 5_000
const WRITES_MAX = 400

/**
 * For a worker that should run before anybody has an account: a source reads a simulated one, in this process, until the
 * secret is set, and the real one from then on. Whoever reads it again later finds it as it was, and what happened since.
 *
 * `const simulated = realOrSimulated('stripe', { unless: 'STRIPE_KEY', since: '2026-01-31T12:00:00Z' })`, then `simulated(account.customers)`
 */
export function realOrSimulated(name: SimulatedSystemName | 'kafka', { unless, since }: RealOrSimulatedOptions): <Source extends object>(source: Source) => Source {
  const open = (context: SyncContext): Partial<SyncContext> | Promise<Partial<SyncContext>> => (name === 'kafka' ? openKafkaTopics(Date.parse(since), context) : openAccount(name, Date.parse(since), context))
  let opened: ReturnType<typeof open> | undefined
  return replaceContextUnless(unless, (context) => (opened ??= open(context)))
}

/** What a source is given instead of the real thing, each time it is asked and the secret is not set. */
export function replaceContextUnless(unless: string, instead: (context: SyncContext) => Partial<SyncContext> | Promise<Partial<SyncContext>>): <Source extends object>(source: Source) => Source {
  const contextFor = async (context: SyncContext): Promise<SyncContext> => (isSecretSet(unless, context) ? context : { ...context, ...(await instead(context)) })
  // Whatever a source can be asked, the context comes last.
  const wrapped = (ask: (...given: unknown[]) => unknown) => async (...given: unknown[]): Promise<unknown> => ask(...given.slice(0, -1), await contextFor(given.at(-1) as SyncContext))
  return (source) => Object.fromEntries(Object.entries(source).map(([part, value]) => [part, typeof value === 'function' ? wrapped(value as (...given: unknown[]) => unknown) : value])) as typeof source
}

/** How many writes there have been by now, of a life that began at `sinceMs`; and when the nth was. */
export function countWritesBy(nowMs: number, sinceMs: number): number {
  return Math.max(0, Math.min(WRITES_MAX, Math.floor((nowMs - sinceMs) / WRITE_EVERY_MS) + 1))
}

export function writeTimeMs(n: number, sinceMs: number): number {
  return sinceMs + n * WRITE_EVERY_MS
}

function isSecretSet(secret: string, { secrets }: SyncContext): boolean {
  try {
    return secrets.get(secret) !== ''
  } catch {
    return false
  }
}

function openAccount(name: SimulatedSystemName, sinceMs: number, { clock }: SyncContext): Pick<SyncContext, 'fetch' | 'secrets'> {
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

/** Not asked by `fetch`: what a source needs is the address of a broker. */
async function openKafkaTopics(sinceMs: number, { clock }: SyncContext): Promise<Pick<SyncContext, 'secrets'>> {
  const { world } = openCaughtUp('kafka', sinceMs, clock, (ports, catchUp) => new SimulatedOrdersTopic(ports, catchUp))
  const brokers = (await world.listen()).join(',')
  return { secrets: { get: () => brokers } }
}

interface WritableSystem {
  write(n: number): void
}

/** A world and the way to its present: `catchUp` writes what is due since anybody looked, each at its moment. */
function openCaughtUp<World extends WritableSystem>(name: string, sinceMs: number, real: Clock, open: (ports: SimulatorPorts, catchUp: () => void) => World): { world: World; catchUp: () => void } {
  const clock = new ManualClock(sinceMs - FILLED_AGO_MS)
  // Every write has chances of its own: whoever asked in between, and how often, must not change what is written next.
  let chances = new RandomStream(0, name)
  const random = { next: () => chances.next() }
  let writes = 0
  const catchUp = (): void => {
    const nowMs = real.now()
    for (; writes < countWritesBy(nowMs, sinceMs); writes++) {
      clock.advance(Math.max(0, writeTimeMs(writes, sinceMs) - clock.now()))
      chances = new RandomStream(writes + 1, name)
      world.write(writes)
    }
    clock.advance(Math.max(0, nowMs - clock.now()))
  }
  const world = open({ clock: { now: () => clock.now(), sleep: (ms, signal) => real.sleep(ms, signal) }, random }, catchUp)
  return { world, catchUp }
}
