import { objectSchema, SECRET_SCHEMA, TEXT_SCHEMA } from '../../values/config-schema.ts'
import { defineSource } from '../kit/define-source.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { selectFixedStreams } from '../kit/select-stream.ts'

export default defineSource({
  name: 'stripe',
  title: 'Stripe',
  config: objectSchema({ api_key: SECRET_SCHEMA, base_url: TEXT_SCHEMA }, ['api_key']),
  async open({ api_key: apiKey, base_url: baseUrl }) {
    const { stripe } = await import('./source.ts')
    return stripe({ apiKey, ...omitUndefined({ baseUrl }) })
  },
  ...selectFixedStreams({ followsChanges: true }),
  template: {
    rank: 20,
    settings: {
      STRIPE_KEY: 'a secret key, or a restricted key with read access to customers, products and events',
    },
    database: 'customers',
  },
  advice: {
    rank: 20,
    facts: { changes: 'events', deletes: 'reported', paging: 'token', http: 'other', lagSeconds: 10 },
    stream: "stripe({ apiKey: 'STRIPE_KEY' }).customers",
    database: 'customers',
  },
})
