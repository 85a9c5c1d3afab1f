import { expect, test } from 'vitest'
import { readSnapshot } from '../../src/testing/store-cases/harness.ts'
import type { Build } from './build.ts'
import { Child } from './child.ts'
import { readStoreFacts } from './facts.ts'
import type { ProcessStoreFixture } from './process-store-fixture.ts'

const LEASE_MS = 3_000

export function describeTakeover(build: () => Build, stand: () => ProcessStoreFixture): void {
  test('XA11 a runner frozen beyond its lease lands nothing after another has taken over', async () => {
    const url = await stand().fresh()
    const frozen = await startHolder(build(), url, { name: 'frozen', leaseTtlMs: LEASE_MS })
    const heir = await takeOver(build(), url, () => frozen.signal('SIGSTOP'))
    const before = await stand().look(url, readSnapshot)
    frozen.tell('go')
    frozen.signal('SIGCONT')
    await expectRefused(frozen)
    expect(await stand().look(url, readSnapshot)).toEqual(before)
    const facts = await stand().look(url, readStoreFacts)
    // The successor continued where the frozen one had stopped.
    expect(heir).toMatchObject({ resumed: true })
    expect(writers(facts.rows['people']!)).toEqual([
      ...Array<string>(20).fill('frozen'),
      ...Array<string>(40).fill('heir'),
    ])
  })

  test('XA12 a runner whose event loop was blocked beyond its lease has its commit refused', async () => {
    const url = await stand().fresh()
    const blocked = await startHolder(build(), url, { name: 'blocked', leaseTtlMs: LEASE_MS, blocks: true })
    await takeOver(build(), url, () => blocked.tell('block'))
    const before = await stand().look(url, readSnapshot)
    blocked.tell('go')
    await expectRefused(blocked)
    expect(await stand().look(url, readSnapshot)).toEqual(before)
    const facts = await stand().look(url, readStoreFacts)
    expect(new Set(writers(facts.rows['people']!).slice(20))).toEqual(new Set(['heir']))
  })

  test('XB1 two runners of one sync: one holds it, and the other sends no request to the source', async () => {
    const url = await stand().fresh()
    const first = await startHolder(build(), url, { name: 'first' })
    const second = await new Child(build(), 'run-sync.mjs', { input: { url, name: 'second' } }).ended
    expect(second.said.find(({ event }) => event === 'result')).toMatchObject({
      stopReason: 'held',
      error: { code: 'LEASE_HELD' },
    })
    expect(second.said.filter(({ event }) => event === 'asked')).toEqual([])
    first.tell('go')
    expect(await first.until('result')).toMatchObject({ stopReason: 'complete' })
    await first.ended
  })

  test('XB17 ten processes open a store that does not exist yet: one schema, and all of them land', async () => {
    const urls = await Promise.all(Array.from({ length: 5 }, () => stand().fresh()))
    const names = Array.from({ length: 10 }, (_, index) => `runner-${index}`)
    const children = names.map((name) => new Child(build(), 'open-at-once.mjs', { input: { urls, name } }))
    await Promise.all(children.map((child) => child.until('ready')))
    for (const child of children) child.tell('go')
    const ended = await Promise.all(children.map((child) => child.ended))
    const results = urls.map(() => ({ event: 'result', stopReason: 'complete', error: null }))
    expect(ended.map(({ code, stderr, said }) => ({ code, stderr, results: said.slice(1) }))).toEqual(
      names.map(() => ({ code: 0, stderr: '', results })),
    )
    for (const url of urls)
      expect((await stand().look(url, readStoreFacts)).rows['people']!.map(([key]) => key)).toEqual(names)
  })
}

/** Between two pages: no statement is running in the store, and the third page has just been requested. */
async function startHolder(build: Build, url: string, input: Readonly<Record<string, unknown>>): Promise<Child> {
  const child = new Child(build, 'run-sync.mjs', { input: { url, holdAt: 3, ...input } })
  await child.until('holding')
  return child
}

/** The successor waits before the holder is kept from renewing its lease. */
async function takeOver(build: Build, url: string, keepFromRenewing: () => void): Promise<unknown> {
  const heir = new Child(build, 'run-sync.mjs', { input: { url, name: 'heir', again: true } })
  const refusals = (): number => heir.said.filter(({ event }) => event === 'held').length
  await heir.until('held')
  keepFromRenewing()
  const before = refusals()
  const result = await heir.until('result')
  expect(result).toMatchObject({ stopReason: 'complete' })
  // The wait was for the lease to expire: a frozen process still exists.
  expect(refusals()).toBeGreaterThan(before)
  await heir.ended
  return result
}

async function expectRefused(child: Child): Promise<void> {
  const { said, code } = await child.ended
  expect({ code, result: said.find(({ event }) => event === 'result') }).toMatchObject({
    code: 0,
    result: { stopReason: 'lease_lost', error: { code: 'LEASE_LOST' } },
  })
}

function writers(rows: ReadonlyArray<readonly [key: string, text: string, sequence: number]>): string[] {
  return rows.map(([, text]) => (JSON.parse(text) as { by: string }).by)
}
