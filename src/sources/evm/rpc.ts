import type { JsonValue, SyncContext } from '../../contract/index.ts'
import { pagedProvider, type FetchRequest, type ProviderPage } from '../../strategies/index.ts'
import { required } from '../../values/required.ts'
import type { Auth } from '../kit/auth.ts'
import { isObject } from '../kit/classify-response.ts'
import {
  createReorgError,
  readConsistently,
  toBlockCursor,
  serializeHashes,
  type ChainProviderFactory,
  type BlockHashes,
  type ChainProviderOptions,
} from './chain-provider.ts'
import { limitToTimes } from './block-times.ts'
import { JsonRpcClient, ResultTooLargeError, type BlockHeader, type NodeUrl } from './json-rpc.ts'
import {
  parseAddress,
  parseAmount,
  parseHash,
  toHex,
  sortTransfers,
  createMalformedError,
  parseNumber,
  toTopic,
  parseTransferLog,
  TRANSFER_TOPIC,
  type Transfer,
} from './transfer.ts'

/** Options of a provider that reads a JSON-RPC node. */
export interface RpcOptions {
  readonly name: string
  readonly url: NodeUrl
  readonly auth?: Auth
  /** The maximum number of blocks per page: for log queries, and for complete blocks, which are fetched one by one. */
  readonly logBlocksMax?: number
  readonly wholeBlocksMax?: number
  readonly confirmations?: number
}

/** Reads from any node of the chain: token transfers from logs, native transfers from complete blocks. */
export function rpc(options: RpcOptions): ChainProviderFactory {
  return (reader) => {
    const {
      name,
      url,
      auth,
      logBlocksMax = 2_000,
      wholeBlocksMax = 25,
      confirmations: own = reader.confirmations,
    } = options
    const confirmations = Math.max(own, reader.confirmationsMin)
    const node = new RpcNode(new JsonRpcClient(url, auth), { ...reader, name, confirmations })
    const spans = { token: logBlocksMax, native: wholeBlocksMax }
    return {
      ...pagedProvider<Transfer>({
        name,
        supports: ['blockNumber'],
        prefers: 'blockNumber',
        fetchPage: limitToTimes(
          (request, context) => node.readPage(request, spans[request.operation as keyof typeof spans], context),
          node.rpc,
          reader,
        ),
      }),
      getBlockHash: async (block, context) => (await node.rpc.readBlock(block, context))?.hash ?? null,
    }
  }
}

class RpcNode {
  readonly rpc: JsonRpcClient
  readonly #options: ChainProviderOptions

  constructor(rpc: JsonRpcClient, options: ChainProviderOptions) {
    this.rpc = rpc
    this.#options = options
  }

  async readPage(
    { operation, cursor, own }: FetchRequest,
    spanMax: number,
    context: SyncContext,
  ): Promise<ProviderPage<Transfer>> {
    const { startBlock, confirmations, chainId } = this.#options
    const head = (await this.rpc.readHeadBlock(context, own === undefined ? chainId : undefined)) - confirmations
    // The overlap window of another provider may start before `startBlock`.
    const from = Math.max(startBlock, cursor === undefined ? 0 : Number(cursor.value))
    if (from > head) return { items: [], through: toBlockCursor(Math.max(0, head + 1)), end: true }
    for (let span = Math.min(spanMax, parseSpan(own?.metadata?.custom) ?? spanMax); ; span = Math.ceil(span / 2)) {
      const to = Math.min(from + span - 1, head)
      try {
        const { items, hashes } =
          operation === 'native'
            ? await this.#readNativeTransfers(from, to, head, context)
            : await this.#readTokenTransfers(from, to, head, context)
        // A smaller span may be needed only temporarily.
        return {
          items,
          through: toBlockCursor(to + 1),
          end: to === head,
          custom: serializeHashes(from, hashes, { span: Math.min(spanMax, span * 2) }),
        }
      } catch (error) {
        if (!(error instanceof ResultTooLargeError) || from === to) throw error
      }
    }
  }

