import type { ChainReader } from '../../sources/evm/source.ts'
import { COUNT, given, KNOWN, object, SECRET, TEXT, type Connector } from './connector.ts'
import { when } from './when.ts'

const BLOCKS = { type: 'integer', minimum: 0 } as const

const PROVIDER = {
  ...object({
    kind: { enum: ['rpc', 'alchemy', 'etherscan'] },
    name: TEXT,
    url: { ...TEXT, description: 'where the node answers; ${NAME} where the address itself holds its key' },
    api_key: SECRET, base_url: TEXT, confirmations: BLOCKS, page_size: COUNT,
  }, ['kind', 'name']),
  allOf: [when('kind', 'rpc', { required: ['url'] }), when('kind', 'alchemy', { required: ['url'] }), when('kind', 'etherscan', { required: ['api_key'] })],
}

/** The transfers of an account on a chain, from whoever of the providers can tell them. */
export const evm: Connector = {
  isFollowed: true,
  isListed: false,
  config: object({ providers: { type: 'array', minItems: 1, items: PROVIDER }, preferred: TEXT, chain_id: COUNT, start_block: BLOCKS, confirmations: BLOCKS, depth: COUNT }, ['providers']),
  stream: {
    required: { required: ['options'] },
    properties: {
      options: object({
        address: { type: 'string', pattern: '^0x[0-9a-fA-F]{40}$', description: 'the account: 0x and forty digits, in quotes' },
        operations: { type: 'array', minItems: 1, uniqueItems: true, items: { enum: ['native', 'token'] } },
        start_block: BLOCKS,
      }, ['address']),
      key: KNOWN, cursor: KNOWN, select: KNOWN,
      safety_window: { not: {}, description: 'of this connector: `confirmations` leave the newest blocks alone, and `depth` of them are repaired when the chain is reorganised' },
    },
  },
  async open({ providers, preferred, chain_id: chainId, start_block: startBlock, confirmations, depth }) {
    const { evm: open, ...kinds } = await import('../../sources/evm/source.ts')
    const readers = providers.map((provider: any) => readerOf(provider, kinds))
    const shared = { providers: readers, ...given({ preferred, chainId, confirmations, depth }) }
    return {
      stream({ options = {} }) {
        const { address, operations, start_block: from = startBlock } = options as any
        return open({ ...shared, address, ...given({ operations, startBlock: from }) }).transfers
      },
    }
  },
  // Whose transfers is for the manifest to say: a chain has as many accounts as there are numbers.
  discover: async () => [{ id: 'transfers', key: ['transactionHash', 'logIndex'], cursor: 'blockNumber', candidates: ['blockNumber', 'timestamp'] }],
}

function readerOf({ kind, name, url, api_key: apiKey, base_url: baseUrl, confirmations, page_size: pageSize }: any, kinds: Omit<typeof import('../../sources/evm/source.ts'), 'evm'>): ChainReader {
  switch (kind) {
    case 'etherscan':
      return kinds.etherscan({ name, apiKey, ...given({ baseUrl, confirmations, offset: pageSize }) })
    case 'alchemy':
      return kinds.alchemy({ name, url, ...given({ confirmations, countMax: pageSize }) })
    default:
      return kinds.rpc({ name, url, ...given({ confirmations, logBlocksMax: pageSize }) })
  }
}
