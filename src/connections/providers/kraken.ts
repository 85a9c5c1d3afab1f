import { defineProvider } from '../define-provider.ts'

export default defineProvider({
  name: 'kraken',
  title: 'Kraken',
  documentation: 'https://docs.kraken.com/api-reference/account-data/get-api-key-info',
  source: 'kraken',
  form: {
    steps: [
      'In Kraken, open Settings, then API, and create an API key.',
      'Select only Query under Funds, Query closed orders & trades, and Query ledger entries. Do not allow withdrawals or trading.',
      'Copy the API key and the private key. The private key is shown once.',
    ],
    fields: {
      api_key: { label: 'API key', isSecret: true },
      api_secret: { label: 'Private key', isSecret: true },
    },
    auth: { kind: 'kraken', key: 'api_key', secret: 'api_secret' },
  },
  account: {
    method: 'POST',
    url: 'https://api.kraken.com/0/private/GetApiKeyInfo',
    id: 'result.iban',
    label: 'result.apiKeyName',
  },
})
