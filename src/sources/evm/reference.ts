import { secretOption, type SourceReference } from '../kit/source-reference.ts'

export default {
  guide: 'failover.md',
  auth: 'Depends on the provider: an API key of Etherscan, a node URL with or without `auth`.',
  streams: [
    ['evm(options).transfers', 'incremental', 'native and token transfers of one address, from several providers'],
  ],
  lag: '`confirmations` blocks.',
  retention: 'No limit: a chain keeps its history.',
  deletions: 'Transfers of replaced blocks, within `depth`.',
  pace: 'No pacer of its own. Waits as a 429 requires, and uses another provider meanwhile.',
  groups: [
    {
      title: 'evm(options)',
      file: 'evm/source.ts',
      name: 'EvmOptions',
      members: {
        address: [null, 'The account whose transfers are read: `0x` and 40 hexadecimal digits.'],
        providers: [null, 'One or more of `alchemy`, `etherscan` and `rpc`, in order of preference.'],
        operations: ['both', '`native`, `token`, or both.'],
        preferred: ['none', 'Name of the provider that is used before the others.'],
        chainId: ['any', 'The chain. A provider of another chain is refused.'],
        startBlock: ['0', 'The first block; with `since`, the later of both.'],
        since: ['everything', 'A date or RFC 3339: reading begins at the first block with this time or a later one.'],
        confirmations: ['0', 'Newest blocks that are not read. 0 reads to the head and repairs reorganisations.'],
        depth: ['12', 'Newest blocks that may still be replaced.'],
        deadlineMs: ['that of `failover`', 'Milliseconds that one provider may take for a page.'],
      },
    },
    {
      title: 'alchemy(options)',
      file: 'evm/alchemy.ts',
      name: 'AlchemyOptions',
      members: {
        name: [null, 'Name of the provider in states and logs.'],
        url: [null, 'URL of the node, or `{ secret }` with the name of the secret that holds it.'],
        auth: ['none', 'Credentials beside the URL.'],
        confirmations: ['that of the source', 'See above.'],
        countMax: ['1000', 'Transfers of a page, up to 1,000.'],
      },
    },
    {
      title: 'etherscan(options)',
      file: 'evm/etherscan.ts',
      name: 'EtherscanOptions',
      members: {
        name: [null, 'Name of the provider in states and logs.'],
        apiKey: secretOption('The API key'),
        baseUrl: ['`https://api.etherscan.io/v2/api`', 'Base URL of the API.'],
        chainId: ['that of the source, else 1', 'The chain.'],
        confirmations: ['that of the source', 'See above.'],
        offset: ['1000', 'Rows of a page, up to 1,000.'],
        operations: ['both', 'Capabilities of this provider. Some servers with the same API have no logs.'],
      },
    },
    {
      title: 'rpc(options)',
      file: 'evm/rpc.ts',
      name: 'RpcOptions',
      members: {
        name: [null, 'Name of the provider in states and logs.'],
        url: [null, 'URL of the node, or `{ secret }` with the name of the secret that holds it.'],
        auth: ['none', 'Credentials beside the URL.'],
        logBlocksMax: ['2000', 'Blocks of a page of logs.'],
        wholeBlocksMax: ['25', 'Blocks of a page of native transfers, which are fetched one by one.'],
        confirmations: ['that of the source', 'See above.'],
      },
    },
  ],
} satisfies SourceReference