  async #readTokenTransfers(
    from: number,
    to: number,
    head: number,
    context: SyncContext,
  ): Promise<{ items: Transfer[]; hashes: BlockHashes }> {
    const { address, reorgDepth: depth } = this.#options
    const { value, hashes } = await readConsistently(
      { from, to, head, reorgDepth: depth },
      async (block) => (await this.rpc.readBlock(block, context))?.hash ?? null,
      async () => {
        const range = { fromBlock: toHex(from), toBlock: toHex(to) }
        const sent = await this.#readLogs({ ...range, topics: [TRANSFER_TOPIC, toTopic(address)] }, context)
        const received = await this.#readLogs({ ...range, topics: [TRANSFER_TOPIC, null, toTopic(address)] }, context)
        const headers = await this.#readHeaders([...sent, ...received], context)
        const transfers = [...sent, ...received].flatMap(
          (log) =>
            parseTransferLog(log, (block) => required(headers.get(block), `The header of block ${block}`).timeMs) ?? [],
        )
        return new Map(transfers.map((transfer) => [`${transfer.block} ${transfer.logIndex}`, transfer]))
      },
    )
    return { items: sortTransfers([...value.values()]), hashes }
  }

  async #readLogs(filter: Record<string, JsonValue>, context: SyncContext): Promise<JsonValue[]> {
    const logs = await this.rpc.call('eth_getLogs', [filter], context)
    if (!Array.isArray(logs)) throw createMalformedError('list of logs')
    return logs
  }

  /** Reads the blocks of the logs. Their hashes must match the hashes in the logs. */
  async #readHeaders(logs: readonly JsonValue[], context: SyncContext): Promise<Map<number, BlockHeader>> {
    const headers = new Map<number, BlockHeader>()
    for (const log of logs) {
      if (!isObject(log)) throw createMalformedError('log')
      const number = parseNumber(log.blockNumber, 'block number')
      const header = headers.get(number) ?? (await this.rpc.readBlock(number, context))
      if (header === null || header.hash !== parseHash(log.blockHash, 'block hash')) throw createReorgError()
      headers.set(number, header)
    }
    return headers
  }

  async #readNativeTransfers(
    from: number,
    to: number,
    head: number,
    context: SyncContext,
  ): Promise<{ items: Transfer[]; hashes: BlockHashes }> {
    const { address, reorgDepth: depth } = this.#options
    const items: Transfer[] = []
    const hashes: Array<[number, string]> = []
    let parent: string | undefined
    const before = from > 0 && from - 1 > head - depth ? await this.rpc.readBlock(from - 1, context) : null
    if (before !== null) hashes.push([before.number, (parent = before.hash)])
    for (let number = from; number <= to; number++) {
      const block = await this.rpc.readBlock(number, context, true)
      if (block === null || (parent !== undefined && block.parentHash !== parent)) throw createReorgError()
      parent = block.hash
      if (number > head - depth) hashes.push([number, block.hash])
      for (const transaction of block.transactions) {
        const transfer = parseNativeTransfer(transaction, block)
        if (
          transfer !== null &&
          (transfer.from === address || transfer.to === address) &&
          (await this.#hasSucceeded(transfer, block, context))
        )
          items.push(transfer)
      }
    }
    return { items, hashes }
  }

  async #hasSucceeded({ hash }: Transfer, block: BlockHeader, context: SyncContext): Promise<boolean> {
    const receipt = await this.rpc.call('eth_getTransactionReceipt', [hash], context)
    if (
      !isObject(receipt) ||
      receipt.blockHash === undefined ||
      parseHash(receipt.blockHash, 'block hash') !== block.hash
    )
      throw createReorgError()
    return parseNumber(receipt.status, 'status') === 1
  }
}

/** Null for a zero amount. */
function parseNativeTransfer(transaction: JsonValue, block: BlockHeader): Transfer | null {
  if (!isObject(transaction)) throw createMalformedError('transaction')
  const value = parseAmount(transaction.value, 'amount')
  if (value === '0') return null
  const { to } = transaction
  return {
    kind: 'native',
    hash: parseHash(transaction.hash, 'transaction hash'),
    logIndex: null,
    block: block.number,
    timeMs: block.timeMs,
    from: parseAddress(transaction.from, 'sender'),
    to: to === null || to === undefined ? null : parseAddress(to, 'recipient'),
    value,
    contract: null,
  }
}

function parseSpan(custom: JsonValue | undefined): number | null {
  return isObject(custom) && typeof custom.span === 'number' && custom.span >= 1 ? custom.span : null
}
