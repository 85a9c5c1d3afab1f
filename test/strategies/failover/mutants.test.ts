import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SyncError } from '../../../src/contract/index.ts'
import type * as Strategies from '../../../src/strategies/index.ts'
import { patchText } from '../../planted/patch-text.ts'
import { contextOf, createUnavailableError, OPERATION, txs, type Tx } from './provider-fixture.ts'

type Built = Pick<typeof Strategies, 'failover' | 'pagedProvider'>
type Answers = ReadonlyArray<Strategies.ProviderPage<Tx> | Error>

/** A defect of the design this was made after, planted back, and what must not happen. */
interface Defect {
  readonly name: string
  readonly file: string
  readonly find: string
  readonly replace: string
  /** Throws, or is false, when the defect is there. */
  readonly holds: (built: Built) => Promise<boolean>
}

const DEFECTS: readonly Defect[] = [
  {
    name: 'ED1 a provider with tokens of its own is shut out by a foreign one',
    file: 'resumption.ts',
    find: `  const cursor = pickBestCursor(provider, state)
`,
    replace: `  if (state.primary.type === 'pageToken' && provider.supports.includes('pageToken') && state.primary.providerName !== provider.name) return null
  const cursor = pickBestCursor(provider, state)
`,
    holds: async (built) => {
      const north = scripted(built, 'north', [{ items: txs(1, 3), next: 'n/3' }, createUnavailableError()])
      const { ids } = await drain(built, [north, scripted(built, 'south', [{ items: txs(1, 5), end: true }])])
      return ids.length === 5
    },
  },
  {
    name: 'ED2 a page that says neither end nor way on is asked for again and again',
    file: 'paged-provider.ts',
    find: 'if (isSameCursor(current.cursor ?? START_CURSOR, next.primary) &&',
    replace: 'if (current.cursor === null &&',
    holds: async (built) => {
      const stuck = scripted(
        built,
        'north',
        Array.from({ length: 40 }, () => ({ items: [] })),
      )
      await drain(built, [stuck])
      return stuck.requests() === 1
    },
  },
  {
    name: 'ED3 an empty end writes the beginning over a good position',
    file: 'build-cursor.ts',
    find: 'if (from === undefined) return { primary: cursor ?? START_CURSOR,',
    replace: 'if (name !== null) return { primary: START_CURSOR,',
    holds: async (built) => {
      const first = await drain(built, [scripted(built, 'north', [{ items: txs(1, 8), end: true }])])
      const { state, error } = await drain(
        built,
        [scripted(built, 'north', [{ items: [], end: true }])],
        first.state,
        2,
      )
      return error === null && state!.cursors.token!.primary.value === 8 && state!.cursors.token!.totalFetched === 8
    },
  },
  {
    name: "ED4 the window is applied to a provider's own position as well",
    file: 'resumption.ts',
    find: 'if (isSameProvider || !isComparableCursor(cursor))',
    replace: 'if (!isComparableCursor(cursor))',
    holds: async (built) => {
      const first = await drain(built, [scripted(built, 'north', [{ items: txs(1, 8), end: true }])])
      const again = scripted(built, 'north', [{ items: [], end: true }])
      await drain(built, [again], first.state, 2)
      return again.asked()[0]?.cursor?.value === 8
    },
  },
  {
    name: 'ED5 pages of only duplicates are not committed, and their progress is lost',
    file: 'paged-provider.ts',
    find: 'if (checked.fault === null || items.length > 0) yield',
    replace: 'if (items.length > 0 || cursor.metadata!.isComplete === true) yield',
    holds: async (built) => {
      const first = await drain(built, [
        scripted(built, 'north', [{ items: txs(1, 1), next: 'n/1' }, createUnavailableError()]),
      ])
      const { state } = await drain(
        built,
        [
          scripted(built, 'north', [
            { items: txs(1, 1), next: 'n/2' },
            { items: txs(1, 1), next: 'n/3' },
            createUnavailableError(),
          ]),
        ],
        first.state,
      )
      return state!.cursors.token!.primary.value === 'n/3'
    },
  },
  {
    name: 'a refusal is landed as an empty page',
    file: 'failover.ts',
    find: 'if (step.isRateLimited !== true) return step',
    replace: 'return step',
    holds: async (built) => {
      const strategy = built.failover<Tx>({
        providers: ['north', 'south'].map((name) => scripted(built, name, [slow()])),
        operations: { token: OPERATION },
      })
      return await strategy(undefined, contextOf()).then(
        () => false,
        (error: unknown) => (error as SyncError).code === 'RATE_LIMITED',
      )
    },
  },
  {
    name: 'a provider that asked to wait is asked again when the step is repeated',
    file: 'failover-run.ts',
    find: 'this.rateLimitedProviders.size === 0 ? state',
    replace: 'this.rateLimitedProviders.size >= 0 ? state',
    holds: async (built) => {
      const north = scripted(built, 'north', [slow(), slow()])
      const strategy = built.failover<Tx>({
        providers: [north, scripted(built, 'south', [slow(), slow()])],
        operations: { token: OPERATION },
      })
      const context = contextOf()
      for (let step = 0; step < 2; step++) await strategy(undefined, context).catch(() => undefined)
      return north.requests() === 1
    },
  },
  {
    name: 'a transaction that was read ahead of the position is looked for before it',
    file: 'resumption.ts',
    find: ' && last <= from.value',
    replace: '',
    holds: async (built) => {
      const north = scripted(built, 'north', [
        { items: txs(1, 30), through: { type: 'blockNumber', value: 5 }, next: 'n/2' },
        createUnavailableError(),
      ])
      const south = scripted(built, 'south', [
        { items: txs(3, 10), through: { type: 'blockNumber', value: 11 } },
        { items: txs(11, 30), end: true },
      ])
      await drain(built, [north, south])
      return south.asked()[1]?.cursor?.value === 11
    },
  },
  {
    name: 'ED6 writing one operation overwrites what others had written meanwhile',
    file: 'cursors.ts',
    find: 'return { ...map, [operation]: next }',
    replace: 'return { [operation]: next }',
    holds: async (built) => {
      const provider = scripted(built, 'north', [
        { items: txs(1, 1), end: true },
        { items: txs(1, 2), end: true },
      ])
      const { state } = await drain(built, [provider], undefined, 1, ['normal', 'token'])
      return state!.cursors.normal !== undefined && state!.cursors.token !== undefined
    },
  },
]

