import { lagOption, secretOption, SINCE_OPTION, type SourceReference } from '../kit/source-reference.ts'

export default {
  auth: 'An API key with "Query ledger entries" and "Query closed orders and trades", and its secret.',
  streams: [
    ['kraken(options).ledgers', 'incremental', 'entries of the ledger'],
    ['kraken(options).trades', 'incremental', 'trades'],
  ],
  lag: '`lagMs`, 10 seconds by default.',
  retention: 'No limit.',
  deletions: 'There are none: entries do not change.',
  pace: 'By the call counter that Kraken documents, for the `tier` of the account; 15 minutes after a lockout.',
  groups: [
    {
      title: 'kraken(options)',
      file: 'kraken/source.ts',
      name: 'KrakenOptions',
      members: {
        apiKey: secretOption('The API key'),
        apiSecret: secretOption('Its secret'),
        baseUrl: ['`https://api.kraken.com`', 'Base URL of the API.'],
        tier: ['`starter`', '`starter`, `intermediate` or `pro`: determines the call rate limit of the account.'],
        since: SINCE_OPTION,
        lagMs: lagOption('10000'),
        overlapMs: ['60000', 'Milliseconds before its state that every cycle reads again.'],
      },
    },
  ],
} satisfies SourceReference
