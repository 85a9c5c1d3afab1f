import type { ChainProviderFactory } from '../../sources/evm/source.ts'
import {
  COUNT_SCHEMA,
  omitUndefined,
  SET_BY_CONNECTOR,
  objectSchema,
  SECRET_SCHEMA,
  TEXT_SCHEMA,
  type Connector,
} from './connector.ts'
import { whenEquals } from './when-equals.ts'

const BLOCKS_SCHEMA = { type: 'integer', minimum: 0 } as const

const PROVIDER_SCHEMA = {
  ...objectSchema(
    {
      kind: { enum: ['rpc', 'alchemy', 'etherscan'] },
      name: TEXT_SCHEMA,
      url: { ...TEXT_SCHEMA, description: 'the address of the node; use ${NAME} if it contains a key' },
      api_key: SECRET_SCHEMA,
      base_url: TEXT_SCHEMA,
      confirmations: BLOCKS_SCHEMA,
      page_size: COUNT_SCHEMA,
    },
    ['kind', 'name'],
  ),
  allOf: [
    whenEquals('kind', 'rpc', { required: ['url'] }),
    whenEquals('kind', 'alchemy', { required: ['url'] }),
    whenEquals('kind', 'etherscan', { required: ['api_key'] }),
  ],
}

/** The transfers of an account on a chain, from the first provider that responds. */
export const evm: Connector = {
  followsChanges: true,
  listsStreams: false,
  config: objectSchema(
    {
      providers: { type: 'array', minItems: 1, items: PROVIDER_SCHEMA },
      preferred: TEXT_SCHEMA,
      chain_id: COUNT_SCHEMA,
      start_block: BLOCKS_SCHEMA,
      confirmations: BLOCKS_SCHEMA,
      depth: COUNT_SCHEMA,
    },
    ['providers'],
  ),
  stream: {
    required: { required: ['options'] },
    properties: {
      options: objectSchema(
        {
          address: {
            type: 'string',
            pattern: '^0x[0-9a-fA-F]{40}$',
            description: 'the account: 0x and 40 hex digits, in quotes',
          },
          operations: { type: 'array', minItems: 1, uniqueItems: true, items: { enum: ['native', 'token'] } },
          start_block: BLOCKS_SCHEMA,
        },
        ['address'],
      ),
      key: SET_BY_CONNECTOR,
      cursor: SET_BY_CONNECTOR,
      select: SET_BY_CONNECTOR,
      safety_window: {
        not: {},
        description:
          'not supported by this connector: `confirmations` excludes the newest blocks, and `depth` blocks are repaired after a reorganisation',
      },
    },
  },
  async open({ providers, preferred, chain_id: chainId, start_block: startBlock, confirmations, depth }) {
    const { evm: open, ...kinds } = await import('../../sources/evm/source.ts')
    const readers = providers.map((provider: any) => createReader(provider, kinds))
    const shared = { providers: readers, ...omitUndefined({ preferred, chainId, confirmations, depth }) }
    return {
      stream({ options = {} }) {
        const { address, operations, start_block: from = startBlock } = options as any
        return open({ ...shared, address, ...omitUndefined({ operations, startBlock: from }) }).transfers
      },
    }
  },
  // The accounts of a chain cannot be listed; the manifest names one.
  discover: async () => [
    {
      id: 'transfers',
      key: ['transactionHash', 'logIndex'],
      cursor: 'blockNumber',
      candidates: ['blockNumber', 'timestamp'],
    },
  ],
}

function createReader(
  { kind, name, url, api_key: apiKey, base_url: baseUrl, confirmations, page_size: pageSize }: any,
  kinds: Omit<typeof import('../../sources/evm/source.ts'), 'evm'>,
): ChainProviderFactory {
  switch (kind) {
    case 'etherscan':
      return kinds.etherscan({ name, apiKey, ...omitUndefined({ baseUrl, confirmations, offset: pageSize }) })
    case 'alchemy':
      return kinds.alchemy({ name, url, ...omitUndefined({ confirmations, countMax: pageSize }) })
    default:
      return kinds.rpc({ name, url, ...omitUndefined({ confirmations, logBlocksMax: pageSize }) })
  }
}