describe('every defect of the design is found when it is planted back', () => {
  const home = mkdtempSync(join(tmpdir(), 'tidemark-failover-'))
  beforeAll(() => {
    for (const [at, defect] of DEFECTS.entries()) plant(at, defect)
  })
  afterAll(() => rmSync(home, { recursive: true, force: true }))

  test.each(DEFECTS.map((defect, at) => [defect.name, defect, at] as const))('%s', async (_, { holds }, at) => {
    expect(await held(holds, (await import('../../../src/strategies/index.ts')) as Built), 'the code as it is').toBe(
      true,
    )
    expect(
      await held(holds, (await import(join(home, String(at), 'strategies/index.ts'))) as Built),
      'with the defect',
    ).toBe(false)
  })

  function plant(at: number, { file, find, replace }: Defect): void {
    for (const folder of ['contract', 'values', 'strategies'])
      cpSync(resolve(import.meta.dirname, '../../../src', folder), join(home, String(at), folder), { recursive: true })
    const path = join(home, String(at), 'strategies/failover', file)
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, patchText(text, find, replace))
  }
})

function slow(): SyncError {
  return new SyncError('RATE_LIMITED', 'slow down', { retryAfterMs: 60_000 })
}

async function held(holds: Defect['holds'], built: Built): Promise<boolean> {
  try {
    return await holds(built)
  } catch {
    return false
  }
}

type Watched = Strategies.Provider<Tx> & { requests(): number; asked(): Strategies.FetchRequest[] }

function scripted(built: Built, name: string, answers: Answers): Watched {
  const asked: Strategies.FetchRequest[] = []
  const provider = built.pagedProvider<Tx>({
    name,
    supports: ['pageToken', 'blockNumber'],
    prefers: 'blockNumber',
    fetchPage: async (request) => {
      const answer = answers[asked.push(request) - 1] ?? createUnavailableError()
      if (answer instanceof Error) throw answer
      return answer
    },
  })
  return { ...provider, requests: () => asked.length, asked: () => asked }
}

/** Reads to the end, or to the error that stands for all; at most fifty batches. */
async function drain(
  built: Built,
  providers: readonly Strategies.Provider<Tx>[],
  from?: Strategies.FailoverState,
  cycle = 1,
  operations: readonly string[] = ['token'],
): Promise<{ ids: string[]; state: Strategies.FailoverState | undefined; error: string | null }> {
  const strategy = built.failover<Tx>({
    providers,
    operations: Object.fromEntries(operations.map((name) => [name, OPERATION])),
  })
  const ids: string[] = []
  let state = from
  let batches = 0
  for await (const result of strategy.stream(from, contextOf({ cycle }))) {
    if (!result.ok) return { ids, state, error: result.error.code }
    ids.push(...result.value.items.map(({ id }) => id))
    state = JSON.parse(JSON.stringify(result.value.state)) as Strategies.FailoverState
    if (++batches > 50) break
  }
  return { ids, state, error: null }
}
