import { required } from '../../values/required.ts'
import {
  COUNT_SCHEMA,
  objectSchema,
  SECRET_SCHEMA,
  SELECTED_AFTER_READING,
  SET_BY_CONNECTOR,
  TEXT_SCHEMA,
  whenEquals,
  type SchemaValue,
} from '../../values/config-schema.ts'
import { defineSource } from '../kit/define-source.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { SINCE_SCHEMA } from '../kit/since.ts'
import type { ChainProviderFactory } from './source.ts'

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
} as const

/** The transfers of an account on a chain, from the first provider that responds. */
export default defineSource({
  name: 'evm',
  title: 'EVM chains',
  times: { since: true, range: true },
  config: objectSchema(
    {
      providers: { type: 'array', minItems: 1, items: PROVIDER_SCHEMA },
      preferred: TEXT_SCHEMA,
      chain_id: COUNT_SCHEMA,
      start_block: { ...BLOCKS_SCHEMA, description: 'the first block; a time is `since`' },
      since: SINCE_SCHEMA,
      confirmations: BLOCKS_SCHEMA,
      depth: COUNT_SCHEMA,
    },
    ['providers'],
  ),
  streams: {
    followsChanges: true,
    areListed: false,
    required: ['options'],
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
    fields: {
      key: SET_BY_CONNECTOR,
      cursor: SET_BY_CONNECTOR,
      select: SELECTED_AFTER_READING,
      safety_window: {
        not: {},
        description:
          'not supported by this connector: `confirmations` excludes the newest blocks, and `depth` blocks are repaired after a reorganisation',
      },
    },
  },
  async open({ providers, preferred, chain_id: chainId, start_block: startBlock, since, confirmations, depth }) {
    const { evm, ...kinds } = await import('./source.ts')
    const readers = providers.map((provider) => createReader(provider, kinds))
    return {
      evm,
      startBlock,
      shared: { providers: readers, ...omitUndefined({ preferred, chainId, since, confirmations, depth }) },
    }
  },
  stream({ evm, startBlock, shared }, { options }) {
    const { address, operations, start_block: from = startBlock } = required(options, '`options`')
    return evm({ ...shared, address, ...omitUndefined({ operations, startBlock: from }) }).transfers
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
  template: {
    rank: 120,
    label: 'Transfers of an account on an EVM chain',
    settings: {
      ALCHEMY_URL: 'https://eth-mainnet.g.alchemy.com/v2/<key>; worker.ts lists other nodes and indexers',
      ETHERSCAN_KEY: 'the fallback when the first provider fails',
    },
    database: 'transfers',
    simulated: 'a simulated chain',
    until: 'ALCHEMY_URL is set in .env, then the real one',
  },
})

function createReader(
  provider: SchemaValue<typeof PROVIDER_SCHEMA>,
  kinds: Omit<typeof import('./source.ts'), 'evm'>,
): ChainProviderFactory {
  const { name, base_url: baseUrl, confirmations, page_size: pageSize } = provider
  switch (provider.kind) {
    case 'etherscan':
      return kinds.etherscan({
        name,
        apiKey: provider.api_key,
        ...omitUndefined({ baseUrl, confirmations, offset: pageSize }),
      })
    case 'alchemy':
      return kinds.alchemy({ name, url: provider.url, ...omitUndefined({ confirmations, countMax: pageSize }) })
    case 'rpc':
      return kinds.rpc({ name, url: provider.url, ...omitUndefined({ confirmations, logBlocksMax: pageSize }) })
    default:
      throw provider satisfies never
  }
}
