import { SyncError, type ErrorCode, type JsonObject, type JsonValue, type SyncContext } from '../../contract/index.ts'
import type { Auth } from '../kit/auth.ts'
import { createHttpClient, type HttpClient } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'
import { parseHash, toHex, createMalformedError, parseNumber } from './transfer.ts'

/** The URL of a node. If it contains an API key, use the name of a secret that holds the whole URL. */
export type NodeUrl = string | { readonly secret: string }

export interface BlockHeader {
  readonly number: number
  readonly hash: string
  readonly parentHash: string
  /** Milliseconds. */
  readonly timeMs: number
  /** Complete transactions if requested, otherwise hashes. */
  readonly transactions: readonly JsonValue[]
}

/** The result exceeds a limit of the node: request a smaller range. */
export class ResultTooLargeError extends Error {
  override readonly name = 'TooMuch'
}

export class JsonRpcClient {
  readonly #url: NodeUrl
  readonly #client: HttpClient
  #requests = 0

  constructor(url: NodeUrl, auth?: Auth) {
    this.#url = url
    // The base is the origin only, and the path is a link: errors show the base path but not links.
    this.#client = createHttpClient({
      baseUrl: (context) => new URL(this.#resolveUrl(context)).origin,
      ...(auth !== undefined && { auth }),
    })
  }

  async call(method: string, params: JsonValue[], context: SyncContext): Promise<JsonValue> {
    const id = ++this.#requests
    const { body } = await this.#client.post(
      this.#resolveUrl(context),
      { jsonrpc: '2.0', id, method, params },
      context,
      { answers: [400, 413] },
    )
    if (!isObject(body))
      throw new SyncError('SOURCE_INVALID', `The node answered ${method} with a response that is not JSON-RPC.`)
    if (body.error !== undefined && body.error !== null) throw toNodeError(method, body.error)
    // A cache or proxy may return the response to an earlier request.
    if (body.id !== id)
      throw new SyncError('SOURCE_INVALID', `The node answered ${method} with the response to another request.`)
    if (body.result === undefined)
      throw new SyncError('SOURCE_INVALID', `The node answered ${method} without a result.`)
    return body.result
  }

  /** Throws if the node belongs to another chain than `chainId`. */
  async readHeadBlock(context: SyncContext, chainId?: number): Promise<number> {
    if (chainId !== undefined && parseNumber(await this.call('eth_chainId', [], context), 'chain id') !== chainId)
      throw new SyncError('SOURCE_INVALID', 'The node belongs to another chain. Check its URL and `chainId`.')
    return parseNumber(await this.call('eth_blockNumber', [], context), 'block number')
  }

  /** Null if the node does not have the block. */
  async readBlock(number: number, context: SyncContext, withTransactions = false): Promise<BlockHeader | null> {
    const block = await this.call('eth_getBlockByNumber', [toHex(number), withTransactions], context)
    return block === null ? null : parseBlockHeader(block, number)
  }

  #resolveUrl(context: SyncContext): string {
    return typeof this.#url === 'string' ? this.#url : context.secrets.get(this.#url.secret)
  }
}

export function parseBlockHeader(block: JsonValue, number: number): BlockHeader {
  if (!isObject(block) || !Array.isArray(block.transactions) || parseNumber(block.number, 'block number') !== number)
    throw createMalformedError('block')
  return {
    number,
    hash: parseHash(block.hash, 'block hash'),
    parentHash: parseHash(block.parentHash, 'block hash'),
    timeMs: parseNumber(block.timestamp, 'timestamp') * 1_000,
    transactions: block.transactions,
  }
}

/** Error codes differ between nodes, so the message is classified too. */
function toNodeError(method: string, error: JsonValue): Error {
  const { code, message } = (isObject(error) ? error : {}) as JsonObject
  const text = typeof message === 'string' ? message : ''
  const number = typeof code === 'number' ? code : Number.NaN
  if (number === 429 || RATE_LIMIT_PATTERN.test(text)) return createNodeError('RATE_LIMITED', method, number)
  if (method === 'eth_getLogs' && (number === -32_005 || RESULT_SIZE_PATTERN.test(text)))
    return new ResultTooLargeError(`${method} returned too many results`)
  if (number === 401 || number === 403) return createNodeError('AUTH_REJECTED', method, number)
  if (CURSOR_PATTERN.test(text)) return createNodeError('CURSOR_REJECTED', method, number)
  // Unknown method or invalid parameters: a retry does not help.
  if (number === -32_601 || number === -32_602 || number === -32_600)
    return createNodeError('CONNECTOR_FAILED', method, number)
  return createNodeError('SOURCE_UNAVAILABLE', method, number)
}

function createNodeError(code: ErrorCode, method: string, number: number): SyncError {
  return new SyncError(
    code,
    `The node answered ${method} with ${Number.isNaN(number) ? 'an error' : `error ${number}`}.`,
  )
}

const RATE_LIMIT_PATTERN =
  /rate limit|too many requests|request (?:rate|count)|compute units|capacity|throughput|credits/i
const RESULT_SIZE_PATTERN = /too many|too large|too wide|more than|exceed|block range|response size|limit/i
const CURSOR_PATTERN = /page ?key|page token|cursor/i
