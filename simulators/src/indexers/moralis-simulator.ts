import type { ApiCall } from '../kit/api-simulator.ts'
import { jsonResponse } from '../kit/json-response.ts'
import type { Fields } from '../kit/simulator.ts'
import { comparePositions, involvesAddress, type Movement, type ChainPosition } from './chain-view.ts'
import { toHex, IndexerSimulator } from './indexer-simulator.ts'
import { required } from '../kit/required.ts'

interface MoralisCursor {
  readonly after: ChainPosition
  readonly page: number
  /** The query it belongs to. */
  readonly queryText: string
}

const LIMIT_MAX = 100

/** Native transactions and token transfers of a wallet, newest first by default, with cursors that do not expire. */
export class MoralisSimulator extends IndexerSimulator {
  protected respondToQuery(call: ApiCall): Response {
    const query = call.url.searchParams
    const match = /^\/api\/v2\.2\/(0x[0-9a-fA-F]{40})(\/erc20\/transfers)?$/.exec(call.url.pathname)
    if (match === null) return errorResponse(404, 'Not Found')
    const key = call.request.headers.get('x-api-key')
    if (key === null || (this.token !== undefined && key !== this.token)) return this.unauthorized()
    const chain = query.get('chain') ?? '0x1'
    if (chain !== toHex(this.chainId)) return errorResponse(400, `chain must be a valid enum value: ${chain}`)
    const limit = Number(query.get('limit') ?? LIMIT_MAX)
    if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT_MAX)
      return errorResponse(400, `limit must not be greater than ${LIMIT_MAX}`)
    const order = (query.get('order') ?? 'DESC').toUpperCase()
    const kind = match[2] === undefined ? 'external' : 'token'
    const from = Number(query.get('from_block') ?? 0)
    const to = Number(query.get('to_block') ?? Infinity)
    const question = JSON.stringify([match[0].toLowerCase(), order, from, String(to)])
    const text = query.get('cursor')
    const cursor = text === null || text === '' ? undefined : decodeCursor(text)
    if (cursor === null || call.expiredToken || (cursor !== undefined && cursor.queryText !== question))
      return errorResponse(400, 'cursor is not valid')

    const sign = order === 'ASC' ? 1 : -1
    const address = required(match[1], 'match[1]').toLowerCase()
    const left = this.view
      .movements([kind])
      .filter(
        (movement) =>
          involvesAddress(movement, address) &&
          movement.block.number >= from &&
          movement.block.number <= to &&
          (cursor === undefined || sign * comparePositions(movement.position, cursor.after) > 0),
      )
      .toSorted((a, b) => sign * comparePositions(a.position, b.position))
    const shown = left.slice(0, call.shortPage ? Math.ceil(limit / 2) : limit)
    const more = call.endFlagOverride === undefined ? left.length > shown.length : call.endFlagOverride === 'more'
    const page = cursor === undefined ? 0 : cursor.page + 1
    const after = shown.at(-1)?.position ?? cursor?.after ?? ([sign * Number.MAX_SAFE_INTEGER, 0, 0, 0] as const)
    return jsonResponse({
      page,
      page_size: limit,
      cursor: more ? encodeCursor({ after, page, queryText: question }) : null,
      result: shown.map(renderRow),
    })
  }

  protected rateLimited(retryAfter: string | undefined): Response {
    return jsonResponse(
      { message: 'Rate limit exceeded.' },
      429,
      retryAfter === undefined ? {} : { 'retry-after': retryAfter },
    )
  }

  protected unauthorized(): Response {
    return errorResponse(401, 'Token is invalid format')
  }

  protected serverError(status: number): Response {
    return errorResponse(status, 'Service Unavailable')
  }
}

function renderRow(movement: Movement): Fields {
  const { block, transaction, from, to, value } = movement
  const common = {
    from_address: from,
    to_address: to,
    value: String(value),
    block_number: String(block.number),
    block_hash: block.hash,
    block_timestamp: new Date(block.timestamp * 1_000).toISOString(),
  }
  if (movement.kind !== 'token')
    return {
      hash: transaction.hash,
      nonce: String(transaction.nonce),
      transaction_index: String(transaction.index),
      gas: '21000',
      gas_price: '1000000000',
      receipt_gas_used: '21000',
      receipt_status: transaction.failed ? '0' : '1',
      input: '0x',
      ...common,
    }
  const { token } = movement
  return {
    token_name: token.name,
    token_symbol: token.symbol,
    token_logo: null,
    token_decimals: String(token.decimals),
    address: token.contract,
    transaction_hash: transaction.hash,
    transaction_index: transaction.index,
    log_index: token.logIndex,
    possible_spam: false,
    verified_contract: true,
    ...common,
  }
}

function encodeCursor(cursor: MoralisCursor): string {
  return Buffer.from(JSON.stringify(cursor)).toString('base64url')
}

/** Null for an invalid cursor. */
function decodeCursor(text: string): MoralisCursor | null {
  try {
    const cursor = JSON.parse(Buffer.from(text, 'base64url').toString()) as Partial<MoralisCursor>
    return Array.isArray(cursor.after) && cursor.after.length === 4 ? (cursor as MoralisCursor) : null
  } catch {
    return null
  }
}

function errorResponse(status: number, message: string): Response {
  return jsonResponse({ message }, status)
}
