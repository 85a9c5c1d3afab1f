import { describe, expect, test, vi } from 'vitest'
import { describeStore, runStoreCase, type TestRunner } from '../../src/testing/describe-store.ts'
import { storeCases } from '../../src/testing/store-cases/index.ts'
import { softDeleteCases } from '../../src/testing/store-cases/soft-deletes.ts'
import { openHarness } from './sqlite-harness.ts'

interface Registered {
  readonly name: string
  run(context?: unknown): Promise<void>
}

function recorder(): TestRunner & { readonly suites: string[]; readonly tests: Registered[] } {
  const [suites, tests]: [string[], Registered[]] = [[], []]
  return {
    suites,
    tests,
    describe(name, body) {
      suites.push(name)
      body()
    },
    test: (name, run) => tests.push({ name, run }),
  }
}

describe('describeStore', () => {
  test('registers every case once, each under a name of its own', () => {
    const runner = recorder()
    describeStore('mine', openHarness, { runner })
    expect(runner.suites).toEqual(['mine store'])
    expect(runner.tests.map(({ name }) => name)).toEqual(storeCases.map(({ name }) => name))
    expect(new Set(storeCases.map(({ name }) => name)).size).toBe(storeCases.length)
  })

  test('registers with the globals of a test framework when no runner is given', () => {
    const runner = recorder()
    vi.stubGlobal('describe', runner.describe)
    vi.stubGlobal('test', runner.test)
    try {
      describeStore('mine', openHarness)
    } finally {
      vi.unstubAllGlobals()
    }
    expect(runner.tests).toHaveLength(storeCases.length)
  })

  test('skips only what the harness does not support, and says why', async () => {
    const runner = recorder()
    const print = vi.spyOn(console, 'info').mockImplementation(() => {})
    describeStore(
      'mine',
      async () => {
        const { supports: _, ...harness } = await openHarness()
        return harness
      },
      { runner },
    )
    const skipped: string[] = []
    try {
      for (const { needs } of storeCases.filter(
        (storeCase, n, all) => all.findIndex((other) => other.needs === storeCase.needs) === n,
      )) {
        const found = runner.tests[storeCases.findIndex((storeCase) => storeCase.needs === needs)]!
        await found.run({ skip: (reason: string) => skipped.push(reason) })
      }
      expect(skipped.toSorted()).toEqual([
        expect.stringContaining('the harness offers no `supports.crashDuringCommit`'),
        expect.stringContaining('the harness does not declare `supports.notifies`'),
        expect.stringContaining(
          'the store does not declare `supportsSoftDeletes`, or the harness offers no `supports.select`',
        ),
        expect.stringContaining('the harness offers no `supports.select`'),
      ])
      expect(print).toHaveBeenCalledTimes(4)
    } finally {
      print.mockRestore()
    }
  })

  test('skips the cases about kept rows for a store that does not keep any', async () => {
    const reasons = await Promise.all(
      softDeleteCases.map((storeCase) =>
        runStoreCase(storeCase, async () => {
          const { store, ...harness } = await openHarness()
          const { supportsSoftDeletes: _, ...without } = store
          return { ...harness, store: without }
        }),
      ),
    )
    expect(new Set(reasons)).toEqual(
      new Set([expect.stringContaining('the store does not declare `supportsSoftDeletes`')]),
    )
  })
})
