import { objectSchema, SECRET_SCHEMA, TEXT_SCHEMA } from '../../values/config-schema.ts'
import { defineSource } from '../kit/define-source.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { SINCE_SCHEMA } from '../kit/since.ts'
import { selectFixedStreams } from '../kit/select-stream.ts'

export default defineSource({
  name: 'kraken',
  title: 'Kraken',
  times: { since: true, range: true },
  packages: ['node:crypto'],
  config: objectSchema(
    {
      api_key: SECRET_SCHEMA,
      api_secret: SECRET_SCHEMA,
      base_url: TEXT_SCHEMA,
      tier: { enum: ['starter', 'intermediate', 'pro'] },
      since: SINCE_SCHEMA,
    },
    ['api_key', 'api_secret'],
  ),
  async open({ api_key: apiKey, api_secret: apiSecret, base_url: baseUrl, tier, since }) {
    const { kraken } = await import('./source.ts')
    return kraken({ apiKey, apiSecret, ...omitUndefined({ baseUrl, tier, since }) })
  },
  ...selectFixedStreams({ followsChanges: true }),
  template: {
    rank: 110,
    settings: { KRAKEN_KEY: 'an API key with access to ledgers and trades', KRAKEN_SECRET: 'its private key' },
    database: 'ledgers',
  },
})
