import { SyncError, type Execute, type TimeRange } from '../../contract/index.ts'
import { failover, type Failover } from '../../strategies/index.ts'
import type { ChainProviderFactory } from './chain-provider.ts'
import { asIncremental } from '../../strategies/kit/as-incremental.ts'
import { instantToMs } from '../../values/instant.ts'
import { limitRange, parseSince } from '../kit/since.ts'
import { ALL_BLOCKS } from './block-times.ts'
import { createReorgRepair } from './reorg-repair.ts'
import { transferOperation, OPERATIONS, type EvmOperation, type Transfer } from './transfer.ts'

export { alchemy, type AlchemyOptions } from './alchemy.ts'
export { etherscan, type EtherscanOptions } from './etherscan.ts'
export { rpc, type RpcOptions } from './rpc.ts'
export type { ChainProvider, ChainProviderFactory } from './chain-provider.ts'
export type { EvmOperation, Transfer } from './transfer.ts'

/** Options of `evm`. */
export interface EvmOptions {
  /** The account whose transfers are read. */
  readonly address: string
  /** In order of preference, unless their health differs. */
  readonly providers: readonly ChainProviderFactory[]
  /** The default is both. */
  readonly operations?: readonly EvmOperation[]
  readonly preferred?: string
  /** The id of the chain. Providers of another chain are rejected. */
  readonly chainId?: number
  /** The first block; with `since`, the later of both. */
  readonly startBlock?: number
  /** The start date: reading begins at the first block with this time or a later one. */
  readonly since?: string
  /** The number of newest blocks that are not read. 0 reads to the head and repairs reorganisations. */
  readonly confirmations?: number
  /** The number of newest blocks that a reorganisation may replace. */
  readonly depth?: number
  /** The deadline of one provider for a page. */
  readonly deadlineMs?: number
}

/** The transfers of one account. Pass it to `worker.sync`. */
export interface EvmStream {
  readonly mode: 'incremental'
  readonly execute: Failover<Transfer> & Pick<Execute, 'range'>
}

/**
 * Reads the transfers of an account on an EVM chain, with failover between providers:
 * `worker.sync('transfers', { database, ...evm({ address, providers: [rpc({ name: 'node', url }), …] }).transfers })`.
 */
export function evm({
  address,
  providers: factories,
  operations = OPERATIONS,
  startBlock = 0,
  confirmations = 0,
  depth = 12,
  chainId,
  preferred,
  deadlineMs,
  since: given,
}: EvmOptions): { readonly transfers: EvmStream } {
  if (!/^0x[\da-f]{40}$/i.test(address))
    throw new SyncError('SYNC_INVALID', 'evm: `address` is not a valid address. Write 0x and 40 hexadecimal digits.')
  const since = parseSince(given)
  const read = ({ from, to }: TimeRange, isRange: boolean): Failover<Transfer> => {
    const providers = factories.map((createProvider) =>
      createProvider({
        address: address.toLowerCase(),
        startBlock,
        confirmations,
        // A range reads final blocks only, because the sync repairs those that are replaced.
        confirmationsMin: isRange ? depth : 0,
        reorgDepth: depth,
        times: {
          fromMs: from === undefined ? ALL_BLOCKS.fromMs : instantToMs(from),
          toMs: to === undefined ? ALL_BLOCKS.toMs : instantToMs(to),
        },
        ...(chainId !== undefined && { chainId }),
      }),
    )
    return failover<Transfer>({
      providers,
      operations: Object.fromEntries(operations.map((name) => [name, transferOperation])),
      ...(!isRange && { repair: createReorgRepair(providers, depth) }),
      ...(preferred !== undefined && { preferred }),
      ...(deadlineMs !== undefined && { deadlineMs }),
    })
  }
  const execute = Object.assign(read(since === undefined ? {} : { from: since }, false), {
    range: (range: TimeRange) => asIncremental(read(limitRange(range, since), true)),
  })
  return { transfers: { mode: 'incremental', execute } }
}
