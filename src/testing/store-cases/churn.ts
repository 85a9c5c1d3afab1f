import assert from 'node:assert/strict'
import type {
  CommitOutcome,
  Landing,
  LogEntry,
  StateTransition,
  QuarantinedRecord,
  Store,
} from '../../contract/index.ts'
import {
  seededRandom,
  DATABASE,
  expectLanded,
  makeQuarantined,
  remove,
  START,
  SWEEP_ALL,
  SyncDriver,
  upsert,
} from './harness.ts'
import { required } from '../../values/required.ts'

const KEYS = ['k0', 'k1', 'k2', 'k3', 'k4', 'k5', 'k6', 'k7']

/**
 * Random work on one tenant: a backfill and a delta that share a database, and an unrelated sync that replaces part of
 * it too. Cycles complete, are abandoned, taken over and restarted; changes arrive late, without a time and twice.
 * Yields after every step.
 */
export async function* churn(store: Store, seed: number, steps: number): AsyncGenerator<void> {
  const random = seededRandom(seed)
  const below = (n: number): number => Math.floor(random() * n)
  const syncs = [
    { sync: 'backfill', mode: 'replace', owner: 'accounts' },
    { sync: 'delta', mode: 'incremental', owner: 'accounts' },
    { sync: 'stranger', mode: 'replace', owner: 'stranger' },
  ] as const
  const drivers = await Promise.all(syncs.map((options) => SyncDriver.acquire(store, options)))

  for (let step = 0; step < steps; step++) {
    const n = below(drivers.length)
    let driver = required(drivers[n], 'drivers[n]')
    if (random() < 0.05)
      driver = drivers[n] = await SyncDriver.acquire(store, { ...required(syncs[n], 'syncs[n]'), evict: 'runner-1' })
    if (driver.inflight === null || random() < 0.05) await driver.begin({ fresh: random() < 0.3 })
    else
      await runRandomCycle(
        driver,
        { landings: someLandings(random, below), quarantined: someQuarantined(random, below) },
        random,
      )
    yield
  }
}

export async function runChurn(store: Store, seed: number, steps: number): Promise<void> {
  for await (const _ of churn(store, seed, steps));
}

async function runRandomCycle(
  driver: SyncDriver,
  content: { landings: Landing[]; quarantined: QuarantinedRecord[] },
  random: () => number,
): Promise<void> {
  const { cycle, page } = required(driver.inflight, 'driver.inflight')
  const what = random()
  const sweep = driver.mode === 'incremental' ? null : random() < 0.5 ? SWEEP_ALL : { maxShare: 0.5, allowEmpty: false }
  const move: StateTransition =
    what < 0.5
      ? driver.nextPage()
      : what < 0.9
        ? driver.lastPage({ sweep, state: `{"cycle":${page}}` })
        : { kind: 'abandon', cycle, page: page + 1, reason: 'bored' }
  const readFrom = Math.max(0, (await driver.store.headSequence()) - Math.floor(random() * 4))
  // The clock may step back.
  const at = random() < 0.2 ? START - 1_000 : driver.tick()
  const outcome = await sendUntilResolved(driver, move, { ...content, readAtSequence: readFrom, at })
  if (outcome.kind === 'massDeleteBlocked')
    expectLanded(
      await sendUntilResolved(driver, { kind: 'abandon', cycle, page: page + 1, reason: 'mass delete' }, content),
    )
  else expectLanded(outcome)
}

/** As in the engine: an overlap is read again, later than the stored row. */
async function sendUntilResolved(
  driver: SyncDriver,
  move: StateTransition,
  content: { landings: Landing[]; quarantined: QuarantinedRecord[]; readAtSequence?: number; at?: number },
): Promise<CommitOutcome> {
  const { landings, readAtSequence: _, ...later } = content
  const outcome = await driver.send(await driver.draft(move, landings, content))
  return outcome.kind === 'overlap' ? await driver.send(await driver.draft(move, landings, later)) : outcome
}

function someLandings(random: () => number, below: (n: number) => number): Landing[] {
  const landings: Landing[] = []
  for (const database of [DATABASE, 'people']) {
    for (const key of KEYS) {
      if (random() < 0.6) continue
      const at = random() < 0.4 ? {} : { at: below(12) }
      landings.push(
        random() < 0.25 ? remove(key, { database, ...at }) : upsert(key, { v: below(3) }, { database, ...at }),
      )
    }
  }
  return landings
}

function someQuarantined(random: () => number, below: (n: number) => number): QuarantinedRecord[] {
  return random() < 0.8
    ? []
    : [
        makeQuarantined(random() < 0.3 ? null : required(KEYS[below(KEYS.length)], 'KEYS[below(KEYS.length)]'), {
          text: `broken ${below(3)}`,
        }),
      ]
}

// ── the feed and the rows ────────────────────────────────────────────────────────────────────────────────────────────

/** Database and key → record text: the replica of a feed consumer. */
export type Replica = Map<string, string>

/** Applies entries to a replica; an entry must fit the current rows. */
export function replay(entries: readonly LogEntry[], onto: Replica = new Map()): Replica {
  const replica = new Map(onto)
  for (const { database, key, action, text, sequence } of entries) {
    const name = `${database}/${key}`
    assert.equal(
      replica.has(name),
      action !== 'created',
      `entry ${sequence} is ${action}, but ${name} does ${replica.has(name) ? '' : 'not '}exist`,
    )
    if (action === 'deleted') replica.delete(name)
    else replica.set(name, required(text, 'text'))
    assert.equal(
      text === null,
      action === 'deleted',
      `entry ${sequence}: ${action} with ${text === null ? 'no' : 'a'} record`,
    )
  }
  return replica
}

export async function currentRows(store: Store): Promise<Replica> {
  const replica: Replica = new Map()
  for (const { name, rows: count } of await store.databases()) {
    const rows = await store.rows({ database: name, limit: 1_000_000 })
    assert.equal(rows.length, count, `databases() counts ${count} rows in ${name}`)
    for (const row of rows) replica.set(`${name}/${row.key}`, row.text)
  }
  return replica
}

export function sortedEntries(replica: Replica): Array<[string, string]> {
  return [...replica].toSorted(([a], [b]) => (a < b ? -1 : 1))
}
