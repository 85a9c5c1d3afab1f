import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../../src/contract/index.ts'
import type { ProviderBatch, PaginationCursor } from '../../../src/strategies/index.ts'
import { serializeHashes, type ChainProvider } from '../../../src/sources/evm/chain-provider.ts'
import { createReorgRepair } from '../../../src/sources/evm/reorg-repair.ts'
import type { Transfer } from '../../../src/sources/evm/source.ts'
import { contextOf } from '../../strategies/failover/provider-fixture.ts'

const transfer = (block: number, hash: string): Transfer => ({
  kind: 'native',
  hash,
  logIndex: null,
  block,
  timeMs: block,
  from: '0x',
  to: null,
  value: '1',
  contract: null,
})
const at = (value: number): PaginationCursor => ({ type: 'blockNumber', value })
const page = (
  seen: Transfer[],
  primary: PaginationCursor,
  more: { hashes?: Array<[number, string]>; from?: number; isComplete?: boolean } = {},
): ProviderBatch<Transfer> => ({
  operationType: 'native',
  items: seen,
  fetchedItems: seen,
  isTruncated: false,
  isComplete: more.isComplete ?? false,
  stats: { fetched: 0, deduplicated: 0, yielded: 0 },
  cursor: {
    primary,
    lastTransactionId: '',
    totalFetched: 0,
    metadata: { providerName: 'node', updatedAt: 1, custom: serializeHashes(more.from ?? 0, more.hashes ?? []) },
  },
})
const chainOf = (hashes: Record<number, string>): ChainProvider =>
  ({ name: 'node', getBlockHash: async (block: number) => hashes[block] ?? null }) as unknown as ChainProvider
const repairOn = (hashes: Record<number, string>, depth = 4): ReturnType<typeof createReorgRepair> =>
  createReorgRepair([chainOf(hashes)], depth)
const check = (hashes: Record<number, string>, kept: JsonValue): Promise<unknown> =>
  repairOn(hashes).check({ operation: 'native', provider: 'node', kept }, contextOf())

describe('replaced blocks', () => {
  const kept: JsonValue = {
    blocks: [
      [7, 'a7', 'k7'],
      [8, 'a8', 'k8'],
      [9, 'a9'],
    ],
  }

  test('XC38 are found by the newest hash and read again from the last common block', async () => {
    expect(await check({ 7: 'a7', 8: 'a8', 9: 'a9' }, kept)).toBeNull()
    expect(await check({ 7: 'a7', 8: 'b8', 9: 'b9' }, kept)).toEqual({
      from: at(8),
      kept: { blocks: [[7, 'a7', 'k7']], suspects: { until: 9, keys: ['k8'] } },
    })
    expect(await check({ 7: 'b7', 8: 'b8', 9: 'b9' }, kept)).toMatchObject({
      from: at(7),
      kept: { blocks: [], suspects: { keys: ['k7', 'k8'] } },
    })
  })

  test('a provider without the blocks proves nothing', async () => {
    expect(await check({ 7: 'a7' }, kept)).toBeNull()
    expect(await check({}, kept)).toBeNull()
    expect(await check({ 7: 'a7', 8: 'b8' }, kept)).toMatchObject({ from: at(8) })
  })

  test('XC38 keys that are not found again after the complete re-read are deleted, and not before', () => {
    const suspecting: JsonValue = { blocks: [], suspects: { until: 9, keys: ['k7', 'k8'] } }
    const first = repairOn({}).settle(page([transfer(8, 'k7')], at(9)), suspecting)
    expect(first).toMatchObject({ changes: [], kept: { suspects: { until: 9, keys: ['k8'] } } })
    expect(repairOn({}).settle(page([], at(10)), first.kept)).toEqual({
      changes: [{ type: 'delete', key: 'k8' }],
      kept: { blocks: [] },
    })
    expect(repairOn({}).settle(page([], at(8), { isComplete: true }), first.kept).changes).toEqual([])
    expect(
      repairOn({}).settle(page([], at(8), { isComplete: true, from: 7, hashes: [[7, 'b7']] }), first.kept).changes,
    ).toEqual([{ type: 'delete', key: 'k8' }])
  })

  test('a provider that lacks a transfer of the same block has a gap, and the row stays', () => {
    const { changes, kept: after } = repairOn({}).settle(
      page([], at(10), {
        from: 7,
        hashes: [
          [7, 'a7'],
          [8, 'a8'],
          [9, 'a9'],
        ],
      }),
      kept,
    )
    expect(changes).toEqual([])
    expect(after).toEqual(kept)
  })

  test('XC38 if the previous page belongs to another chain, it is read again too', async () => {
    const { kept: after } = repairOn({}).settle(
      page([transfer(10, 'k10')], at(11), {
        from: 10,
        hashes: [
          [9, 'b9'],
          [10, 'b10'],
        ],
      }),
      kept,
    )
    expect(after).toMatchObject({
      blocks: [
        [7, 'a7', 'k7'],
        [8, 'a8', 'k8'],
        [9, ''],
        [10, 'b10', 'k10'],
      ],
    })
    expect(await check({ 8: 'a8', 10: 'b10' }, after!)).toMatchObject({ from: at(9) })
  })

  test('only the newest blocks are kept', () => {
    const { kept: after } = repairOn({}, 2).settle(
      page([transfer(10, 'k10')], at(11), {
        from: 10,
        hashes: [
          [9, 'a9'],
          [10, 'a10'],
        ],
      }),
      kept,
    )
    expect(after).toEqual({
      blocks: [
        [9, 'a9'],
        [10, 'a10', 'k10'],
      ],
    })
  })
})
