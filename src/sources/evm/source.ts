import { SyncError } from '../../contract/index.ts'
import { failover, type Failover } from '../../strategies/index.ts'
import type { ChainProviderFactory } from './chain-provider.ts'
import { createReorgRepair } from './reorg-repair.ts'
import { transferOperation, OPERATIONS, type EvmOperation, type Transfer } from './transfer.ts'

export { alchemy, type AlchemyOptions } from './alchemy.ts'
export { etherscan, type EtherscanOptions } from './etherscan.ts'
export { rpc, type RpcOptions } from './rpc.ts'
export type { ChainProvider, ChainProviderFactory } from './chain-provider.ts'
export type { EvmOperation, Transfer } from './transfer.ts'

export interface EvmOptions {
  /** The account whose transfers are read. */
  readonly address: string
  /** In the order in which they are asked while nothing else tells them apart. */
  readonly providers: readonly ChainProviderFactory[]
  /** Both unless said otherwise. */
  readonly operations?: readonly EvmOperation[]
  readonly preferred?: string
  /** Which chain it is: a provider of another one is then not believed. */
  readonly chainId?: number
  readonly startBlock?: number
  /** So many of the newest blocks are left alone; 0 reads to the head, and repairs what is reorganised. */
  readonly confirmations?: number
  /** How many of the newest blocks may still be replaced by others. */
  readonly depth?: number
  /** How long one provider may take for a page. */
  readonly deadlineMs?: number
}

export interface EvmStream {
  readonly mode: 'incremental'
  readonly execute: Failover<Transfer>
}

/**
 * The transfers of an account on an EVM chain, from whoever can tell them:
 * `worker.sync('transfers', { database, ...evm({ address, providers: [rpc({ name: 'node', url }), …] }).transfers })`.
 */
export function evm({ address, providers: readers, operations = OPERATIONS, startBlock = 0, confirmations = 0, depth = 12, chainId, preferred, deadlineMs }: EvmOptions): { readonly transfers: EvmStream } {
  if (!/^0x[\da-f]{40}$/i.test(address)) throw new SyncError('SYNC_INVALID', 'evm: `address` is not an address of twenty bytes.')
  const providers = readers.map((reader) => reader({ address: address.toLowerCase(), startBlock, confirmations, reorgDepth: depth, ...(chainId !== undefined && { chainId }) }))
  const execute = failover<Transfer>({
    providers,
    operations: Object.fromEntries(operations.map((name) => [name, transferOperation])),
    repair: createReorgRepair(providers, depth),
    ...(preferred !== undefined && { preferred }),
    ...(deadlineMs !== undefined && { deadlineMs }),
  })
  return { transfers: { mode: 'incremental', execute } }
}
